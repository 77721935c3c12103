//! The lint that holds README and `docs/` to the code: links lead somewhere, what is named is there, and numbers are the code's.

mod constants;
mod links;
mod numbers;
#[cfg(test)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::{Case, Verdict};
use constants::Constants;

/// One check: what is wrong, a line each.
type Check = fn(&Sources<'_>) -> Result<Vec<String>>;

/// The checks.
pub fn cases(root: &Path) -> Vec<Case<'_>> {
    let checks: [(_, Check); 8] = [
        ("docs-links", links::links),
        ("docs-pages", links::pages),
        ("docs-paths", links::paths),
        ("docs-limits", numbers::limits),
        ("docs-limits-of-the-contract", numbers::contract),
        ("docs-locks", numbers::locks),
        ("docs-memory-maps", numbers::memory_maps),
        ("docs-exit-values", numbers::exit_values),
    ];
    let case = |(name, check): (_, Check)| Case::new(name, move || verdict(check, root));
    checks.map(case).into()
}

fn verdict(check: Check, root: &Path) -> Verdict {
    let wrong = check(&Sources(root))?;
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// The tree of sources. Paths are from its top.
#[derive(Clone, Copy)]
struct Sources<'a>(&'a Path);

impl<'a> Sources<'a> {
    fn read(&self, path: impl AsRef<Path>) -> Result<String> {
        let path = self.0.join(path);
        fs::read_to_string(&path).with_context(|| path.display().to_string())
    }

    fn has(&self, path: impl AsRef<Path>) -> bool {
        self.0.join(path).exists()
    }

    fn constants(&self) -> Constants<'a> {
        Constants(*self)
    }

    /// README and every page of `docs/`.
    fn pages(&self) -> Result<Vec<PathBuf>> {
        let mut pages = self.files(Path::new("docs"), "md")?;
        pages.push("README.md".into());
        Ok(pages)
    }

    /// The files with this extension in a directory and those below.
    fn files(&self, directory: &Path, extension: &str) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for name in self.names(directory)? {
            let path = directory.join(name);
            if self.0.join(&path).is_dir() {
                found.extend(self.files(&path, extension)?);
            } else if path.extension().is_some_and(|other| other == extension) {
                found.push(path);
            }
        }
        Ok(found)
    }

    /// What a directory holds, in order.
    fn names(&self, directory: &Path) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.0.join(directory))? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }
}

/// The cells of the tables in a page, by row.
fn rows(page: &str) -> impl Iterator<Item = Vec<&str>> {
    page.lines().filter_map(|line| {
        let row = line.trim().strip_prefix('|')?.strip_suffix('|')?;
        Some(row.split('|').map(str::trim).collect())
    })
}

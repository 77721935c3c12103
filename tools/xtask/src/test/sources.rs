//! Which packages can have a test that a filter asks for, as far as their sources tell: the others need not be built.
//!
//! A test's name is made of its crate, modules and function. Each of these words stands in the package's directory: it is a
//! target's name, that of a file or a directory, or one that a source declares. So a package without such a word for each
//! part of the filter has no test to run. One that has them may be built in vain. That none is left out that has the test is
//! checked of each test that runs.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::workspace::Workspace;

/// A package and the words that the names of its tests are made of.
pub struct Sources {
    /// The package's name.
    pub package: String,
    /// Names of its crates.
    crates: BTreeSet<String>,
    words: BTreeSet<String>,
}

/// What cargo says of the workspace.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

impl Sources {
    /// Those of every package of the workspace.
    ///
    /// # Errors
    /// If cargo does not tell, or a source cannot be read.
    pub fn read(workspace: &Workspace) -> Result<Vec<Self>> {
        let mut cargo = workspace.cargo("metadata");
        let output = cargo
            .args(["--no-deps", "--format-version=1"])
            .stderr(Stdio::inherit())
            .output()
            .context("cannot run cargo")?;
        let metadata: Metadata =
            serde_json::from_slice(&output.stdout).context("cargo's metadata")?;
        metadata.packages.into_iter().map(Self::of).collect()
    }

    fn of(package: Package) -> Result<Self> {
        let directory = package.manifest_path.parent();
        let directory = directory.context("a manifest is in no directory")?;
        let crates: BTreeSet<_> = package.targets.into_iter().map(|t| t.name).collect();
        let mut words = crates.clone();
        gather(directory, &mut words)?;
        Ok(Self {
            package: package.name,
            crates,
            words,
        })
    }

    /// Whether a test of this suite may be in the package, with a name that contains the filter.
    #[must_use]
    pub fn can_have(&self, suite: &str, filter: &str) -> bool {
        let path = filter
            .strip_prefix(suite)
            .and_then(|rest| rest.strip_prefix("::"));
        let is_here = match path.and_then(|path| path.split_once("::")) {
            Some((krate, _)) => self.crates.contains(krate),
            None => true,
        };
        let is_part =
            |part: &str| suite.contains(part) || self.words.iter().any(|word| word.contains(part));
        is_here && filter.split(':').all(is_part)
    }
}

/// Adds the words of a directory.
fn gather(directory: &Path, words: &mut BTreeSet<String>) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let path = entry?.path();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            words.insert(stem.into_owned());
            gather(&path, words)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            words.insert(stem.into_owned());
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            words.extend(declared(&text));
        }
    }
    Ok(())
}

/// Names of functions and modules that a source declares.
fn declared(text: &str) -> impl Iterator<Item = String> {
    let declarations = text.lines().filter_map(|line| {
        let behind = |keyword| line.split_once(keyword).map(|(_, name)| name);
        behind("fn ").or_else(|| behind("mod "))
    });
    declarations.filter_map(|name| {
        let end = name.find(|character: char| !character.is_alphanumeric() && character != '_');
        let name = &name[..end.unwrap_or(name.len())];
        (!name.is_empty()).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> Sources {
        let text =
            "mod tests {\n    #[test]\n    fn a_line_is_drawn() {\n        note(\"never\");\n";
        let mut words: BTreeSet<_> = declared(text).collect();
        words.extend(["shell".into(), "line".into()]);
        Sources {
            package: "shell".into(),
            crates: BTreeSet::from(["shell".into()]),
            words,
        }
    }

    #[test]
    fn a_package_is_built_for_a_filter_that_is_part_of_its_names() {
        let sources = sources();
        for filter in [
            "",
            "host",
            "host::shell::",
            "host::shell::line::tests::a_line_is_drawn",
            "host::she",
            "is_drawn",
            "ell::line::te",
            "tests:",
        ] {
            assert!(sources.can_have("host", filter), "{filter}");
        }
        for filter in [
            "is_redrawn",
            "host::ell::line",
            "never",
            "loom::shell",
            "::note",
        ] {
            assert!(!sources.can_have("host", filter), "{filter}");
        }
    }
}

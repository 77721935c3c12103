//! Tests that hold README and `docs/` to the code: links lead somewhere, what is named is there, and numbers are the code's.

mod constants;
mod links;
mod numbers;

use std::fs;
use std::path::{Path, PathBuf};

/// The top of the sources.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A file of the sources.
fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// README and every page of `docs/`, from the top of the sources.
fn pages() -> Vec<PathBuf> {
    let mut pages = files(Path::new("docs"), "md");
    pages.push("README.md".into());
    pages
}

/// The files with this extension in a directory and those below, from the top of the sources.
fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(directory)).unwrap() {
        let path = directory.join(entry.unwrap().file_name());
        if root().join(&path).is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|other| other == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The cells of the tables in a page, by row.
fn rows(page: &str) -> impl Iterator<Item = Vec<&str>> {
    page.lines().filter_map(|line| {
        let row = line.trim().strip_prefix('|')?.strip_suffix('|')?;
        Some(row.split('|').map(str::trim).collect())
    })
}

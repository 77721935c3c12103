//! A copy of the sources in which things are made. It is made anew each time, but a file that comes out as it was the time before
//! keeps its time, so that only what changed is built again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, Result};

/// A copy.
#[derive(Debug)]
pub struct Tree {
    root: PathBuf,
    /// Each file of the time before.
    before: BTreeMap<PathBuf, (Vec<u8>, SystemTime)>,
}

impl Tree {
    /// Copies the sources at `from`, without what is built from them.
    ///
    /// # Errors
    /// If files cannot be read or written.
    pub fn copy(from: &Path, to: &Path) -> Result<Self> {
        let mut before = BTreeMap::new();
        for path in files(to)? {
            let file = to.join(&path);
            let time = fs::metadata(&file)?.modified()?;
            before.insert(path, (fs::read(&file)?, time));
        }
        match fs::remove_dir_all(to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        for path in files(from)? {
            let target = to.join(&path);
            if let Some(folder) = target.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::copy(from.join(&path), &target).with_context(|| path.display().to_string())?;
        }
        let root = to.to_owned();
        Ok(Self { root, before })
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Gives each file that is as the time before the time that it had.
    ///
    /// # Errors
    /// If a file cannot be read or its time not be set.
    pub fn keep_times(&self) -> Result<()> {
        for (path, (content, time)) in &self.before {
            let file = self.root.join(path);
            if fs::read(&file).is_ok_and(|now| now == *content) {
                File::options()
                    .write(true)
                    .open(&file)?
                    .set_modified(*time)?;
            }
        }
        Ok(())
    }
}

/// The files below a folder, by their paths from there; none if it does not exist.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let entries = match fs::read_dir(root.join(&folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let path = folder.join(entry.file_name());
            let kind = entry.file_type()?;
            // What cargo or git keeps is not source; cargo marks its own.
            let is_kept = entry.file_name() == ".git" || entry.path().join("CACHEDIR.TAG").exists();
            if kind.is_dir() && !is_kept {
                folders.push(path);
            } else if kind.is_file() {
                found.push(path);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_change_keeps_its_time() {
        let folder = std::env::temp_dir().join(format!("sonde-tree-{}", std::process::id()));
        let (from, to) = (folder.join("from"), folder.join("to"));
        fs::create_dir_all(from.join("target")).unwrap();
        fs::write(from.join("target/CACHEDIR.TAG"), "").unwrap();
        fs::write(from.join("same"), "a").unwrap();
        fs::write(from.join("other"), "a").unwrap();
        Tree::copy(&from, &to).unwrap();
        let old = SystemTime::UNIX_EPOCH;
        for file in ["same", "other"] {
            let file = File::options().write(true).open(to.join(file)).unwrap();
            file.set_modified(old).unwrap();
        }
        fs::write(to.join("made"), "").unwrap();
        fs::write(from.join("other"), "b").unwrap();
        Tree::copy(&from, &to).unwrap().keep_times().unwrap();
        let time = |file: &str| fs::metadata(to.join(file)).unwrap().modified().unwrap();
        assert_eq!(time("same"), old);
        assert_ne!(time("other"), old);
        assert!(!to.join("made").exists() && !to.join("target").exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}

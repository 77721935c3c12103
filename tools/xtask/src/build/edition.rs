//! What a boot archive is made of. The shipped one is what users boot; the test one is the same and more programs, which only
//! tests and benchmarks run, with entries of their own.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use ipc::bootfs;

use super::config::Mistake;

/// One boot archive.
#[derive(Debug)]
pub struct Edition {
    /// Its name among the built files.
    pub archive: &'static str,
    /// Most bytes that it may have.
    pub bytes_max: usize,
    /// Where the packages with its programs are, in the words of the workspace's `members`. Each list is built by a cargo
    /// invocation of its own, so that what one asks of shared crates does not change the others.
    programs: &'static [&'static [&'static str]],
    /// Files with the entries of its programs, which are read as if they were one.
    config: &'static [&'static str],
}

/// Bytes of the shipped archive: small machines have it in memory whole. Those of the tests may have as many as the kernel takes.
const SHIPPED_MAX: usize = 4 << 20;

const SHIPPED_PROGRAMS: &[&str] = &["servers/*", "programs"];
const TEST_PROGRAMS: &[&str] = &["tests/*"];
/// The package there that is no program.
pub const SHIM: &str = "pmu-shim";

/// What users boot.
pub const SHIPPED: Edition = Edition {
    archive: "bootfs",
    bytes_max: SHIPPED_MAX,
    programs: &[SHIPPED_PROGRAMS],
    config: &["system.toml"],
};

/// What tests and benchmarks boot that need programs of their own.
pub const TEST: Edition = Edition {
    archive: "bootfs-test",
    bytes_max: bootfs::SIZE_MAX,
    programs: &[SHIPPED_PROGRAMS, TEST_PROGRAMS],
    config: &["system.toml", "tests/system.toml"],
};

/// What truth tests boot: programs of which is known where their time goes.
pub const TRUTH: Edition = Edition {
    archive: "bootfs-truth",
    bytes_max: bootfs::SIZE_MAX,
    programs: &[SHIPPED_PROGRAMS, &["programs/truth"]],
    config: &["system.toml", "programs/truth/system.toml"],
};

impl Edition {
    /// The packages whose binaries it holds, by the lists in which they are built. A package is named as its directory.
    ///
    /// # Errors
    /// If a directory cannot be read.
    pub fn packages(&self, root: &Path) -> Result<Vec<Vec<String>>> {
        let list = |places: &&[&str]| {
            let packages = places.iter().map(|place| packages(root, place));
            Ok(packages.collect::<Result<Vec<_>>>()?.concat())
        };
        self.programs.iter().map(list).collect()
    }

    /// Reads the configuration.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn config(&self, root: &Path) -> Result<ConfigText> {
        let mut config = ConfigText::default();
        for &name in self.config {
            let path = root.join(name);
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            config.append(name, &text);
        }
        Ok(config)
    }
}

/// The packages at one place: the directory itself, or each directory in it that has a manifest.
fn packages(root: &Path, place: &str) -> Result<Vec<String>> {
    let Some(parent) = place.strip_suffix("/*") else {
        let name = place.rsplit('/').next().unwrap_or(place);
        return Ok(vec![name.to_owned()]);
    };
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join(parent)).with_context(|| parent.to_owned())? {
        let entry = entry?;
        if entry.path().join("Cargo.toml").is_file() {
            let name = entry.file_name().into_string();
            names.push(name.map_err(|name| anyhow!("{}: not a name", name.display()))?);
        }
    }
    names.retain(|name| name != SHIM);
    names.sort();
    Ok(names)
}

/// Configuration files one after the other.
#[derive(Debug, Default)]
pub struct ConfigText {
    /// What they say.
    pub text: String,
    /// Each file's name and how many lines were before it.
    files: Vec<(&'static str, usize)>,
}

impl ConfigText {
    /// Adds a file, which begins on a line of its own.
    fn append(&mut self, name: &'static str, text: &str) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        self.files.push((name, self.text.lines().count()));
        self.text.push_str(text);
    }

    /// The error to show for a mistake, with the file and the line where it is.
    pub fn error(&self, mistake: Mistake) -> anyhow::Error {
        let file = self
            .files
            .iter()
            .rfind(|(_, before)| *before < mistake.line);
        let &(name, before) = file.unwrap_or(&("", 0));
        let line = mistake.line - before;
        Mistake { line, ..mistake }.in_file(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_named_with_its_own_file_and_line() {
        let mut config = ConfigText::default();
        config.append("first", "1\n2\n3");
        config.append("second", "1\n2\n");
        assert_eq!(config.text, "1\n2\n3\n1\n2\n");
        let error = |line| {
            let what = "wrong".into();
            config.error(Mistake { line, what }).to_string()
        };
        assert_eq!(error(1), "first:1: wrong");
        assert_eq!(error(3), "first:3: wrong");
        assert_eq!(error(4), "second:1: wrong");
        assert_eq!(error(5), "second:2: wrong");
    }

    #[test]
    fn packages_are_found_where_they_are() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let packages = TEST.packages(&root).unwrap();
        assert!(packages[0].starts_with(&["console".into(), "init".into()]));
        assert!(packages[0].ends_with(&["programs".into()]));
        // Beside them is a file.
        assert!(packages[1].contains(&"bench".into()));
        assert!(!packages[1].contains(&"system.toml".into()));
        assert!(!packages[1].contains(&SHIM.into()));
    }

    #[test]
    fn the_test_archive_has_all_that_is_shipped() {
        assert!(TEST.programs.starts_with(SHIPPED.programs));
        assert!(TEST.config.starts_with(SHIPPED.config));
        assert_ne!(TEST.archive, SHIPPED.archive);
    }
}

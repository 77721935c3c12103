//! The files that are made, and the lines that are added to files that exist.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::name::Name;

/// What a server's client is called, before the server's name.
pub const CLIENT_PREFIX: &str = "ask-";

/// Name of the program that calls the server.
pub fn client(name: &Name) -> String {
    format!("{CLIENT_PREFIX}{name}")
}

/// Files by path, with all that is to be in them.
#[derive(Debug, Default)]
pub struct Skeleton {
    /// Files that do not exist.
    pub made: Vec<(String, String)>,
    /// Files that exist.
    pub changed: Vec<(String, String)>,
}

impl Skeleton {
    /// A program: its work in a module of the library `programs`, and the binary.
    ///
    /// # Errors
    /// If a file that is to be changed is not as expected.
    pub fn program(root: &Path, name: &Name) -> Result<Self> {
        let mut skeleton = Self::default();
        let source = include_str!("../../skeleton/program/bin.rs");
        skeleton.binary(root, name, name.as_str(), source)?;
        let source = include_str!("../../skeleton/program/lib.rs");
        skeleton.make(name, format!("programs/src/{name}.rs"), source);
        skeleton.change(root, "programs/src/lib.rs", |text| add_module(text, name))?;
        Ok(skeleton)
    }

    /// A server: its package, its protocol, a program that calls it, and entries for both.
    ///
    /// # Errors
    /// If a file that is to be changed is not as expected.
    pub fn server(root: &Path, name: &Name) -> Result<Self> {
        let mut skeleton = Self::default();
        let sources = [
            (
                "Cargo.toml",
                include_str!("../../skeleton/server/Cargo.toml"),
            ),
            ("src/lib.rs", include_str!("../../skeleton/server/lib.rs")),
            ("src/main.rs", include_str!("../../skeleton/server/main.rs")),
        ];
        for (path, source) in sources {
            skeleton.make(name, format!("servers/{name}/{path}"), source);
        }
        let protocol = include_str!("../../skeleton/server/protocol.rs");
        skeleton.make(name, format!("ipc/src/proto/{name}.rs"), protocol);
        let source = include_str!("../../skeleton/server/client.rs");
        skeleton.binary(root, name, &client(name), source)?;
        skeleton.change(root, "ipc/src/proto/mod.rs", |text| add_module(text, name))?;
        let entries = filled(include_str!("../../skeleton/server/system.toml"), name);
        skeleton.change(root, "system.toml", |text| {
            Some(format!("{}\n{entries}", text.trim_end()))
        })?;
        Ok(skeleton)
    }

    /// A binary of the package `programs`.
    fn binary(&mut self, root: &Path, name: &Name, binary: &str, source: &str) -> Result<()> {
        self.make(name, format!("programs/src/bin/{binary}.rs"), source);
        self.change(root, "programs/Cargo.toml", |text| add_binary(text, binary))
    }

    fn make(&mut self, name: &Name, path: String, source: &str) {
        self.made.push((path, filled(source, name)));
    }

    fn change(
        &mut self,
        root: &Path,
        path: &str,
        change: impl FnOnce(&str) -> Option<String>,
    ) -> Result<()> {
        let text = fs::read_to_string(root.join(path)).with_context(|| path.to_owned())?;
        let text = change(&text).with_context(|| format!("{path} has no place for a new line"))?;
        self.changed.push((path.to_owned(), text));
        Ok(())
    }
}

/// A skeleton's text with the name in it.
fn filled(source: &str, name: &Name) -> String {
    source
        .replace("@name@", name.as_str())
        .replace("@Name@", &name.as_type())
}

/// Adds a module where rustfmt would have it: the modules are in the order of their names.
fn add_module(text: &str, name: &Name) -> Option<String> {
    let mut lines: Vec<&str> = text.lines().collect();
    let module = |line: &str| {
        let line = line.strip_prefix("pub ").unwrap_or(line);
        Some(line.strip_prefix("mod ")?.strip_suffix(';')?.to_owned())
    };
    let later = lines
        .iter()
        .position(|line| module(line).is_some_and(|other| other.as_str() > name.as_str()));
    let mut at = match later {
        Some(at) => at,
        None => 1 + lines.iter().rposition(|line| module(line).is_some())?,
    };
    // A module's attributes stay with it.
    while later.is_some() && at > 0 && lines[at - 1].starts_with("#[") {
        at -= 1;
    }
    let declaration = format!("pub mod {name};");
    lines.insert(at, &declaration);
    Some(lines.join("\n") + "\n")
}

/// Adds a binary behind the others.
fn add_binary(text: &str, binary: &str) -> Option<String> {
    let at = text.find("[features]")?;
    let (before, after) = text.split_at(at);
    Some(format!(
        "{before}[[bin]]\nname = \"{binary}\"\nrequired-features = [\"bare\"]\n\n{after}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::new::Kind;

    fn name(text: &str) -> Name {
        Name::parse(text, Kind::Program, &[]).unwrap()
    }

    #[test]
    fn modules_stay_in_order() {
        let text = "//! x\n\npub mod b;\npub mod d;\n#[cfg(y)]\nmod f;\n\npub use z;\n";
        let with = |added: &str| add_module(text, &name(added)).unwrap();
        assert_eq!(
            with("a"),
            text.replace("pub mod b;", "pub mod a;\npub mod b;")
        );
        assert_eq!(
            with("c"),
            text.replace("pub mod d;", "pub mod c;\npub mod d;")
        );
        assert_eq!(with("e"), text.replace("#[cfg", "pub mod e;\n#[cfg"));
        assert_eq!(with("g"), text.replace("mod f;", "mod f;\npub mod g;"));
        assert_eq!(add_module("//! x\n", &name("a")), None);
    }

    #[test]
    fn nothing_is_left_to_fill_in() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let name = name("word_count");
        for skeleton in [
            Skeleton::program(&root, &name).unwrap(),
            Skeleton::server(&root, &name).unwrap(),
        ] {
            for (path, text) in skeleton.made.iter().chain(&skeleton.changed) {
                assert!(!text.contains('@'), "{path}:\n{text}");
                assert!(
                    text.contains("word_count") && text.ends_with('\n'),
                    "{path}"
                );
            }
        }
    }
}

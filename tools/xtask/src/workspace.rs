//! Where things are: the sources, what is built from them, and the toolchain that the set-up found.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// Target of the kernel and of programs.
pub const BARE_TARGET: &str = "x86_64-unknown-none";

/// Paths and toolchain of this working tree.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// The top of the sources.
    pub root: PathBuf,
    /// Where cargo builds.
    pub target: PathBuf,
    bare: BareToolchain,
}

/// What the bare target needs beyond the toolchain in use; all empty where rustup has the target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct BareToolchain {
    rustc: Option<String>,
    sysroot: Option<String>,
    linker: Option<String>,
}

impl BareToolchain {
    /// Reads what `sysroot/scripts/setup.sh` wrote.
    fn parse(text: &str) -> Self {
        let value = |key: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once('='));
            lines
                .find(|(name, _)| *name == key)
                .map(|(_, value)| value.to_owned())
        };
        Self {
            rustc: value("BARE_RUSTC"),
            sysroot: value("BARE_SYSROOT"),
            linker: value("BARE_LINKER"),
        }
    }
}

impl Workspace {
    /// The working tree that this program was built from.
    ///
    /// # Errors
    /// If it is no longer there.
    pub fn find() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let root = root.canonicalize().context("the sources have moved")?;
        let target = root.join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()));
        let env = fs::read_to_string(target.join("toolchain/env")).unwrap_or_default();
        let bare = BareToolchain::parse(&env);
        Ok(Self { root, target, bare })
    }

    /// A copy of the tree at `root` that is built in `target`, with the same toolchain.
    #[must_use]
    pub fn elsewhere(&self, root: &Path, target: &Path) -> Self {
        Self {
            root: root.to_owned(),
            target: target.to_owned(),
            bare: self.bare.clone(),
        }
    }

    /// Cargo for host crates, run at the root.
    #[must_use]
    pub fn cargo(&self, command: &str) -> Command {
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.arg(command).current_dir(&self.root);
        cargo.env("CARGO_TARGET_DIR", &self.target);
        // What `cargo run` says of xtask itself must not reach the builds it starts.
        cargo.env_remove("CARGO_MANIFEST_DIR");
        cargo
    }

    /// Cargo for the bare target, with the feature that every binary there asks for, so that no other cargo builds one. Builds in a
    /// directory of its own, because the compiler may be another one.
    #[must_use]
    pub fn bare_cargo(&self, command: &str) -> Command {
        let mut cargo = self.cargo(command);
        cargo.args(["--release", "--target", BARE_TARGET, "--features", "bare"]);
        cargo.env("CARGO_TARGET_DIR", self.target.join("bare"));
        // These would replace the flags of .cargo/config.toml instead of adding to them.
        cargo
            .env_remove("RUSTFLAGS")
            .env_remove("CARGO_ENCODED_RUSTFLAGS");
        if let Some(rustc) = &self.bare.rustc {
            cargo.env("RUSTC", rustc).env_remove("RUSTC_WRAPPER");
        }
        // Both add to .cargo/config.toml.
        let config = [
            (
                "linker",
                self.bare
                    .linker
                    .as_ref()
                    .map(|linker| format!("{linker:?}")),
            ),
            (
                "rustflags",
                self.bare
                    .sysroot
                    .as_ref()
                    .map(|sysroot| format!("[\"--sysroot={sysroot}\"]")),
            ),
        ];
        for (key, value) in config {
            if let Some(value) = value {
                cargo
                    .arg("--config")
                    .arg(format!("target.{BARE_TARGET}.{key}={value}"));
            }
        }
        cargo
    }

    /// Whether the toolchain in use is one of rustup's, which then names it to what it runs.
    #[must_use]
    pub fn has_rustup(&self) -> bool {
        env::var_os("RUSTUP_TOOLCHAIN").is_some()
    }

    /// Whether the bare target comes with the toolchain in use, so that its clippy can read core.
    #[must_use]
    pub fn bare_is_native(&self) -> bool {
        self.bare == BareToolchain::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_toolchain_file_is_read() {
        let text = "RUSTUP_TOOLCHAIN=stable\nBARE_RUSTC=/usr/bin/rustc\nBARE_SYSROOT=/a=b\n";
        let bare = BareToolchain::parse(text);
        assert_eq!(bare.rustc.as_deref(), Some("/usr/bin/rustc"));
        assert_eq!(bare.sysroot.as_deref(), Some("/a=b"));
        assert_eq!(bare.linker, None);
        assert_eq!(
            BareToolchain::parse("RUSTUP_TOOLCHAIN=stable\n"),
            BareToolchain::default()
        );
    }
}

//! Runs cargo for the kernel and for the programs, and learns from it what it made.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use ipc::bootfs;
use serde::Deserialize;

use crate::workspace::Workspace;

/// A linked ELF file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executable {
    /// Its name, which is its target's.
    pub name: String,
    /// Where cargo put it.
    pub path: PathBuf,
}

impl Executable {
    /// A program's name in the boot archive.
    #[must_use]
    pub fn archive_name(&self) -> String {
        format!("{}{}", bootfs::PROGRAMS, self.name)
    }

    /// The name of its symbol table there.
    #[must_use]
    pub fn symbols_name(&self) -> String {
        format!("{}{}", bootfs::PROGRAM_SYMBOLS, self.name)
    }
}

/// Builds a package that is no program: the kernel, or what stands in its place.
///
/// # Errors
/// If it does not compile.
pub fn kernel(workspace: &Workspace, package: &str) -> Result<Executable> {
    let mut made = cargo_build(workspace, &[package.to_owned()])?;
    match (made.pop(), made.pop()) {
        (Some(kernel), None) => Ok(kernel),
        _ => bail!("the package `{package}` must have exactly one binary"),
    }
}

/// Builds every program of these packages, sorted by name; each list of packages by an invocation of its own.
///
/// # Errors
/// If one does not compile, or two have the same name.
pub fn programs(workspace: &Workspace, packages: &[Vec<String>]) -> Result<Vec<Executable>> {
    let mut made = Vec::new();
    for packages in packages {
        made.extend(cargo_build(workspace, packages)?);
    }
    made.sort_by(|a, b| a.name.cmp(&b.name));
    match made.windows(2).find(|pair| pair[0].name == pair[1].name) {
        Some(pair) => bail!("two programs are named `{}`", pair[0].name),
        None => Ok(made),
    }
}

/// One message of cargo about something it made.
#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    target: Option<Target>,
}

/// Whose it is.
#[derive(Deserialize)]
struct Target {
    name: String,
}

fn cargo_build(workspace: &Workspace, packages: &[String]) -> Result<Vec<Executable>> {
    let mut cargo = workspace.bare_cargo("build");
    cargo.args(["--bins", "--message-format=json-render-diagnostics"]);
    for package in packages {
        cargo.args(["--package", package]);
    }
    let output = cargo
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!("{} did not build", packages.join(", "));
    }
    executables(&String::from_utf8(output.stdout)?)
}

/// The executables that cargo's messages speak of.
fn executables(messages: &str) -> Result<Vec<Executable>> {
    let mut made = Vec::new();
    for line in messages.lines() {
        let message: Message = serde_json::from_str(line).context("cargo's messages")?;
        if let (Some(path), Some(target)) = (message.executable, message.target) {
            let name = target.name;
            made.push(Executable { name, path });
        }
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executables_are_picked_out_of_the_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"ipc"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"spin"},"executable":"/t/spin"}
{"reason":"build-finished","success":true}"#;
        let expected = Executable {
            name: "spin".into(),
            path: "/t/spin".into(),
        };
        assert_eq!(executables(messages).unwrap(), [expected]);
        assert!(executables("not json").is_err());
    }
}

//! The suite `script`: `run.sh` and the set-up, on machines that lack things, with tools that only pretend.

mod boot;
mod setup;
mod usage;

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::child;
use crate::workspace::Workspace;

use super::{Context, Report, run_cases};

/// Runs the tests asked for.
///
/// # Errors
/// None: every failure is a test's.
pub fn run(context: &Context<'_>) -> Result<Report> {
    let mut cases = usage::cases(context.workspace);
    cases.extend(setup::cases(context.workspace));
    cases.extend(boot::cases(context));
    Ok(run_cases(context, 2, &cases))
}

/// `run.sh` with these arguments. It ends with this process.
fn run_sh(workspace: &Workspace, arguments: &[&str]) -> Command {
    let mut command = child::command(workspace.root.join("run.sh"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs a command to its end with this input.
fn output(command: &mut Command, input: &[u8]) -> Result<Output> {
    let command = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A command that refuses its arguments reads nothing.
        match stdin.write_all(input) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
            _ => {}
        }
    }
    Ok(child.wait_with_output()?)
}

/// Fails unless the command ended with this status; says what it printed.
fn expect_status(output: &Output, status: i32) -> Result<()> {
    ensure!(
        output.status.code() == Some(status),
        "{}, not {status}; stdout:\n{}stderr:\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// A directory of tools: some real, by link, and some that pretend.
struct Toolbox {
    directory: PathBuf,
}

impl Toolbox {
    /// An empty one for the test with this name.
    fn new(workspace: &Workspace, test: &str) -> Result<Self> {
        let directory = workspace.target.join("script-tests").join(test);
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
            _ => fs::create_dir_all(&directory)?,
        }
        Ok(Self { directory })
    }

    /// Adds real tools; those the machine lacks stay missing.
    fn link(&self, names: &[&str]) -> Result<()> {
        let path = std::env::var_os("PATH").context("there is no PATH")?;
        for name in names {
            let found = std::env::split_paths(&path)
                .map(|directory| directory.join(name))
                .find(|tool| tool.is_file());
            if let Some(tool) = found {
                std::os::unix::fs::symlink(tool, self.directory.join(name))?;
            }
        }
        Ok(())
    }

    /// Adds a tool that is this shell script.
    fn pretend(&self, name: &str, script: &str) -> Result<PathBuf> {
        let path = self.file(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n"))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn path(&self) -> &Path {
        &self.directory
    }
}

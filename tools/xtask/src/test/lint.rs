//! The suite `lint`: formatting and clippy, with every warning an error.
//!
//! Where the toolchain has no formatter or no clippy, a check is left out with a note. Clippy reads the bare target's core
//! only if it belongs to the same compiler, so a private sysroot leaves that check out too.

use std::process::{Command, Stdio};

use anyhow::Result;

use crate::build::PROGRAM_PACKAGES;

use super::{Context, Outcome, Report, succeed};

/// Runs the checks asked for.
///
/// # Errors
/// If cargo cannot be run.
pub fn run(context: &Context<'_>) -> Result<Report> {
    let workspace = context.workspace;
    let mut report = Report::default();

    let mut format = workspace.cargo("fmt");
    format.args(["--all", "--check"]);
    check(context, &mut report, "format", "fmt", format)?;

    let mut host = workspace.cargo("clippy");
    host.args([
        "--quiet",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ]);
    check(context, &mut report, "clippy-host", "clippy", host)?;

    if workspace.bare_is_native() {
        for (name, packages) in [
            ("clippy-kernel", &["kernel"][..]),
            ("clippy-programs", &PROGRAM_PACKAGES),
        ] {
            let mut bare = workspace.bare_cargo("clippy");
            bare.arg("--quiet");
            for package in packages {
                bare.args(["--package", package]);
            }
            bare.args(["--", "-D", "warnings"]);
            check(context, &mut report, name, "clippy", bare)?;
        }
    } else if context.wants("clippy-kernel") || context.wants("clippy-programs") {
        report
            .notes
            .push("clippy for the bare target: its core belongs to another compiler".into());
    }
    Ok(report)
}

/// Runs one check if it is wanted and its tool is there.
fn check(
    context: &Context<'_>,
    report: &mut Report,
    name: &str,
    tool: &str,
    mut command: Command,
) -> Result<()> {
    if !context.wants(name) {
        return Ok(());
    }
    let mut probe = context.workspace.cargo(tool);
    probe
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if !probe.status()?.success() {
        report
            .notes
            .push(format!("{name}: this toolchain has no cargo {tool}"));
        return Ok(());
    }
    report
        .outcomes
        .push(Outcome::of(name, succeed(&mut command)));
    Ok(())
}

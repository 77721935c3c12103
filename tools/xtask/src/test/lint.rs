//! The suite `lint`: what the docs say of the code, formatting, and clippy, with every warning an error.
//!
//! A toolchain of rustup's that has no formatter or no clippy fails the check, which says what to install. One of a
//! distribution may have none to install: there the check is left out with a note. Clippy reads the bare target's core only
//! if it belongs to the same compiler, so a private sysroot leaves that check out too.

use std::process::{Command, Stdio};

use anyhow::{Result, anyhow};

use crate::build::TEST;

use super::{Context, Outcome, Report, docs, run_cases, succeed};

/// Clippy for the bare target: the kernel, then each list of packages of the test archive.
const BARE_CHECKS: [&str; 3] = ["clippy-kernel", "clippy-programs", "clippy-test-programs"];

/// Runs the checks asked for.
///
/// # Errors
/// If cargo cannot be run.
pub fn run(context: &Context<'_>) -> Result<Report> {
    let workspace = context.workspace;
    let mut report = run_cases(context, 1, &docs::cases(&workspace.root));

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
        let mut lists = vec![vec!["kernel".to_owned()]];
        lists.extend(TEST.packages(&workspace.root)?);
        for (name, packages) in BARE_CHECKS.into_iter().zip(lists) {
            let mut bare = workspace.bare_cargo("clippy");
            bare.arg("--quiet");
            for package in packages {
                bare.args(["--package", &package]);
            }
            bare.args(["--", "-D", "warnings"]);
            check(context, &mut report, name, "clippy", bare)?;
        }
    } else if BARE_CHECKS.iter().any(|name| context.wants(name)) {
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
        missing(report, name, tool, context.workspace.has_rustup());
        return Ok(());
    }
    report
        .outcomes
        .push(Outcome::of(name, succeed(&mut command)));
    Ok(())
}

/// Reports a check whose tool the toolchain lacks.
fn missing(report: &mut Report, name: &str, tool: &str, has_rustup: bool) {
    let what = format!("this toolchain has no cargo {tool}");
    if !has_rustup {
        report.notes.push(format!("{name}: {what}"));
        return;
    }
    let component = if tool == "fmt" { "rustfmt" } else { tool };
    let why = anyhow!("{what}: rustup component add {component}");
    report.outcomes.push(Outcome::of(name, Err(why)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_rustup_has_must_be_there() {
        let mut report = Report::default();
        missing(&mut report, "format", "fmt", true);
        let why = report.outcomes[0].failure.as_deref();
        assert!(why.is_some_and(|why| why.ends_with("rustup component add rustfmt")));
        assert!(report.notes.is_empty());

        let mut report = Report::default();
        missing(&mut report, "clippy-host", "clippy", false);
        assert!(report.outcomes.is_empty());
        assert_eq!(
            report.notes,
            ["clippy-host: this toolchain has no cargo clippy"]
        );
    }
}

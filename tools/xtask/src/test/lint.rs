//! The suite `lint`: what the docs say of the code, formatting, clippy, and the links of doc comments, with every warning an error.
//!
//! A toolchain of rustup's that has no formatter or no clippy fails the check, which says what to install. One of a
//! distribution may have none to install: there the check is left out with a note. Clippy reads the bare target's core only
//! if it belongs to the same compiler, so a private sysroot leaves that check out too.

use std::process::{Command, Stdio};

use anyhow::{Result, anyhow};

use crate::build::{SHIM, TEST, TRUTH};

use super::{Context, Outcome, Report, docs, run_cases, succeed};

/// Clippy for the bare target: the kernel, what is booted in its place, each list of packages of the test archive, and what the
/// truth tests' has of its own.
const BARE_CHECKS: [&str; 5] = [
    "clippy-kernel",
    "clippy-pmu-shim",
    "clippy-programs",
    "clippy-test-programs",
    "clippy-truth-programs",
];
/// The links of what is whole only for the bare target.
const BARE_LINKS: &str = "doc-links-bare";
/// What rustdoc holds links to. Private items are linked, too: what is written there is read in the source.
const LINKS: &str = "-D warnings -A rustdoc::private_intra_doc_links";

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

    let lists = bare_packages(context)?;
    let mut links = links(workspace.cargo("doc"));
    links.args(["--workspace", "--exclude", "sysroot"]);
    for package in lists.iter().flatten() {
        links.args(["--exclude", package]);
    }
    judge(context, &mut report, "doc-links-host", links);

    if workspace.bare_is_native() {
        bare(context, &mut report, &lists)?;
    } else if BARE_CHECKS
        .into_iter()
        .chain([BARE_LINKS])
        .any(|name| context.wants(name))
    {
        report.notes.push(
            "clippy and links for the bare target: its core belongs to another compiler".into(),
        );
    }
    Ok(report)
}

/// The packages with binaries for the bare target, a list for each of [`BARE_CHECKS`].
fn bare_packages(context: &Context<'_>) -> Result<Vec<Vec<String>>> {
    let root = &context.workspace.root;
    let mut lists = vec![vec!["kernel".to_owned()], vec![SHIM.to_owned()]];
    lists.extend(TEST.packages(root)?);
    // The first list is what both archives have.
    lists.extend(TRUTH.packages(root)?.into_iter().skip(1));
    Ok(lists)
}

/// The checks for the bare target.
fn bare(context: &Context<'_>, report: &mut Report, lists: &[Vec<String>]) -> Result<()> {
    let workspace = context.workspace;
    for (name, packages) in BARE_CHECKS.into_iter().zip(lists) {
        let mut clippy = workspace.bare_cargo("clippy");
        clippy.arg("--quiet");
        for package in packages {
            clippy.args(["--package", package]);
        }
        clippy.args(["--", "-D", "warnings"]);
        check(context, report, name, "clippy", clippy)?;
    }
    let mut links = links(workspace.bare_cargo("doc"));
    for package in lists
        .iter()
        .flatten()
        .map(String::as_str)
        .chain(["sysroot"])
    {
        links.args(["--package", package]);
    }
    judge(context, report, BARE_LINKS, links);
    Ok(())
}

/// Has rustdoc follow the links of packages that are still to be named.
fn links(mut doc: Command) -> Command {
    doc.args(["--quiet", "--no-deps", "--document-private-items"]);
    doc.env("RUSTDOCFLAGS", LINKS);
    doc
}

/// Runs one check if it is wanted and its tool is there.
fn check(
    context: &Context<'_>,
    report: &mut Report,
    name: &str,
    tool: &str,
    command: Command,
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
    judge(context, report, name, command);
    Ok(())
}

/// The same of what every cargo has.
fn judge(context: &Context<'_>, report: &mut Report, name: &str, mut command: Command) {
    if context.wants(name) {
        let outcome = Outcome::of(name, succeed(&mut command));
        report.outcomes.push(outcome);
    }
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

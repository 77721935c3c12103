//! The suites `host` and `loom`: the tests inside the crates, each counted and selected by its own name,
//! `host::crate::path::of::test`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use super::sources::Sources;
use super::{Context, Outcome, Report, succeed};

/// Packages with protocols that have no lock.
const LOOM: [&str; 3] = ["sample-ring", "kcore", "sysroot"];

/// Everything that runs on the host.
///
/// # Errors
/// If something does not compile.
pub fn host(context: &Context<'_>) -> Result<Report> {
    let sources = Sources::read(context.workspace)?;
    let cargo = context.workspace.cargo("test");
    let mut report = run(context, cargo, &sources, |_| true)?;
    if context.wants("doctests") {
        let mut cargo = context.workspace.cargo("test");
        cargo.args(["--quiet", "--workspace", "--doc"]);
        let outcome = Outcome::of("doctests", succeed(&mut cargo));
        report.outcomes.push(outcome);
    }
    Ok(report)
}

/// The protocols that have no lock, in every order that threads can run in: the modules `races`. Loom replaces the
/// atomics, so this is a build of its own, in which no other test works.
///
/// # Errors
/// If it does not compile.
pub fn loom(context: &Context<'_>) -> Result<Report> {
    let mut sources = Sources::read(context.workspace)?;
    sources.retain(|sources| LOOM.contains(&sources.package.as_str()));
    let mut cargo = context.workspace.cargo("test");
    cargo.args(["--release", "--lib"]);
    cargo.env("RUSTFLAGS", "--cfg loom");
    cargo.env("CARGO_TARGET_DIR", context.workspace.target.join("loom"));
    run(context, cargo, &sources, |test| test.contains("races::"))
}

/// One message of cargo about something it made.
#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
    target: Option<Target>,
    profile: Option<Profile>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Builds the test programs of the packages that can have a wanted test, by a `cargo test` command, then runs those of their
/// tests that are the suite's and wanted.
fn run(
    context: &Context<'_>,
    mut cargo: Command,
    sources: &[Sources],
    is_of_suite: fn(&str) -> bool,
) -> Result<Report> {
    let can_have = |sources: &&Sources| sources.can_have(context.suite, context.filter);
    let sources: Vec<_> = sources.iter().filter(can_have).collect();
    if sources.is_empty() {
        return Ok(Report::default());
    }
    for sources in &sources {
        cargo.args(["--package", &sources.package]);
    }
    cargo.args(["--no-run", "--message-format=json-render-diagnostics"]);
    let output = cargo
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!("the tests do not compile");
    }
    let mut report = Report::default();
    for line in String::from_utf8(output.stdout)?.lines() {
        let message: Message = serde_json::from_str(line).context("cargo's messages")?;
        let is_test = message.profile.is_some_and(|profile| profile.test);
        let (Some(program), Some(manifest), Some(target), true) = (
            message.executable,
            message.manifest_path,
            message.target,
            is_test,
        ) else {
            continue;
        };
        let directory = manifest.parent().context("a manifest is in no directory")?;
        let is_wanted =
            |test: &str| is_of_suite(test) && context.wants(&full_name(&target.name, test));
        let outcomes = run_program(&program, directory, &target.name, is_wanted)?;
        for Outcome { name, .. } in &outcomes {
            let full = format!("{}::{name}", context.suite);
            let is_told = sources.iter().any(|of| of.can_have(context.suite, &full));
            ensure!(
                is_told,
                "a filter for {full} would not find it: its sources do not tell of it"
            );
        }
        report.outcomes.extend(outcomes);
    }
    Ok(report)
}

/// The name of a crate's test within the suite.
fn full_name(krate: &str, test: &str) -> String {
    format!("{krate}::{test}")
}

/// Runs the wanted tests of one test program.
fn run_program(
    program: &Path,
    directory: &Path,
    krate: &str,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Vec<Outcome>> {
    let mut list = Command::new(program);
    let list = list
        .current_dir(directory)
        .args(["--list", "--format=terse"])
        .output()?;
    let list = String::from_utf8(list.stdout)?;
    let wanted: Vec<&str> = list
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .filter(|test| is_wanted(test))
        .collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let mut tests = Command::new(program);
    let output = tests
        .current_dir(directory)
        .arg("--exact")
        .args(&wanted)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let outcomes = wanted.into_iter().filter_map(|test| {
        let failure = match result_of(&text, test) {
            Some("ok") => None,
            Some("ignored") => return None,
            Some(_) => Some(output_of(&text, test).to_owned()),
            None => Some(format!(
                "did not report; the program ended with {}\n{}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            )),
        };
        let name = full_name(krate, test);
        Some(Outcome { name, failure })
    });
    Ok(outcomes.collect())
}

/// The word after `test NAME ... `.
fn result_of<'a>(text: &'a str, test: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix("test ")?.strip_prefix(test)?;
        let rest = rest.strip_prefix(" - should panic").unwrap_or(rest);
        rest.strip_prefix(" ... ")?.split([',', ' ']).next()
    })
}

/// What a failed test printed.
fn output_of<'a>(text: &'a str, test: &str) -> &'a str {
    let heading = format!("---- {test} stdout ----\n");
    let Some(at) = text.find(&heading) else {
        return "it printed nothing";
    };
    let body = &text[at + heading.len()..];
    let end = body.find("\n---- ").or_else(|| body.find("\nfailures:\n"));
    body[..end.unwrap_or(body.len())].trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
running 3 tests
test a::good ... ok
test a::bad ... FAILED
test a::loud - should panic ... ok
test a::slow ... ignored, takes an hour

failures:

---- a::bad stdout ----
first line
second line

---- a::other stdout ----
else

failures:
    a::bad
";

    #[test]
    fn results_are_read() {
        assert_eq!(result_of(TEXT, "a::good"), Some("ok"));
        assert_eq!(result_of(TEXT, "a::bad"), Some("FAILED"));
        assert_eq!(result_of(TEXT, "a::loud"), Some("ok"));
        assert_eq!(result_of(TEXT, "a::slow"), Some("ignored"));
        assert_eq!(result_of(TEXT, "a::goo"), None);
    }

    #[test]
    fn output_of_a_failed_test_is_its_own() {
        assert_eq!(output_of(TEXT, "a::bad"), "first line\nsecond line");
        assert_eq!(output_of(TEXT, "a::other"), "else");
        assert_eq!(output_of(TEXT, "a::good"), "it printed nothing");
    }
}

//! The suites `host` and `loom`: the tests inside the crates, each counted and selected by its own name,
//! `host::crate::path::of::test`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use super::{Context, Outcome, Report, succeed};

/// Everything that runs on the host.
///
/// # Errors
/// If something does not compile.
pub fn host(context: &Context<'_>) -> Result<Report> {
    let mut cargo = context.workspace.cargo("test");
    match krate(context.filter) {
        Some(krate) => {
            for package in packages_with(context, krate)? {
                cargo.args(["--package", &package]);
            }
        }
        None => _ = cargo.arg("--workspace"),
    }
    let mut report = run(context, cargo, |_| true)?;
    if context.wants("doctests") {
        let mut cargo = context.workspace.cargo("test");
        cargo.args(["--quiet", "--workspace", "--doc"]);
        let outcome = Outcome::of("doctests", succeed(&mut cargo));
        report.outcomes.push(outcome);
    }
    Ok(report)
}

/// The crate that a filter stays in: there is no need to build the others.
fn krate(filter: &str) -> Option<&str> {
    let (krate, _) = filter.strip_prefix("host::")?.split_once("::")?;
    Some(krate)
}

/// The packages that have a crate of this name.
fn packages_with(context: &Context<'_>, krate: &str) -> Result<Vec<String>> {
    let mut cargo = context.workspace.cargo("metadata");
    let output = cargo
        .args(["--no-deps", "--format-version=1"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("cargo's metadata")?;
    let has_crate = |package: &Package| package.targets.iter().any(|target| target.name == krate);
    let packages = metadata.packages.into_iter().filter(has_crate);
    let packages: Vec<_> = packages.map(|package| package.name).collect();
    ensure!(!packages.is_empty(), "there is no crate `{krate}`");
    Ok(packages)
}

/// The protocols that have no lock, in every order that threads can run in: the modules `races`. Loom replaces the
/// atomics, so this is a build of its own, in which no other test works.
///
/// # Errors
/// If it does not compile.
pub fn loom(context: &Context<'_>) -> Result<Report> {
    let mut cargo = context.workspace.cargo("test");
    cargo.args(["--release", "--lib"]);
    cargo.args(["--package", "sample-ring", "--package", "kcore"]);
    cargo.args(["--package", "sysroot"]);
    cargo.env("RUSTFLAGS", "--cfg loom");
    cargo.env("CARGO_TARGET_DIR", context.workspace.target.join("loom"));
    run(context, cargo, |test| test.contains("races::"))
}

/// What cargo says of the workspace.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    targets: Vec<Target>,
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

/// Builds the test programs of a `cargo test` command, then runs those of their tests that are the suite's and wanted.
fn run(context: &Context<'_>, mut cargo: Command, is_of_suite: fn(&str) -> bool) -> Result<Report> {
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
        report
            .outcomes
            .extend(run_program(&program, directory, &target.name, is_wanted)?);
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
    fn a_filter_names_a_crate_where_its_name_is_whole() {
        assert_eq!(krate("host::programs::pulse"), Some("programs"));
        assert_eq!(krate("host::programs::"), Some("programs"));
        assert_eq!(krate("host::programs"), None);
        assert_eq!(krate("programs::pulse"), None);
        assert_eq!(krate(""), None);
    }

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

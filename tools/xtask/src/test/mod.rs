//! `./run.sh test`: every suite, its time, and one last line with the verdict.

mod cargo_tests;
mod cases;
mod docs;
mod lint;
mod script;
mod sources;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::OnceLock;
use std::time::Instant;

use anyhow::{Result, anyhow, ensure};

use crate::build::{self, Image};
use crate::system;
use crate::text;
use crate::workspace::Workspace;

pub use cases::{Case, Verdict, run_case, run_cases};
pub use docs::cases as docs_cases;

/// What a suite needs to know.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The working tree.
    pub workspace: &'a Workspace,
    /// The suite's name.
    pub suite: &'static str,
    /// What the full name of a test must contain.
    pub filter: &'a str,
    /// The images that all suites share.
    pub images: &'a Images,
}

/// The images, each once somebody needed it.
#[derive(Debug, Default)]
pub struct Images {
    shipped: OnceLock<Result<Image, String>>,
    test: OnceLock<Result<Image, String>>,
    truth: OnceLock<Result<Image, String>>,
    shim: OnceLock<Result<PathBuf, String>>,
}

impl<'a> Context<'a> {
    /// Whether a test of this suite was asked for.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        format!("{}::{name}", self.suite).contains(self.filter)
    }

    /// The image of the sources as they are, built when it is first asked for.
    ///
    /// # Errors
    /// If it does not build.
    pub fn image(&self) -> Result<&'a Image> {
        self.built(&self.images.shipped, &build::SHIPPED)
    }

    /// The image with the programs that only tests run, built when it is first asked for. The shipped one is built first,
    /// so that no two builds write the kernel.
    ///
    /// # Errors
    /// If it does not build.
    pub fn test_image(&self) -> Result<&'a Image> {
        self.image()?;
        self.built(&self.images.test, &build::TEST)
    }

    /// The image with the programs of truth tests, built when it is first asked for, after the others.
    ///
    /// # Errors
    /// If it does not build.
    pub fn truth_image(&self) -> Result<&'a Image> {
        self.test_image()?;
        self.built(&self.images.truth, &build::TRUTH)
    }

    /// What gives an emulated machine performance counters, built when it is first asked for.
    ///
    /// # Errors
    /// If it does not build.
    pub fn shim(&self) -> Result<&'a Path> {
        let build = || build::shim(self.workspace).map_err(|error| format!("{error:#}"));
        let shim = self.images.shim.get_or_init(build);
        shim.as_deref().map_err(|error| anyhow!("{error}"))
    }

    fn built(
        &self,
        cell: &'a OnceLock<Result<Image, String>>,
        edition: &build::Edition,
    ) -> Result<&'a Image> {
        let build = || build::build(self.workspace, edition).map_err(|error| format!("{error:#}"));
        let image = cell.get_or_init(build);
        image.as_ref().map_err(|error| anyhow!("{error}"))
    }
}

/// How one test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Name within the suite.
    pub name: String,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

impl Outcome {
    /// Of a test with this name.
    #[must_use]
    pub fn of(name: &str, verdict: Verdict) -> Self {
        Self {
            name: name.to_owned(),
            failure: verdict.err().map(|error| format!("{error:#}")),
        }
    }
}

/// How a suite ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Every test that ran.
    pub outcomes: Vec<Outcome>,
    /// What could not be run here, and why.
    pub notes: Vec<String>,
}

/// Runs the tests asked for. An error is a failure too: of the suite as a whole.
type Suite = fn(&Context<'_>) -> Result<Report>;

/// Quick ones first.
const SUITES: [(&str, Suite); 5] = [
    ("lint", lint::run),
    ("host", cargo_tests::host),
    ("loom", cargo_tests::loom),
    ("script", script::run),
    ("system", system::run),
];

/// Runs every test whose `suite::name` contains the filter; a filter that is a suite's name, or
/// begins with one and `::`, stays in that suite. The status is success if at least one test ran and none failed.
///
/// # Errors
/// If stdout is gone.
pub fn run(workspace: &Workspace, filter: &str) -> Result<ExitCode> {
    let mut out = io::stdout().lock();
    let (passed, failed) = run_suites(&mut out, &SUITES, workspace, filter)?;
    if passed + failed == 0 {
        let suites = SUITES.map(|(suite, _)| suite);
        eprintln!("{}", nothing("test", filter, "suites", &suites));
    }
    verdict(&mut out, passed, failed)
}

/// What is said of a filter that leaves nothing of what there is.
pub fn nothing(thing: &str, filter: &str, kinds: &str, names: &[&str]) -> String {
    let names = names.join(", ");
    text::wrapped(&format!(
        "xtask: no {thing} has a name that contains {filter:?}; the {kinds} are {names}"
    ))
}

/// Runs the suites that the filter leaves; returns how many tests passed and how many failed.
fn run_suites(
    out: &mut impl Write,
    suites: &[(&'static str, Suite)],
    workspace: &Workspace,
    filter: &str,
) -> io::Result<(usize, usize)> {
    let only = filter.split("::").next().unwrap_or("");
    let only = suites.iter().find(|(suite, _)| *suite == only);
    let (mut passed, mut failed) = (0, 0);
    let images = Images::default();
    for &(suite, run) in suites {
        if only.is_some_and(|(only, _)| *only != suite) {
            continue;
        }
        let context = Context {
            workspace,
            suite,
            filter,
            images: &images,
        };
        let start = Instant::now();
        let report = run(&context).unwrap_or_else(|error| Report {
            outcomes: vec![Outcome::of("suite", Err(error))],
            notes: Vec::new(),
        });
        for note in &report.notes {
            writeln!(out, "{suite}: not run: {note}")?;
        }
        if report.outcomes.is_empty() {
            continue;
        }
        let failures = print_failures(out, suite, &report.outcomes)?;
        let successes = report.outcomes.len() - failures;
        let seconds = start.elapsed().as_secs_f64();
        writeln!(
            out,
            "{suite}: {successes} passed, {failures} failed, {seconds:.1} s"
        )?;
        passed += successes;
        failed += failures;
    }
    Ok((passed, failed))
}

/// Prints the last line; the status is success if something passed and nothing failed.
///
/// # Errors
/// If there is nobody to print to.
pub fn verdict(out: &mut impl Write, passed: usize, failed: usize) -> Result<ExitCode> {
    writeln!(out, "{passed} passed, {failed} failed")?;
    Ok(if failed == 0 && passed > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Prints what failed, and why; returns how many that are.
///
/// # Errors
/// If there is nobody to print to.
pub fn print_failures(
    out: &mut impl Write,
    suite: &str,
    outcomes: &[Outcome],
) -> io::Result<usize> {
    let mut failures = 0;
    for outcome in outcomes {
        if let Some(why) = &outcome.failure {
            failures += 1;
            writeln!(out, "FAILED {suite}::{}", outcome.name)?;
            for line in why.lines() {
                writeln!(out, "    {line}")?;
            }
        }
    }
    Ok(failures)
}

/// Runs a command that has to succeed.
///
/// # Errors
/// Everything it printed, if it does not.
pub fn succeed(command: &mut Command) -> Verdict {
    output(command).map(drop)
}

/// What a command writes to its standard output. It has to succeed.
///
/// # Errors
/// Everything it printed, if it does not.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    ensure!(output.status.success(), "{out}{err}");
    Ok(out.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A suite of three tests, of which `bad` fails.
    fn sample(context: &Context<'_>) -> Result<Report> {
        let names = ["good", "better", "bad"];
        let wanted = names.into_iter().filter(|name| context.wants(name));
        let outcome = |name: &str| Outcome {
            name: name.into(),
            failure: (name == "bad").then(|| "first\nsecond".into()),
        };
        Ok(Report {
            outcomes: wanted.map(outcome).collect(),
            notes: Vec::new(),
        })
    }

    fn broken(_: &Context<'_>) -> Result<Report> {
        Err(anyhow!("does not compile"))
    }

    /// What is printed for a filter, without times, and whether the status is success.
    fn printed(suites: &[(&'static str, Suite)], filter: &str) -> (String, bool) {
        let workspace = Workspace::find().unwrap();
        let mut out = Vec::new();
        let (passed, failed) = run_suites(&mut out, suites, &workspace, filter).unwrap();
        let status = verdict(&mut out, passed, failed).unwrap();
        let text = String::from_utf8(out).unwrap();
        let untimed = |line: &str| {
            let timed = line
                .strip_suffix(" s")
                .and_then(|line| line.rsplit_once(", "));
            timed.map_or(line.to_owned(), |(line, _)| format!("{line}, TIME"))
        };
        let lines: Vec<_> = text.lines().map(untimed).collect();
        (lines.join("\n"), status == ExitCode::SUCCESS)
    }

    #[test]
    fn every_suite_is_told_with_its_time_and_the_last_line_is_the_verdict() {
        let suites: [(_, Suite); 2] = [("one", sample), ("two", sample)];
        let text = "FAILED one::bad\n    first\n    second\none: 2 passed, 1 failed, TIME\n\
                    FAILED two::bad\n    first\n    second\ntwo: 2 passed, 1 failed, TIME\n\
                    4 passed, 2 failed";
        assert_eq!(printed(&suites, ""), (text.into(), false));
        let text = "two: 1 passed, 0 failed, TIME\n1 passed, 0 failed";
        assert_eq!(printed(&suites, "two::good"), (text.into(), true));
        let text =
            "one: 1 passed, 0 failed, TIME\ntwo: 1 passed, 0 failed, TIME\n2 passed, 0 failed";
        assert_eq!(printed(&suites, "better"), (text.into(), true));
    }

    #[test]
    fn a_filter_that_leaves_nothing_is_a_failure() {
        let suites: [(_, Suite); 1] = [("one", sample)];
        assert_eq!(
            printed(&suites, "nothing"),
            ("0 passed, 0 failed".into(), false)
        );
        assert_eq!(
            super::nothing("soak", "boat", "soaks", &["boots", "storm"]),
            "xtask: no soak has a name that contains \"boat\"; the soaks are boots, storm"
        );
    }

    #[test]
    fn a_suite_that_cannot_run_is_a_failure() {
        let suites: [(_, Suite); 2] = [("one", broken), ("two", sample)];
        let (text, success) = printed(&suites, "one");
        assert!(
            text.contains("FAILED one::suite\n    does not compile"),
            "{text}"
        );
        assert!(text.ends_with("\n0 passed, 1 failed") && !success, "{text}");
    }
}

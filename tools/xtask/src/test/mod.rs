//! `./run.sh test`: every suite, its time, and one last line with the verdict.

mod cargo_tests;
mod cases;
mod lint;
mod script;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Instant;

use anyhow::{Result, anyhow};

use crate::build::{self, Image};
use crate::system;
use crate::workspace::Workspace;

pub use cases::{Case, Verdict, run_cases};

/// What a suite needs to know.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The working tree.
    pub workspace: &'a Workspace,
    /// The suite's name.
    pub suite: &'static str,
    /// What the full name of a test must contain.
    pub filter: &'a str,
    image: &'a ImageCell,
}

/// The image, once somebody needed it.
type ImageCell = OnceLock<Result<Image, String>>;

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
        let build = || build::build(self.workspace).map_err(|error| format!("{error:#}"));
        let image = self.image.get_or_init(build);
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
    let only = filter.split("::").next().unwrap_or("");
    let only = SUITES.iter().find(|(suite, _)| *suite == only);
    let (mut passed, mut failed) = (0, 0);
    let image = OnceLock::new();
    for &(suite, run) in &SUITES {
        if only.is_some_and(|(only, _)| *only != suite) {
            continue;
        }
        let context = Context {
            workspace,
            suite,
            filter,
            image: &image,
        };
        let start = Instant::now();
        let report = run(&context).unwrap_or_else(|error| Report {
            outcomes: vec![Outcome {
                name: "suite".into(),
                failure: Some(format!("{error:#}")),
            }],
            notes: Vec::new(),
        });
        for note in &report.notes {
            writeln!(out, "{suite}: not run: {note}")?;
        }
        if report.outcomes.is_empty() {
            continue;
        }
        let failures = print_failures(&mut out, suite, &report)?;
        let successes = report.outcomes.len() - failures;
        let seconds = start.elapsed().as_secs_f64();
        writeln!(
            out,
            "{suite}: {successes} passed, {failures} failed, {seconds:.1} s"
        )?;
        passed += successes;
        failed += failures;
    }
    if passed + failed == 0 {
        eprintln!("xtask: no test has a name that contains {filter:?}");
    }
    writeln!(out, "{passed} passed, {failed} failed")?;
    Ok(if failed == 0 && passed > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn print_failures(out: &mut impl Write, suite: &str, report: &Report) -> io::Result<usize> {
    let mut failures = 0;
    for outcome in &report.outcomes {
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

//! Tests that are functions of this program, a few of them at a time.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use super::{Context, Outcome, Report};

/// Passed, or why not.
pub type Verdict = anyhow::Result<()>;

/// One test.
pub struct Case<'a> {
    /// Unique in its suite.
    pub name: &'static str,
    /// The test.
    pub body: Box<dyn Fn() -> Verdict + Send + Sync + 'a>,
}

impl<'a> Case<'a> {
    /// A test with this name.
    pub fn new(name: &'static str, body: impl Fn() -> Verdict + Send + Sync + 'a) -> Self {
        let body = Box::new(body);
        Self { name, body }
    }
}

/// Runs those asked for, `jobs` at a time; says on stderr how each ended, because they take their time.
pub fn run_cases(context: &Context<'_>, jobs: usize, cases: &[Case<'_>]) -> Report {
    let wanted: Vec<_> = cases
        .iter()
        .filter(|case| context.wants(case.name))
        .collect();
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(vec![None; wanted.len()]);
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some((index, case)) = take(&next, &wanted) {
                    let outcome = run_case(context, case);
                    if let Ok(mut outcomes) = outcomes.lock() {
                        outcomes[index] = Some(outcome);
                    }
                }
            });
        }
    });
    let outcomes = outcomes
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    Report {
        outcomes: outcomes.into_iter().flatten().collect(),
        notes: Vec::new(),
    }
}

fn take<'a, 'c>(next: &AtomicUsize, wanted: &[&'c Case<'a>]) -> Option<(usize, &'c Case<'a>)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, *wanted.get(index)?))
}

/// Runs one, and says on stderr how it ended.
pub fn run_case(context: &Context<'_>, case: &Case<'_>) -> Outcome {
    let start = Instant::now();
    let verdict = (case.body)();
    let word = if verdict.is_ok() { "ok" } else { "FAILED" };
    let seconds = start.elapsed().as_secs_f64();
    eprintln!("{}::{} {word} {seconds:.1} s", context.suite, case.name);
    Outcome::of(case.name, verdict)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test::Images;
    use crate::workspace::Workspace;

    #[test]
    fn each_wanted_case_runs_once_and_in_order() {
        let workspace = Workspace::find().unwrap();
        let context = Context {
            workspace: &workspace,
            suite: "sample",
            filter: "sample::a",
            images: &Images::default(),
        };
        let ran = AtomicUsize::new(0);
        let count = || {
            ran.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        let cases = [
            Case::new("a1", count),
            Case::new("b", count),
            Case::new("a2", || anyhow::bail!("no")),
            Case::new("a3", count),
        ];
        let report = run_cases(&context, 2, &cases);
        assert_eq!(ran.load(Ordering::Relaxed), 2);
        let outcomes: Vec<_> = report
            .outcomes
            .iter()
            .map(|o| (o.name.as_str(), o.failure.as_deref()))
            .collect();
        assert_eq!(outcomes, [("a1", None), ("a2", Some("no")), ("a3", None)]);
    }
}

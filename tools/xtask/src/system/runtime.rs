//! What programs are built against, exercised by the program `runtime` of the test archive: each case on 1, 2 and 4 CPUs.

use anyhow::ensure;

use crate::cli::BootOptions;
use crate::test::{Case, Context, Verdict};

use super::session::Session;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("threads_and_locks_work_on_1_cpu", || run(context, 1)),
        Case::new("threads_and_locks_work_on_2_cpus", || run(context, 2)),
        Case::new("threads_and_locks_work_on_4_cpus", || run(context, 4)),
    ]
}

/// What the program can do.
const CASES: [&str; 13] = [
    "mutex", "priority", "condvar", "timeout", "channel", "once", "join", "detach", "scope",
    "limit", "sleep", "heap", "large",
];

fn run(context: &Context<'_>, smp: u32) -> Verdict {
    let options = BootOptions {
        smp,
        ..BootOptions::default()
    };
    let mut session = Session::boot_image(context.test_image()?, options)?;
    for case in CASES {
        let said = session.run(&format!("run runtime {case}"))?;
        ensure!(said == format!("{case} ok\n"), "{case}: {said}");
    }
    let said = session.run("run runtime nonsense")?;
    let refusal = format!("runtime: CASE nonsense: it is one of {}", CASES.join(" "));
    ensure!(said.starts_with(&refusal), "{said}");
    session.power_off()
}

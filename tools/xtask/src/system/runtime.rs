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

fn run(context: &Context<'_>, smp: u32) -> Verdict {
    let options = BootOptions {
        smp,
        ..BootOptions::default()
    };
    let mut session = Session::boot_image(context.test_image()?, options)?;
    let cases = session.run("run runtime")?;
    ensure!(!cases.is_empty(), "it lists no case");
    for case in cases.lines() {
        let said = session.run(&format!("run runtime {case}"))?;
        ensure!(said == format!("{case} ok\n"), "{case}: {said}");
    }
    session.power_off()
}

//! The benchmark program in the test archive.

use anyhow::ensure;

use crate::cli::BootOptions;
use crate::test::{Case, Context, Verdict};

use super::session::Session;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![Case::new("the_benchmark_measures", || measures(context))]
}

fn measures(context: &Context<'_>) -> Verdict {
    let options = BootOptions {
        icount: true,
        smp: 1,
        ..BootOptions::default()
    };
    let mut session = Session::boot_image(context.test_image()?, options)?;
    let text = session.run("run bench")?;
    let count = text.trim().strip_prefix("null ").map(str::parse);
    ensure!(matches!(count, Some(Ok(1_u64..=1_000))), "{text}");
    session.power_off()
}

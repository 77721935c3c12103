//! The suite `system`: boots the shipped image in QEMU and talks to it over the serial line, as a user does.

mod features;
mod guest;
mod machine;
mod miniature;
mod screen;

use anyhow::Result;

use crate::test::{Context, Report, run_cases};

/// Machines that run at the same time.
const JOBS: usize = 2;

/// Runs the tests asked for.
///
/// # Errors
/// If the image does not build.
pub fn run(context: &Context<'_>) -> Result<Report> {
    let mut cases = machine::cases(context);
    cases.extend(features::cases(context));
    Ok(run_cases(context, JOBS, &cases))
}

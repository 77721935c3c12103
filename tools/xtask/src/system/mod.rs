//! The suite `system`: boots the shipped image in QEMU and talks to it over the serial line, as a user does.

pub mod archive;
mod arguments;
mod bench;
mod binomial;
mod boot;
pub mod calm;
mod card;
mod client;
mod conformance;
mod demo;
mod disassembly;
mod exact;
pub mod features;
mod forged;
mod gdb;
pub mod guest;
mod input;
mod inspect;
mod interrupt;
mod isolation;
mod lscpu;
mod machine;
pub mod miniature;
pub mod net;
mod panic;
mod pmu;
pub mod probe;
mod profd;
mod profile;
mod reboot;
mod refusals;
pub mod remote;
pub mod report;
mod runtime;
mod screen;
pub mod session;
pub mod shell;
mod shortage;
mod sockets;
pub mod storm;
mod sweep;
pub mod tables;
mod truth;
mod visits;
mod walkthrough;

use anyhow::Result;

use crate::soak;
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
    cases.extend(refusals::cases(context));
    cases.extend(shortage::cases(context));
    cases.extend(panic::cases(context));
    cases.extend(boot::cases(context));
    cases.extend(conformance::cases(context));
    cases.extend(isolation::cases(context));
    cases.extend(shell::cases(context));
    cases.extend(arguments::cases(context));
    cases.extend(input::cases(context));
    cases.extend(inspect::cases(context));
    cases.extend(reboot::cases(context));
    cases.extend(interrupt::cases(context));
    cases.extend(net::cases(context));
    cases.extend(sockets::cases(context));
    cases.extend(profile::cases(context));
    cases.extend(profd::cases(context));
    cases.extend(pmu::cases(context));
    cases.extend(lscpu::cases(context));
    cases.extend(truth::cases(context));
    cases.extend(storm::cases(context));
    cases.extend(card::cases(context));
    cases.extend(demo::cases(context));
    cases.extend(bench::cases(context));
    cases.extend(client::cases(context));
    cases.extend(forged::cases(context));
    cases.extend(remote::cases(context));
    cases.extend(runtime::cases(context));
    cases.extend(visits::cases(context));
    cases.extend(walkthrough::cases(context));
    cases.extend(gdb::cases(context));
    cases.extend(sweep::cases(context));
    cases.extend(exact::cases(context));
    cases.extend(soak::short_cases(context));
    let mut report = run_cases(context, JOBS, &cases);
    gdb::note(context, &mut report);
    Ok(report)
}

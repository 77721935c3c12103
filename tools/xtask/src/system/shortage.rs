//! Machines with too little memory: each says how much is needed, all say the same, and it is true.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use crate::cli::BootOptions;
use crate::qemu::Machine;
use crate::test::{Case, Context, Verdict};

use super::features::{fails, is_told, refuses};
use super::session::Session;

const MIB: u64 = 1 << 20;
/// The kernel is loaded at 1 MiB and has about 300 KiB.
const IN_THE_KERNEL: u64 = MIB + (150 << 10);
/// Most KiB that the kernel may count beyond what it then takes.
const SPARE_KIB: u64 = 128;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("too_little_memory_is_told_truly_on_1_cpu", || {
            told(context, 1)
        }),
        Case::new("too_little_memory_is_told_truly_on_4_cpus", || {
            told(context, 4)
        }),
        Case::new("an_archive_over_the_kernel_is_told", || over(context)),
    ]
}

fn options(smp: u32, mem: u32) -> BootOptions {
    BootOptions {
        smp,
        mem,
        ..BootOptions::default()
    }
}

/// Memory of a machine where the archive lies at this address.
fn with_archive_at(context: &Context<'_>, at: u64) -> Result<u64> {
    let archive = context.image()?.bootfs.as_ref();
    let archive = archive.context("the image has an archive")?;
    Ok(at + fs::metadata(archive)?.len() + Machine::ACPI_BYTES)
}

/// The least MiB with which so many CPUs start, as a machine says that has less.
///
/// # Errors
/// If one that has hardly more than the archive does not say it.
pub fn least(context: &Context<'_>, smp: u32) -> Result<u32> {
    let smallest = with_archive_at(context, 2 * MIB)?.div_ceil(MIB) as u32;
    let least = needed(&fails(context.image()?, options(smp, smallest))?)?;
    ensure!(
        least > smallest,
        "{smallest} MiB are refused, and {least} needed"
    );
    Ok(least)
}

fn told(context: &Context<'_>, smp: u32) -> Verdict {
    let least = least(context, smp)?;
    let told = needed(&fails(context.image()?, options(smp, least - 1))?)?;
    ensure!(told == least, "{told} and {least} MiB are needed");

    let mut session = Session::boot(context, options(smp, least))?;
    session.profile("100")?;
    let line = session.run("dmesg memory:")?;
    let mut numbers = line.split_whitespace().filter_map(|word| word.parse().ok());
    let (taken, counted): (u64, u64) = numbers.next().zip(numbers.next()).context(line.clone())?;
    ensure!(
        (taken..taken + SPARE_KIB).contains(&counted),
        "the kernel does not count what it takes: {line}"
    );
    session.power_off()
}

/// How many MiB a machine that refuses says it needs.
fn needed(said: &str) -> Result<u32> {
    is_told(said, &["Sonde: not enough memory: ", " MiB are needed"])?;
    let number = said
        .split("at least ")
        .nth(1)
        .and_then(|rest| rest.split(' ').next());
    let number = number.with_context(|| format!("no number in: {said}"))?;
    Ok(number.parse()?)
}

fn over(context: &Context<'_>) -> Verdict {
    let kib = with_archive_at(context, IN_THE_KERNEL)? >> 10;
    let options = BootOptions {
        qemu_args: vec!["-m".into(), format!("{kib}K")],
        ..BootOptions::default()
    };
    let words = ["Sonde: not enough memory", "archive lies over the kernel"];
    refuses(context.image()?, options, &words)
}

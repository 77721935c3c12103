//! The kernel's end: what it says of a panic and of its own faults.

use anyhow::{Context as _, Result, ensure};
use ipc::bootfs::{Bootfs, KERNEL_SYMBOLS};

use crate::cli::BootOptions;
use crate::qemu::{PANIC, debug_exit};
use crate::test::{Case, Context, Verdict};

use super::archive;
use super::disassembly::Kernel;
use super::features::fails;
use super::probe::Probe;

/// Every register that an exception shows.
const REGISTERS: [&str; 18] = [
    "rip", "rsp", "rflags", "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "r8", "r9", "r10",
    "r11", "r12", "r13", "r14", "r15",
];
/// Those that a panic shows.
const AT_A_PANIC: [&str; 4] = ["rsp", "rbp", "rflags", "cr2"];

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("a_panic_says_what_and_where", || {
            let said = panics(context, "test")?;
            says(
                &said,
                &[
                    "panic: as the command line asks",
                    "  at microkernel/src/boot/trouble.rs:",
                ],
            )?;
            shows_registers(&said, &AT_A_PANIC)?;
            shows_callers(&said, "core::panicking::panic_fmt")
        }),
        Case::new("a_fault_in_the_kernel_says_what_and_where", || {
            let said = panics(context, "fault")?;
            says(
                &said,
                &["panic: exception in the kernel: vector 14 ", "(cpu 0)"],
            )?;
            shows_registers(&said, &REGISTERS)?;
            shows_callers(&said, "arch::trouble::fault")
        }),
        Case::new("a_stack_overflow_in_the_kernel_says_what_and_where", || {
            let said = panics(context, "stack")?;
            says(&said, &["panic: fatal exception: vector 8 ", "(cpu 0)"])?;
            shows_registers(&said, &REGISTERS)?;
            shows_callers(&said, "arch::trouble::overflow")
        }),
        Case::new("a_panic_without_symbols_shows_addresses", || bare(context)),
        Case::new("a_fault_in_the_kernel_while_a_profile_is_on", || {
            sampled(context)
        }),
    ]
}

/// Boots a kernel that is asked to fail; returns what it said.
fn panics(context: &Context<'_>, how: &str) -> Result<String> {
    fails(context.image()?, options(how))
}

fn options(how: &str) -> BootOptions {
    BootOptions {
        cmdline: format!("panic={how}"),
        ..BootOptions::default()
    }
}

/// The CPU that ends the machine is still sampled. Its NMIs do not stop it, as they stop the others.
fn sampled(context: &Context<'_>) -> Verdict {
    const NOWHERE: u64 = 0xffff_ffff_c0de_0000;
    let image = context.image()?;
    let kernel = Kernel::new(std::fs::read(&image.kernel)?)?;
    let mut probe = Probe::boot(image)?;
    let (mut remote, _) = probe.profile("profile 2000 all")?;
    remote.run_to(&[kernel.span("interrupt_entry")?.start])?;
    remote.set_rip(NOWHERE)?;
    // The last step of the dump.
    remote.run_to(&[kernel.rust("5fatal11show_events")?.start])?;
    probe.bus.send_nmi()?;
    remote.detach()?;
    let mut guest = probe.session.guest;
    guest.expect_exit(debug_exit(PANIC))?;
    let said = guest.transcript();
    let (_, dump) = said.split_once("panic: ").context("no panic")?;
    let what =
        format!("exception in the kernel: vector 14 error 0x10 address {NOWHERE:#x} (cpu 0)");
    says(dump, &[&what])?;
    shows_registers(dump, &REGISTERS)
}

fn bare(context: &Context<'_>) -> Verdict {
    let image = archive::changed(context, "symbols", |bytes| {
        let symbols = Bootfs::parse(bytes).ok()?.find(KERNEL_SYMBOLS)?;
        let mut bytes = bytes.to_vec();
        bytes[symbols.offset..][..symbols.data.len()].fill(0x5a);
        Some(bytes)
    })?;
    let said = fails(&image, options("test"))?;
    ensure!(
        said.contains("\n  <- 0xffffffff8") && !said.contains('`'),
        "no addresses in:\n{said}"
    );
    Ok(())
}

fn says(said: &str, parts: &[&str]) -> Verdict {
    for part in parts {
        ensure!(said.contains(part), "no {part:?} in:\n{said}");
    }
    // The other CPUs are silent, because they were stopped.
    ensure!(!said.contains("does not stop"), "{said}");
    Ok(())
}

/// These, in this order, and nothing else are followed by 16 digits.
fn shows_registers(said: &str, names: &[&str]) -> Verdict {
    let words: Vec<&str> = said.split_whitespace().collect();
    let is_value = |word: &str| word.len() == 16 && u64::from_str_radix(word, 16).is_ok();
    let pairs = words.windows(2).filter(|pair| is_value(pair[1]));
    let shown: Vec<&str> = pairs.map(|pair| pair[0]).collect();
    ensure!(shown == names, "{shown:?}, not {names:?}, in:\n{said}");
    Ok(())
}

/// A backtrace that begins in this function and goes to the kernel's entry.
fn shows_callers(said: &str, innermost: &str) -> Verdict {
    let frames: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("  <- "))
        .collect();
    let is_at = |frame: Option<&&str>, function: &str| {
        let offset = frame.and_then(|frame| {
            frame
                .strip_prefix("kernel`")?
                .strip_prefix(function)?
                .strip_prefix("+0x")
        });
        offset.is_some_and(|offset| u64::from_str_radix(offset, 16).is_ok())
    };
    ensure!(
        is_at(frames.first(), innermost) && is_at(frames.last(), "arch::start::enter"),
        "{frames:?} in:\n{said}"
    );
    ensure!(
        frames.iter().all(|frame| frame.starts_with("kernel`")),
        "{frames:?}"
    );
    Ok(())
}

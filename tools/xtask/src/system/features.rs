//! CPUs that lack what Sonde needs: one line that says so, and a failure.

use anyhow::ensure;

use crate::build::Image;
use crate::cli::BootOptions;
use crate::qemu::{Machine, Network, PANIC, Serial, debug_exit};
use crate::test::{Case, Context, Verdict};

use super::guest::Guest;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("a_cpu_without_long_mode_is_told", || {
            lacks(context, "qemu32", "64-bit")
        }),
        Case::new("a_cpu_without_no_execute_is_told", || {
            lacks(context, "max,-nx", "NX")
        }),
        Case::new("a_cpu_without_syscall_is_told", || {
            lacks(context, "max,-syscall", "SYSCALL")
        }),
    ]
}

fn lacks(context: &Context<'_>, model: &str, feature: &str) -> Verdict {
    let cpu = model.into();
    let options = BootOptions {
        cpu,
        ..BootOptions::default()
    };
    refuses(context.image()?, options, &["lacks", feature])
}

/// Boots a machine that cannot work: it must say so in one line that holds all these words, and end as a failure.
///
/// # Errors
/// If it does not.
pub fn refuses(image: &Image, options: BootOptions, words: &[&str]) -> Verdict {
    let machine = Machine {
        options,
        serial: Serial::Pipes,
        network: Network::Closed,
    };
    let mut guest = Guest::start(machine.command(image))?;
    guest.expect_exit(debug_exit(PANIC))?;
    let transcript = guest.transcript();
    let told = |line: &str| words.iter().all(|word| line.contains(word));
    ensure!(
        transcript.lines().any(told),
        "no line with {words:?} in:\n{transcript}"
    );
    Ok(())
}

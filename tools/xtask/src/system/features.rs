//! CPUs that lack what Sonde needs: one line that says so, and a failure.

use anyhow::{Result, ensure};

use crate::build::Image;
use crate::cli::BootOptions;
use crate::qemu::{PANIC, debug_exit};
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
        Case::new("a_cpu_without_what_the_start_uses_is_told", || {
            lacks(context, "max,level=0", "CPUID features")?;
            lacks(context, "max,xlevel=0", "64-bit")?;
            lacks(context, "max,-msr", "model-specific")?;
            lacks(context, "max,-pae", "PAE")
        }),
        Case::new("a_cpu_without_what_compiled_code_uses_is_told", || {
            lacks(context, "max,-cmov", "CMOV")?;
            lacks(context, "max,-cx8", "CMPXCHG8B")?;
            lacks(context, "max,-fxsr", "FXSAVE")?;
            lacks(context, "max,-sse", "SSE ")?;
            lacks(context, "max,-sse2", "SSE2")
        }),
    ]
}

fn lacks(context: &Context<'_>, model: &str, feature: &str) -> Verdict {
    let options = BootOptions {
        cpu: model.into(),
        ..BootOptions::default()
    };
    refuses(context.image()?, options, &["lacks", feature])
}

/// Boots a machine that cannot work: it must say so in one line, which holds all these words, and end as a failure.
///
/// # Errors
/// If it does not.
pub fn refuses(image: &Image, options: BootOptions, words: &[&str]) -> Verdict {
    is_told(&fails(image, options)?, words)
}

/// Boots a machine that must end as a failure; returns all it said.
///
/// # Errors
/// If it goes on or ends otherwise.
pub fn fails(image: &Image, options: BootOptions) -> Result<String> {
    let mut guest = Guest::boot(image, options)?;
    guest.expect_exit(debug_exit(PANIC))?;
    Ok(guest.transcript())
}

/// Fails unless a machine that could not work said so in one line, which holds all these words, and nothing else.
///
/// # Errors
/// What it said instead.
pub fn is_told(said: &str, words: &[&str]) -> Verdict {
    let lines = said.lines().filter(|line| !line.is_empty()).count();
    ensure!(
        lines == 1 && words.iter().all(|word| said.contains(word)),
        "not one line with {words:?}, but:\n{said}"
    );
    Ok(())
}

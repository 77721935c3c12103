//! How many instructions it takes from reset to the prompt.
//!
//! Under `-icount` the time-stamp counter, which starts at reset, is the number of instructions, with a nanosecond for each one
//! that nobody has anything to do: waiting counts. The shell reads it when the first prompt has left the serial line, and
//! writes it to the log. So it does not matter when the host sees the prompt. The firmware's part is in the figure: on several
//! CPUs QEMU lets one run at a time, and long, while the others wait.

use anyhow::{Context, Result};

use crate::build::Image;
use crate::cli::BootOptions;
use crate::system::session::Session;

/// What the shell writes to the log.
const LINE: &str = "shell: first prompt at TSC ";

/// Instructions from reset to the prompt, on a machine with so many CPUs.
///
/// # Errors
/// If it does not get there, or the log does not say when.
pub fn to_prompt(image: &Image, smp: u32) -> Result<u64> {
    let options = BootOptions {
        smp,
        icount: true,
        ..BootOptions::default()
    };
    let mut session = Session::boot_image(image, options)?;
    let log = session.run("dmesg prompt")?;
    session.power_off()?;
    parse(&log).with_context(|| format!("no line `{LINE}` and a number in the log:\n{log}"))
}

/// The counter in the first such line.
fn parse(log: &str) -> Option<u64> {
    let (_, rest) = log.split_once(LINE)?;
    rest.lines().next()?.trim_end().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_is_read_from_the_log() {
        let line = "    0.012345 shell: first prompt at TSC 18012345\n";
        assert_eq!(parse(line), Some(18_012_345));
        assert_eq!(
            parse(&format!("{line}{}", line.replace('1', "2"))),
            parse(line)
        );
        assert_eq!(parse(""), None);
        assert_eq!(parse("shell: first prompt at TSC soon\n"), None);
    }
}

//! Whether the host's CPU can be used.
//!
//! `/dev/kvm` may exist and yet be unusable: nested without the machinery, QEMU aborts on the first MSR it sets. So it is tried
//! with a machine that never runs, before the real one has read a byte of input.

use std::fmt;
use std::io::{self, Read, Write};
use std::process::{ExitStatus, Stdio};

use crate::cli::{Accel, BootOptions};
use crate::text;

use super::command::bare;

/// The model that is the host's own CPU, which only the host has.
pub const HOST: &str = "host";

/// Falls back to TCG, with a message that says why, if KVM was asked for and does not work.
pub fn choose(options: &mut BootOptions) {
    if options.accel != Accel::Kvm {
        return;
    }
    if let Err(why) = try_out(&options.cpu) {
        let message = format!("xtask: KVM cannot be used here: {why}; emulating with TCG");
        eprintln!("{}", text::wrapped(&message));
        options.accel = Accel::Tcg;
        options.cpu = without_host(&options.cpu);
    }
}

/// The model to emulate in place of one.
fn without_host(cpu: &str) -> String {
    match cpu.split_once(',') {
        Some((HOST, features)) => format!("{},{features}", BootOptions::default().cpu),
        None if cpu == HOST => BootOptions::default().cpu,
        _ => cpu.to_owned(),
    }
}

/// Why a machine with KVM does not come to be.
enum Unusable {
    /// QEMU cannot be started, or not be talked to.
    Io(io::Error),
    /// QEMU says so.
    Said(String),
    /// QEMU ends without a word.
    Ended(ExitStatus),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::Said(words) => f.write_str(words),
            Self::Ended(status) => write!(f, "QEMU ended with {status}"),
        }
    }
}

/// Makes a stopped machine with this CPU model, and ends it.
fn try_out(cpu: &str) -> Result<(), Unusable> {
    let mut qemu = bare();
    qemu.args(["-accel", "kvm", "-cpu", cpu, "-S", "-monitor", "stdio"]);
    qemu.stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = qemu.spawn().map_err(Unusable::Io)?;
    if let Some(mut stdin) = child.stdin.take() {
        // It may have aborted already; its status says so.
        let _ = stdin.write_all(b"quit\n");
    }
    let mut said = Vec::new();
    if let Some(mut stderr) = child.stderr.take() {
        stderr.read_to_end(&mut said).map_err(Unusable::Io)?;
    }
    let status = child.wait().map_err(Unusable::Io)?;
    if status.success() {
        return Ok(());
    }
    Err(reason(&String::from_utf8_lossy(&said)).map_or(Unusable::Ended(status), Unusable::Said))
}

/// The first line that is no warning, without the program's name.
fn reason(said: &str) -> Option<String> {
    let mut lines = said.lines().filter(|line| !line.trim().is_empty());
    let line = lines.find(|line| !line.contains("warning:"))?;
    let words = line.split_once(": ").map_or(line, |(_, words)| words);
    Some(words.trim_start_matches("error: ").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_thing_that_qemu_says_is_the_reason() {
        let said = "qemu: warning: host doesn't support it\n\
                    qemu: error: failed to set MSR 0x10a to 0x69\n\
                    qemu: kvm.c:3183: Assertion failed.\n";
        let why = reason(said);
        assert_eq!(why.as_deref(), Some("failed to set MSR 0x10a to 0x69"));
        let said = "qemu: Could not access KVM kernel module: Permission denied\n";
        let why = reason(said).unwrap();
        assert_eq!(why, "Could not access KVM kernel module: Permission denied");
        assert_eq!(reason("\nqemu: warning: x\n"), None);
    }

    #[test]
    fn the_hosts_own_model_is_not_emulated() {
        let max = BootOptions::default().cpu;
        assert_eq!(without_host("host"), max);
        assert_eq!(without_host("host,-avx"), format!("{max},-avx"));
        assert_eq!(without_host("EPYC,-avx"), "EPYC,-avx");
    }
}

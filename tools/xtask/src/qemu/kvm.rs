//! Whether the host's CPU can be used.
//!
//! `/dev/kvm` may exist and yet be unusable: nested without the machinery, QEMU aborts on the first MSR it sets. So it is tried
//! with a machine that never runs, before the real one has read a byte of input. A KVM of the kind `kvm_pvm`, of hosts that are guests,
//! starts any machine, but a system call of one that is not made for it comes to its kernel without the kernel's rights.

use std::fmt;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::cli::{Accel, BootOptions};
use crate::text;

use super::command::bare;

/// The model that is the host's own CPU, which only the host has.
pub const HOST: &str = "host";

/// How long QEMU may take to make a machine and end it.
const PATIENCE: Duration = Duration::from_secs(20);
/// From one look whether it has ended to the next.
const LOOK: Duration = Duration::from_millis(5);

/// Falls back to TCG, with a message that says why, if KVM was asked for and does not work.
pub fn choose(options: &mut BootOptions) {
    if options.accel != Accel::Kvm {
        return;
    }
    let is_loaded = |module: &str| Path::new("/sys/module").join(module).exists();
    let tried = try_out(&options.cpu).and_then(|()| ordinary(is_loaded));
    if let Err(why) = tried {
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
    /// QEMU does not end.
    Hangs,
    /// It is `kvm_pvm`.
    Paravirtual,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "{error}"),
            Self::Said(words) => f.write_str(words),
            Self::Ended(status) => write!(f, "QEMU ended with {status}"),
            Self::Hangs => write!(
                f,
                "QEMU with it does not answer within {} s",
                PATIENCE.as_secs()
            ),
            Self::Paravirtual => f.write_str("it is kvm_pvm, for guests that are made for it"),
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
    let stderr = child.stderr.take();
    let said = thread::spawn(move || -> io::Result<Vec<u8>> {
        let mut said = Vec::new();
        if let Some(mut stderr) = stderr {
            stderr.read_to_end(&mut said)?;
        }
        Ok(said)
    });
    let status = ended(&mut child, PATIENCE)?;
    let said = said.join().expect("reading does not panic");
    let said = said.map_err(Unusable::Io)?;
    if status.success() {
        return Ok(());
    }
    Err(reason(&String::from_utf8_lossy(&said)).map_or(Unusable::Ended(status), Unusable::Said))
}

/// Waits until QEMU has ended; kills it if it does not in this time.
fn ended(child: &mut Child, patience: Duration) -> Result<ExitStatus, Unusable> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait().map_err(Unusable::Io)? {
            return Ok(status);
        }
        if Instant::now() > deadline {
            child.kill().map_err(Unusable::Io)?;
            child.wait().map_err(Unusable::Io)?;
            return Err(Unusable::Hangs);
        }
        thread::sleep(LOOK);
    }
}

/// Whether KVM runs guests by the processor's own means, by the modules that the host has.
fn ordinary(is_loaded: impl Fn(&str) -> bool) -> Result<(), Unusable> {
    match is_loaded("kvm_pvm") && !is_loaded("kvm_intel") && !is_loaded("kvm_amd") {
        true => Err(Unusable::Paravirtual),
        false => Ok(()),
    }
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
    use std::process::Command;

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
    fn a_qemu_that_hangs_is_killed() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let status = ended(&mut child, Duration::from_millis(50));
        assert!(matches!(status, Err(Unusable::Hangs)));
        assert!(child.try_wait().unwrap().is_some());
        let mut child = Command::new("false").spawn().unwrap();
        let status = ended(&mut child, PATIENCE);
        assert!(status.is_ok_and(|status| !status.success()));
    }

    #[test]
    fn a_kvm_for_other_guests_is_not_used() {
        for (loaded, usable) in [
            (&["kvm", "kvm_pvm"][..], false),
            (&["kvm", "kvm_pvm", "kvm_amd"], true),
            (&["kvm", "kvm_intel"], true),
            (&["kvm"], true),
        ] {
            let found = ordinary(|module| loaded.contains(&module));
            assert_eq!(found.is_ok(), usable, "{loaded:?}");
        }
    }

    #[test]
    fn the_hosts_own_model_is_not_emulated() {
        let max = BootOptions::default().cpu;
        assert_eq!(without_host("host"), max);
        assert_eq!(without_host("host,-avx"), format!("{max},-avx"));
        assert_eq!(without_host("EPYC,-avx"), "EPYC,-avx");
    }
}

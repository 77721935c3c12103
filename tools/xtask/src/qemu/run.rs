//! Boots the machine for a person or a script, and says how it ended.

use std::io::{self, IsTerminal};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::build::Image;
use crate::cli::{BootOptions, WRONG_ARGUMENT};
use crate::gdb;
use crate::remote::Machines;
use crate::text;

use super::{
    Machine, Network, PANIC, POWER_OFF, REBOOT, REMOTE_SHELL_PORT, Serial, cpu, debug_exit, fit,
    kvm,
};

/// Status when the time given by `--timeout` is over.
const TIMED_OUT: u8 = 124;
/// What QEMU gets to end by itself, restoring the terminal, before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// Why waiting ended.
enum Event {
    Ended(io::Result<ExitStatus>),
    Signal(i32),
}

/// Boots, as often as the guest asks for a restart, and waits for the end. Returns the status for the shell: 0 only after a power-off
/// that the guest asked for; that of a wrong argument if QEMU does not know one.
///
/// # Errors
/// If QEMU cannot be started.
pub fn boot(image: &Image, options: &BootOptions, machines: &Machines) -> Result<u8> {
    if let Err(error) = cpu::check(options) {
        eprintln!("{}", text::wrapped(&format!("error: {error}")));
        return Ok(WRONG_ARGUMENT);
    }
    fit::check(image, options.mem)?;
    let mut options = options.clone();
    kvm::choose(&mut options);
    let debugger = options.gdb.then(gdb::port).transpose()?;
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let machine = Machine {
        serial: if is_terminal {
            Serial::Terminal
        } else {
            Serial::Pipes
        },
        network: network(options.udp_port),
        debugger,
        options,
    };
    let _running = match machine.network {
        Network::Forward(port) => {
            if has_remote_shell(&machine.options.cmdline) {
                eprintln!("xtask: in another terminal: ./run.sh sonde shell (UDP port {port})");
            }
            Some(machines.add(port)?)
        }
        Network::Absent | Network::Closed | Network::Cable(_) => None,
    };
    // Before QEMU starts, so that no signal can end this process alone and leave QEMU behind.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let (sender, events) = mpsc::channel();
    let ended = sender.clone();
    thread::spawn(move || {
        for signal in signals.forever() {
            if sender.send(Event::Signal(signal)).is_err() {
                break;
            }
        }
    });

    let deadline = machine
        .options
        .timeout
        .map(|seconds| Instant::now() + Duration::from_secs(seconds));
    loop {
        let pid = start(&machine, image, ended.clone())?;
        let event = match deadline {
            None => events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(deadline) => {
                events.recv_timeout(deadline.saturating_duration_since(Instant::now()))
            }
        };
        return match event {
            Ok(Event::Ended(status)) => match status? {
                status if status.code() == Some(debug_exit(REBOOT)) => continue,
                status => Ok(report(status)),
            },
            Ok(Event::Signal(signal)) => {
                stop(pid, &events)?;
                Ok(128u8.saturating_add(u8::try_from(signal)?))
            }
            Err(RecvTimeoutError::Timeout) => {
                say("the time is over");
                stop(pid, &events)?;
                Ok(TIMED_OUT)
            }
            Err(RecvTimeoutError::Disconnected) => {
                anyhow::bail!("nobody waits for QEMU any more")
            }
        };
    }
}

/// Starts QEMU; its end is an event. With a debugger, it waits for one each time.
fn start(machine: &Machine, image: &Image, ended: mpsc::Sender<Event>) -> Result<Pid> {
    if let Some(port) = machine.debugger {
        eprintln!("xtask: waiting for: {}", gdb::command_line(image, port));
    }
    let child = machine.command(image).spawn();
    let mut child = child.context("QEMU cannot be started")?;
    let pid = pid(&child)?;
    thread::spawn(move || ended.send(Event::Ended(child.wait())));
    Ok(pid)
}

fn pid(child: &Child) -> Result<Pid> {
    let raw = i32::try_from(child.id())?;
    Pid::from_raw(raw).context("QEMU has no process id")
}

/// Ends QEMU: politely, so that it restores the terminal, then by force.
fn stop(pid: Pid, events: &mpsc::Receiver<Event>) -> Result<()> {
    // Not there any more is as good.
    let _ = kill_process(pid, Signal::TERM);
    let deadline = Instant::now() + GRACE;
    loop {
        match events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Event::Ended(_)) => return Ok(()),
            Ok(Event::Signal(_)) => {}
            Err(_) => return kill_process(pid, Signal::KILL).context("QEMU does not end"),
        }
    }
}

/// Says something after the guest, which may have left a prompt on the terminal's row.
fn say(what: &str) {
    if io::stderr().is_terminal() {
        eprintln!();
    }
    eprintln!("xtask: {what}");
}

/// The status for the shell, with a message where it needs one.
fn report(status: ExitStatus) -> u8 {
    let Some(code) = status.code() else {
        let signal = status.signal().unwrap_or(0);
        say(&format!("QEMU was ended by signal {signal}"));
        return 1;
    };
    if code == debug_exit(POWER_OFF) {
        return 0;
    }
    if code == 0 {
        say("ended without a power-off: Ctrl-A X, a reset, or a triple fault");
        return 1;
    }
    if code == debug_exit(PANIC) {
        say("the kernel stopped after an error, which it has printed");
    } else {
        say(&format!(
            "QEMU ended with status {code}, the machine did not"
        ));
    }
    u8::try_from(code).unwrap_or(1)
}

/// Forwards the port asked for; else the default one, or a free one if somebody has that.
fn network(asked: Option<u16>) -> Network {
    let port = asked.or_else(|| {
        if is_free(REMOTE_SHELL_PORT) {
            return Some(REMOTE_SHELL_PORT);
        }
        let port = free_port()?;
        eprintln!("xtask: UDP port {REMOTE_SHELL_PORT} is taken; the remote shell's is {port}");
        Some(port)
    });
    port.map_or(Network::Closed, Network::Forward)
}

/// Whether the guest is told to have a remote shell at the port that is forwarded.
fn has_remote_shell(cmdline: &str) -> bool {
    let word = format!("udpshell={REMOTE_SHELL_PORT}");
    cmdline.split(' ').any(|other| other == word)
}

fn is_free(port: u16) -> bool {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// A UDP port of the loopback interface that nobody has, by the next one who asks.
#[must_use]
pub fn free_port() -> Option<u16> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    Some(socket.local_addr().ok()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exited(code: i32) -> u8 {
        report(ExitStatus::from_raw(code << 8))
    }

    #[test]
    fn only_a_power_off_is_success() {
        assert_eq!(exited(33), 0);
        assert_eq!(exited(35), 35);
        assert_eq!(exited(0), 1);
        assert_eq!(exited(1), 1);
        assert_eq!(report(ExitStatus::from_raw(9)), 1);
    }

    #[test]
    fn a_taken_default_port_is_no_failure() {
        // Held by this test, or by somebody else: taken either way.
        let _held = UdpSocket::bind((Ipv4Addr::LOCALHOST, REMOTE_SHELL_PORT));
        assert_eq!(network(Some(9)), Network::Forward(9));
        let Network::Forward(port) = network(None) else {
            panic!("no port at all");
        };
        assert_ne!(port, REMOTE_SHELL_PORT);
    }
}

//! How many instructions it takes from reset to the prompt, and off again.
//!
//! Under `-icount` an instruction is a nanosecond, and so is each nanosecond that nobody has anything to do: waiting counts.
//! What is typed waits in QEMU before the machine starts, so it is never late. QEMU takes the machine for off from a thread of
//! its own; where that is late, the clock has gone on to the next timer. So the least of a few runs is taken, and a recorded
//! run, where the clock waits for that thread more often, if there is 1 CPU: QEMU records no machine with several.
//!
//! A machine off stays, and its ACPI timer, which counts from reset, is asked. The firmware's part is in the figure: on several CPUs
//! QEMU gives each a long turn while the others wait for it.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::build::Image;
use crate::cli::BootOptions;
use crate::qemu::{Machine, Network, Off, Serial};
use crate::system::guest::{Guest, PATIENCE};
use crate::workspace::Workspace;

/// Port of the ACPI timer on QEMU's `pc`.
const TIMER_PORT: u32 = 0x608;
/// Its frequency in Hz (ACPI 6.5, section 4.8.3.3).
const TIMER_HZ: u64 = 3_579_545;
/// It has 24 bits, which last for 4.7 seconds: the clock must not show more than 3.
const SECONDS_MAX: u64 = 3;
/// Midnight, where the machine's clock starts, to count the time that the guest has.
const CLOCK: &str = "base=2000-01-01T00:00:00,clock=vm";
/// What QEMU's monitor prints when it listens.
const PROMPT: &[u8] = b"(qemu) ";
/// Runs of each machine.
const RUNS: usize = 5;
/// How often the monitor is asked.
const POLL: Duration = Duration::from_millis(20);

/// Instructions from reset to the prompt and off, on a machine with so many CPUs.
///
/// # Errors
/// If it does not do what it should.
pub fn whole(workspace: &Workspace, image: &Image, smp: u32) -> Result<u64> {
    let directory = workspace.target.join("bench");
    fs::create_dir_all(&directory)?;
    count(image, smp, b"poweroff\n", &directory)
}

/// Instructions until a machine is off that has been sent this.
fn count(image: &Image, smp: u32, typed: &[u8], directory: &Path) -> Result<u64> {
    let socket = directory.join("monitor");
    let monitor = format!("unix:{},server=on,wait=off", socket.display());
    let mut qemu_args = vec!["-S".into(), "-monitor".into(), monitor];
    qemu_args.extend(["-rtc".into(), CLOCK.into()]);
    if smp == 1 {
        let record = format!("rr=record,rrfile={}", directory.join("record").display());
        qemu_args.extend(["-icount".into(), record]);
    }
    let options = BootOptions {
        smp,
        icount: true,
        qemu_args,
        ..BootOptions::default()
    };
    let machine = Machine {
        options,
        serial: Serial::Buffered,
        network: Network::Closed,
        off: Off::Stay,
        debugger: None,
    };
    let mut least = u64::MAX;
    for _ in 0..RUNS {
        least = least.min(until_off(machine.command(image), typed, &socket)?);
    }
    Ok(least)
}

/// Instructions of one run.
fn until_off(qemu: Command, typed: &[u8], socket: &Path) -> Result<u64> {
    let mut guest = Guest::start(qemu)?;
    guest.send(typed)?;
    let mut monitor = Monitor::connect(socket)?;
    // Each time QEMU looks for something to do, it takes a byte that waits, and a question that waits.
    for _ in typed {
        monitor.ask("info status")?;
    }
    monitor.ask("cont")?;
    let deadline = Instant::now() + PATIENCE;
    while !monitor.ask("info status")?.contains("(shutdown)") {
        ensure!(Instant::now() < deadline, "it is never off");
        thread::sleep(POLL);
    }
    let answer = monitor.ask(&format!("i /w {TIMER_PORT:#x}"))?;
    let ticks = answer.split_once("= 0x").map(|(_, number)| number.trim());
    let ticks = ticks.and_then(|number| u64::from_str_radix(number, 16).ok());
    let ticks = ticks.with_context(|| format!("the monitor said {answer:?}"))?;
    let seconds = seconds_since_midnight(&monitor.ask("qom-get /machine rtc-time")?)?;
    ensure!(
        seconds <= SECONDS_MAX,
        "{seconds} s are too long for the timer"
    );
    Ok(ticks * 1_000_000_000 / TIMER_HZ)
}

/// The time of day in the monitor's answer, which has a JSON object after the question's echo.
fn seconds_since_midnight(answer: &str) -> Result<u64> {
    let object = answer.find('{').map(|start| &answer[start..]);
    let object = object.with_context(|| format!("no time in {answer:?}"))?;
    let time: Time = serde_json::from_str(object.trim()).with_context(|| answer.to_owned())?;
    Ok((time.tm_hour * 60 + time.tm_min) * 60 + time.tm_sec)
}

/// What QEMU says of the machine's clock.
#[derive(Deserialize)]
struct Time {
    tm_hour: u64,
    tm_min: u64,
    tm_sec: u64,
}

/// QEMU's monitor.
struct Monitor(UnixStream);

impl Monitor {
    /// Waits until it is there.
    fn connect(socket: &Path) -> Result<Self> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match UnixStream::connect(socket) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(PATIENCE))?;
                    let mut monitor = Self(stream);
                    monitor.answer()?;
                    return Ok(monitor);
                }
                Err(error) if Instant::now() > deadline => {
                    return Err(error).context("QEMU's monitor");
                }
                Err(_) => thread::sleep(POLL),
            }
        }
    }

    fn ask(&mut self, question: &str) -> Result<String> {
        writeln!(self.0, "{question}")?;
        self.answer()
    }

    /// Everything up to the prompt.
    fn answer(&mut self) -> Result<String> {
        let mut text = Vec::new();
        while !text.ends_with(PROMPT) {
            let mut byte = [0];
            self.0.read_exact(&mut byte).context("QEMU's monitor")?;
            text.extend(byte);
        }
        Ok(String::from_utf8_lossy(&text[..text.len() - PROMPT.len()]).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_read_from_what_the_monitor_says() {
        let said = |hour, second| {
            format!(
                "qom-get\r\n{{\r\n\"tm_year\": 100, \"tm_sec\": {second}, \"tm_hour\": {hour}, \"tm_min\": 0}}\r\n"
            )
        };
        assert_eq!(seconds_since_midnight(&said(0, 3)).unwrap(), 3);
        assert_eq!(seconds_since_midnight(&said(1, 3)).unwrap(), 3603);
        assert!(seconds_since_midnight("unknown command").is_err());
    }
}

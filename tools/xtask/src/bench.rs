//! `cargo xtask bench`: how many guest instructions it takes from reset to the prompt, and off again.
//!
//! Under `-icount` an instruction is a nanosecond, and so is each nanosecond that nobody has anything to do: waiting counts,
//! and the figures are the same on every host. A machine off stays, and its ACPI timer, which counts from reset, is asked. The
//! firmware's part is that of a guest which resets itself at once: on several CPUs it is most of the whole, because
//! QEMU gives each a long turn while the others wait for it.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::build::{self, Image};
use crate::cli::BootOptions;
use crate::qemu::{Machine, Network, Off, Serial};
use crate::system::guest::{Guest, PATIENCE};
use crate::system::miniature;
use crate::workspace::Workspace;

/// Port of the ACPI timer on QEMU's `pc`.
const TIMER_PORT: u32 = 0x608;
/// Its frequency in Hz (ACPI 6.5, section 4.8.3.3).
const TIMER_HZ: u64 = 3_579_545;
/// It has 24 bits, which last for 4.7 seconds.
const TIMER_MAX: u64 = (1 << 24) - 1;
/// What QEMU's monitor prints when it listens.
const PROMPT: &[u8] = b"(qemu) ";
/// Runs of each machine.
const RUNS: usize = 3;
/// How often the monitor is asked.
const POLL: Duration = Duration::from_millis(20);

/// Prints the figures.
///
/// # Errors
/// If the image does not build, or a machine does not do what it should.
pub fn run(workspace: &Workspace) -> Result<()> {
    let image = build::build(workspace)?;
    println!("million guest instructions, waiting included");
    println!("cpus  reset to prompt, and off  firmware's part  Sonde's part");
    for smp in [1, 4] {
        let Boot { whole, firmware } = Boot::measure(workspace, &image, smp)?;
        let [whole, firmware, own] = [whole, firmware, whole - firmware].map(|n| n as f64 / 1e6);
        println!("{smp:>4}  {whole:>24.1}  {firmware:>15.1}  {own:>12.1}");
    }
    Ok(())
}

/// Instructions of a boot.
#[derive(Clone, Copy, Debug)]
pub struct Boot {
    /// From reset to the prompt, and off.
    pub whole: u64,
    /// From reset to the kernel's first instruction.
    pub firmware: u64,
}

impl Boot {
    /// Counts them on a machine with so many CPUs.
    ///
    /// # Errors
    /// If it does not do what it should.
    pub fn measure(workspace: &Workspace, image: &Image, smp: u32) -> Result<Self> {
        let directory = workspace.target.join("bench");
        fs::create_dir_all(&directory)?;
        let kernel = directory.join("reset");
        fs::write(&kernel, miniature::elf_that_resets())?;
        let reset = Image {
            kernel,
            bootfs: None,
        };
        let options = BootOptions {
            smp,
            icount: true,
            ..BootOptions::default()
        };
        let socket = directory.join("monitor");
        Ok(Self {
            whole: least(|| until_off(image, &options, b"poweroff\n", &socket))?,
            firmware: least(|| until_off(&reset, &options, b"", &socket))?,
        })
    }
}

/// The least of a few runs: what is typed may reach the guest late.
fn least(run: impl Fn() -> Result<u64>) -> Result<u64> {
    let mut least = run()?;
    for _ in 1..RUNS {
        least = least.min(run()?);
    }
    Ok(least)
}

/// Instructions until a machine is off that has been sent this.
fn until_off(image: &Image, options: &BootOptions, typed: &[u8], socket: &Path) -> Result<u64> {
    let mut options = options.clone();
    let monitor = format!("unix:{},server=on,wait=off", socket.display());
    options.qemu_args.extend(["-monitor".into(), monitor]);
    let machine = Machine {
        options,
        serial: Serial::Pipes,
        network: Network::Closed,
        off: Off::Stay,
    };
    let mut guest = Guest::start(machine.command(image))?;
    guest.send(typed)?;
    let mut monitor = Monitor::connect(socket)?;
    let deadline = Instant::now() + PATIENCE;
    while !monitor.ask("info status")?.contains("(shutdown)") {
        ensure!(Instant::now() < deadline, "it is never off");
        thread::sleep(POLL);
    }
    let answer = monitor.ask(&format!("i /w {TIMER_PORT:#x}"))?;
    let ticks = answer.split_once("= 0x").map(|(_, number)| number.trim());
    let ticks = ticks.and_then(|number| u64::from_str_radix(number, 16).ok());
    let ticks = ticks.with_context(|| format!("the monitor said {answer:?}"))?;
    ensure!(ticks < TIMER_MAX, "it took too long for the timer");
    Ok(ticks * 1_000_000_000 / TIMER_HZ)
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

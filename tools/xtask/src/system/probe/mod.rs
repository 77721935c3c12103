//! A machine seen from outside, for what no program in it can show: every instruction, with the registers and the memory of that
//! moment. It has one CPU and counts instructions, so its time stands still while it does.

mod block;
mod bus;
mod port;
mod ram;
mod registers;
mod remote;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::build::Image;
use crate::cli::BootOptions;

use super::guest::{Guest, PATIENCE};
use super::session::Session;

pub use block::Block;
pub use bus::Bus;
pub use ram::{Ram, Ring};
pub use registers::Registers;
pub use remote::Remote;

/// How often a machine that runs is looked at.
const POLL: Duration = Duration::from_millis(5);

/// A machine at its prompt, and its ports.
pub struct Probe {
    /// The shell on it.
    pub session: Session,
    /// Its RAM.
    pub ram: Ram,
    /// Its bus.
    pub bus: Bus,
    files: Files,
}

impl Probe {
    /// Boots an image.
    ///
    /// # Errors
    /// If it does not get to the prompt, or a port is not there.
    pub fn boot(image: &Image) -> Result<Self> {
        let files = Files::new()?;
        let mut options = BootOptions {
            smp: 1,
            icount: true,
            ..BootOptions::default()
        };
        options.qemu_args = files.arguments(options.mem);
        let session = Session::boot_image(image, options)?;
        Ok(Self {
            session,
            ram: Ram::open(&files.ram())?,
            bus: Bus::connect(&files.bus())?,
            files,
        })
    }

    /// Stops the machine where it happens to be.
    ///
    /// # Errors
    /// If it cannot be had.
    pub fn stop(&self) -> Result<Remote> {
        Remote::attach(&self.files.debugger())
    }

    /// Types a command that profiles everything, and stops the machine once it samples; the ring is read from there on.
    ///
    /// # Errors
    /// If it never samples.
    pub fn profile(&mut self, command: &str) -> Result<(Remote, Ring)> {
        let ring = self.ram.ring()?;
        let before = ring.head(&self.ram)?;
        self.session.guest.send(format!("{command}\n").as_bytes())?;
        self.session.guest.wait_for("\n")?;
        let deadline = Instant::now() + PATIENCE;
        while ring.head(&self.ram)? == before {
            if Instant::now() >= deadline {
                bail!(
                    "`{command}` takes no sample: {}",
                    self.session.guest.transcript()
                );
            }
            thread::sleep(POLL);
        }
        let remote = self.stop()?;
        Ok((remote, self.ram.ring()?))
    }
}

/// A machine that has not begun to run, and its ports.
pub struct Reset {
    /// What it says.
    pub guest: Guest,
    /// Its debugger port.
    pub remote: Remote,
    /// Its bus.
    pub bus: Bus,
    _files: Files,
}

impl Reset {
    /// Makes it, of so many CPUs.
    ///
    /// # Errors
    /// If QEMU does not run, or a port is not there.
    pub fn of(image: &Image, smp: u32) -> Result<Self> {
        let files = Files::new()?;
        let mut options = BootOptions {
            smp,
            icount: true,
            ..BootOptions::default()
        };
        options.qemu_args = files.arguments(options.mem);
        options.qemu_args.push("-S".to_owned());
        Ok(Self {
            guest: Guest::boot(image, options)?,
            remote: Remote::attach_before_reset(&files.debugger())?,
            bus: Bus::connect(&files.bus())?,
            _files: files,
        })
    }
}

/// What QEMU leaves in the file system: sockets, and a file of RAM. Gone with the machine.
struct Files(PathBuf);

/// Machines so far, to tell their files apart.
static MACHINES: AtomicU32 = AtomicU32::new(0);

impl Files {
    fn new() -> Result<Self> {
        let number = MACHINES.fetch_add(1, Ordering::Relaxed);
        // A socket's path has to be short, so it is not in the target directory.
        let name = format!("sonde-probe-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).with_context(|| folder.display().to_string())?;
        Ok(Self(folder))
    }

    fn ram(&self) -> PathBuf {
        self.0.join("ram")
    }
    fn debugger(&self) -> PathBuf {
        self.0.join("debugger")
    }
    fn bus(&self) -> PathBuf {
        self.0.join("bus")
    }

    /// QEMU's arguments for these.
    fn arguments(&self, mib: u32) -> Vec<String> {
        let socket = |path: &Path| format!("unix:{},server=on,wait=off", path.display());
        let ram = self.ram();
        let ram = format!(
            "memory-backend-file,id=ram,size={mib}M,share=on,mem-path={}",
            ram.display()
        );
        let arguments = [
            "-object",
            &ram,
            "-machine",
            "memory-backend=ram",
            "-gdb",
            &socket(&self.debugger()),
            "-qtest",
            &socket(&self.bus()),
            "-qtest-log",
            "none",
            // Else a stop of the CPU would count as idling, and time leap to the next timer.
            "-icount",
            "sleep=on",
        ];
        arguments.map(str::to_owned).to_vec()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // What is left there is in nobody's way.
        let _ = fs::remove_dir_all(&self.0);
    }
}

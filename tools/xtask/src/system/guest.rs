//! A running machine, and what is said to it and heard from it.
//!
//! Every wait has a deadline, so long that only a guest that hangs can miss it: no test depends on how fast the machine is. A
//! wait that fails carries everything the guest has printed.

mod error;
mod output;
#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::build::Image;
use crate::cli::BootOptions;
use crate::qemu::{Machine, Network, Serial};

pub use error::GuestError;
use output::Output;

/// How long a guest may take to say anything that a test waits for.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// What the shell prints when it listens.
pub const PROMPT: &str = "> ";
/// How often the end of the process is looked for.
const POLL: Duration = Duration::from_millis(10);

/// A machine that runs; it is killed when this is dropped.
pub struct Guest {
    child: Child,
    stdin: Option<ChildStdin>,
    output: Arc<Output>,
    patience: Duration,
}

impl Guest {
    /// Starts a machine that boots an image; the network is shut.
    ///
    /// # Errors
    /// If QEMU cannot be run.
    pub fn boot(image: &Image, options: BootOptions) -> Result<Self, GuestError> {
        Self::start(Self::machine(options).command(image))
    }

    /// As [`Self::boot`], with this of its network.
    ///
    /// # Errors
    /// If QEMU cannot be run.
    pub fn boot_on(
        image: &Image,
        options: BootOptions,
        network: Network,
    ) -> Result<Self, GuestError> {
        let machine = Machine {
            network,
            ..Self::machine(options)
        };
        Self::start(machine.command(image))
    }

    /// As [`Self::boot`], but the machine waits for a debugger on this port.
    ///
    /// # Errors
    /// If QEMU cannot be run.
    pub fn wait_for_debugger(
        image: &Image,
        options: BootOptions,
        port: u16,
    ) -> Result<Self, GuestError> {
        let machine = Machine {
            debugger: Some(port),
            ..Self::machine(options)
        };
        Self::start(machine.command(image))
    }

    /// A machine with its serial line on pipes and its network shut.
    const fn machine(options: BootOptions) -> Machine {
        Machine {
            options,
            serial: Serial::Pipes,
            network: Network::Closed,
            debugger: None,
        }
    }

    /// Starts a machine whose serial line is the command's stdin and stdout.
    ///
    /// # Errors
    /// If the command cannot be run.
    pub fn start(mut command: Command) -> Result<Self, GuestError> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(GuestError::Spawn)?;
        let output = Arc::new(Output::default());
        if let Some(stdout) = child.stdout.take() {
            output.show(stdout);
        }
        if let Some(stderr) = child.stderr.take() {
            output.keep_errors(stderr);
        }
        Ok(Self {
            stdin: child.stdin.take(),
            child,
            output,
            patience: PATIENCE,
        })
    }

    /// Waits no longer than this from now on.
    #[cfg(test)]
    fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// Types bytes.
    ///
    /// # Errors
    /// If the machine has ended.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), GuestError> {
        let Some(stdin) = &mut self.stdin else {
            return Err(GuestError::Send(io::ErrorKind::BrokenPipe.into()));
        };
        stdin
            .write_all(bytes)
            .and_then(|()| stdin.flush())
            .map_err(GuestError::Send)
    }

    /// Ends the input, as a script does whose commands are over.
    pub fn close_input(&mut self) {
        self.stdin = None;
    }

    /// Waits for a text; returns what came before it since the last wait.
    ///
    /// # Errors
    /// If it does not come in time.
    pub fn wait_for(&mut self, text: &str) -> Result<String, GuestError> {
        self.wait_until(&format!("{text:?}"), |new| {
            let at = find(new, text.as_bytes())?;
            Some((at, at + text.len()))
        })
    }

    /// Waits for the prompt, at the start of a line; returns what came before it since the last wait.
    ///
    /// # Errors
    /// If it does not come in time.
    pub fn prompt(&mut self) -> Result<String, GuestError> {
        self.wait_until("the prompt", |new| {
            if new.starts_with(PROMPT.as_bytes()) {
                return Some((0, PROMPT.len()));
            }
            let at = 1 + find(new, format!("\n{PROMPT}").as_bytes())?;
            Some((at, at + PROMPT.len()))
        })
    }

    /// Types a line at the prompt and waits for the next prompt; returns what was printed between, without the echo.
    ///
    /// # Errors
    /// If the prompt does not come back in time.
    pub fn run(&mut self, line: &str) -> Result<String, GuestError> {
        self.send(line.as_bytes())?;
        self.send(b"\n")?;
        self.wait_for("\n")?;
        self.prompt()
    }

    /// Waits until nothing has been printed for a while. On a busy host a guest that prints all the time may have been still for
    /// that long; a test that goes on then has seen less, and does not fail. Returns what came since the last wait.
    ///
    /// # Errors
    /// If it goes on printing.
    pub fn quiet(&mut self) -> Result<String, GuestError> {
        self.output.quiet(Instant::now() + self.patience)
    }

    /// Waits for the machine to end by itself, and for all that it said; returns QEMU's status.
    ///
    /// # Errors
    /// If it goes on.
    pub fn exit(&mut self) -> Result<ExitStatus, GuestError> {
        let deadline = Instant::now() + self.patience;
        loop {
            if let Some(status) = self.child.try_wait().map_err(GuestError::Wait)?
                && self.output.is_over()
            {
                return Ok(status);
            }
            if Instant::now() >= deadline {
                let transcript = self.transcript();
                return Err(GuestError::Timeout {
                    waiting_for: "the end".into(),
                    transcript,
                });
            }
            thread::sleep(POLL);
        }
    }

    /// Waits for the machine to end by itself, with this status of QEMU.
    ///
    /// # Errors
    /// If it goes on, or ends otherwise.
    pub fn expect_exit(&mut self, code: i32) -> Result<(), GuestError> {
        let status = self.exit()?;
        if status.code() == Some(code) {
            return Ok(());
        }
        let transcript = self.transcript();
        Err(GuestError::Status { status, transcript })
    }

    /// Everything printed so far, and QEMU's own messages.
    #[must_use]
    pub fn transcript(&self) -> String {
        self.output.transcript()
    }

    fn wait_until(
        &mut self,
        waiting_for: &str,
        found: impl Fn(&[u8]) -> Option<(usize, usize)>,
    ) -> Result<String, GuestError> {
        let deadline = Instant::now() + self.patience;
        self.output.wait_until(deadline, waiting_for, found)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // It has usually ended; if not, there is nothing left to do but to kill it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len())
        .position(|window| window == wanted)
}

//! A running machine, and what is said to it and heard from it.
//!
//! Every wait has a deadline, so long that only a guest that hangs can miss it: no test depends on how fast the machine is. A
//! wait that fails carries everything the guest has printed.

use std::fmt;
use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::build::Image;
use crate::cli::BootOptions;
use crate::qemu::{Machine, Network, Serial};

use super::screen::Screen;

/// How long a guest may take to say anything that a test waits for.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// What the shell prints when it listens.
pub const PROMPT: &str = "> ";
/// How often the end of the process is looked for.
const POLL: Duration = Duration::from_millis(10);
/// How long a guest that prints all the time is seldom silent.
const QUIET: Duration = Duration::from_millis(300);

/// Why the guest did not do what was waited for.
#[derive(Debug)]
pub enum GuestError {
    /// The machine could not be started.
    Spawn(io::Error),
    /// It no longer takes input.
    Send(io::Error),
    /// Not in time.
    Timeout {
        /// What was waited for.
        waiting_for: String,
        /// All that was printed.
        transcript: String,
    },
    /// It ended first.
    Ended {
        /// What was waited for.
        waiting_for: String,
        /// All that was printed.
        transcript: String,
    },
    /// It ended with a status that was not expected.
    Status {
        /// QEMU's.
        status: ExitStatus,
        /// All that was printed.
        transcript: String,
    },
    /// Its process cannot be waited for.
    Wait(io::Error),
}

impl fmt::Display for GuestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spawn(error) => write!(f, "cannot start the machine: {error}"),
            Self::Send(error) => write!(f, "the machine takes no input: {error}"),
            Self::Status { status, transcript } => {
                write!(f, "the machine ended with {status}; it said:\n{transcript}")
            }
            Self::Wait(error) => write!(f, "cannot wait for the machine: {error}"),
            Self::Timeout {
                waiting_for,
                transcript,
            } => {
                write!(
                    f,
                    "waited in vain for {waiting_for}; the guest said:\n{transcript}"
                )
            }
            Self::Ended {
                waiting_for,
                transcript,
            } => {
                write!(
                    f,
                    "the machine ended before {waiting_for}; it said:\n{transcript}"
                )
            }
        }
    }
}

impl std::error::Error for GuestError {}

/// What the guest has printed, shared with the threads that read it.
#[derive(Default)]
struct Output {
    state: Mutex<OutputState>,
    changed: Condvar,
}

#[derive(Default)]
struct OutputState {
    screen: Screen,
    errors: Vec<u8>,
    /// Streams that are still read.
    open: u8,
}

impl Output {
    /// For one who reads a stream to its end.
    fn open(self: &Arc<Self>) -> Arc<Self> {
        self.lock().open += 1;
        Arc::clone(self)
    }

    /// A stream has been read to its end.
    fn close(&self) {
        self.lock().open -= 1;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, OutputState> {
        // A reader that panicked leaves bytes that are still worth showing.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OutputState {
    fn transcript(&self) -> String {
        let text = self.screen.text();
        let (text, errors) = (
            String::from_utf8_lossy(&text).into_owned(),
            String::from_utf8_lossy(&self.errors),
        );
        if errors.is_empty() {
            text
        } else {
            format!("{text}\n(stderr)\n{errors}")
        }
    }
}

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
            let output = output.open();
            thread::spawn(move || {
                read_all(stdout, |bytes| {
                    output.lock().screen.feed(bytes);
                    output.changed.notify_all();
                });
                output.close();
            });
        }
        if let Some(stderr) = child.stderr.take() {
            let output = output.open();
            thread::spawn(move || {
                read_all(stderr, |bytes| output.lock().errors.extend(bytes));
                output.close();
            });
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
        let deadline = Instant::now() + self.patience;
        let mut before = self.output.lock().screen.new_text();
        loop {
            thread::sleep(QUIET);
            let mut state = self.output.lock();
            let now = state.screen.new_text();
            if now.len() == before.len() {
                state.screen.consume(now.len());
                return Ok(String::from_utf8_lossy(&now).into_owned());
            }
            before = now;
            if Instant::now() >= deadline {
                let transcript = state.transcript();
                return Err(GuestError::Timeout {
                    waiting_for: "the end of output".into(),
                    transcript,
                });
            }
        }
    }

    /// Waits for the machine to end by itself, and for all that it said; returns QEMU's status.
    ///
    /// # Errors
    /// If it goes on.
    pub fn exit(&mut self) -> Result<ExitStatus, GuestError> {
        let deadline = Instant::now() + self.patience;
        loop {
            if let Some(status) = self.child.try_wait().map_err(GuestError::Wait)?
                && self.output.lock().open == 0
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
        self.output.lock().transcript()
    }

    /// Waits until `found` says where in the new text something lies, as (start, end); consumes it.
    fn wait_until(
        &mut self,
        waiting_for: &str,
        found: impl Fn(&[u8]) -> Option<(usize, usize)>,
    ) -> Result<String, GuestError> {
        let deadline = Instant::now() + self.patience;
        let mut state = self.output.lock();
        loop {
            let new = state.screen.new_text();
            if let Some((start, end)) = found(&new) {
                state.screen.consume(end);
                return Ok(String::from_utf8_lossy(&new[..start]).into_owned());
            }
            let waiting_for = waiting_for.to_owned();
            let left = deadline.saturating_duration_since(Instant::now());
            if state.open == 0 {
                let transcript = state.transcript();
                return Err(GuestError::Ended {
                    waiting_for,
                    transcript,
                });
            }
            if left.is_zero() {
                let transcript = state.transcript();
                return Err(GuestError::Timeout {
                    waiting_for,
                    transcript,
                });
            }
            let woken = self.output.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // It has usually ended; if not, there is nothing left to do but to kill it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Hands on everything that comes, until the end or an error, which is an end too.
fn read_all(mut from: impl Read, mut to: impl FnMut(&[u8])) {
    let mut buffer = [0; 4096];
    while let Ok(len @ 1..) = from.read(&mut buffer) {
        to(&buffer[..len]);
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len())
        .position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A guest that a shell script plays: it echoes lines, answers some, and powers off.
    fn fake() -> Guest {
        let script = r#"
            printf 'Sonde: fake\r\n> '
            while IFS= read -r line; do
                printf '%s\r\n' "$line"
                case $line in
                    twice) printf 'one\r\ntwo\r\n' ;;
                    hang) sleep 60 ;;
                    poweroff) echo bye; exit 33 ;;
                esac
                printf '> '
            done
            echo 'no more input'
            echo 'a warning' >&2
            exit 35
        "#;
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        Guest::start(shell).unwrap()
    }

    #[test]
    fn commands_are_answered() {
        let mut guest = fake();
        assert_eq!(guest.prompt().unwrap(), "Sonde: fake\n");
        assert_eq!(guest.run("twice").unwrap(), "one\ntwo\n");
        assert_eq!(guest.run("").unwrap(), "");
        guest.send(b"poweroff\n").unwrap();
        assert_eq!(guest.wait_for("bye").unwrap(), "poweroff\n");
        assert_eq!(guest.exit().unwrap().code(), Some(33));
    }

    #[test]
    fn a_guest_that_hangs_is_noticed_and_killed() {
        let mut guest = fake();
        guest.prompt().unwrap();
        guest.set_patience(Duration::from_millis(200));
        let error = guest.run("hang").unwrap_err();
        let GuestError::Timeout {
            waiting_for,
            transcript,
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!(waiting_for, "the prompt");
        assert!(transcript.ends_with("> hang\n"), "{transcript:?}");
        assert!(matches!(guest.exit(), Err(GuestError::Timeout { .. })));
    }

    #[test]
    fn an_early_end_shows_everything() {
        let mut guest = fake();
        guest.prompt().unwrap();
        guest.close_input();
        assert_eq!(guest.exit().unwrap().code(), Some(35));
        assert!(guest.transcript().contains("a warning"));
        let error = guest
            .wait_for("more")
            .and_then(|_| guest.wait_for("more"))
            .unwrap_err();
        assert!(matches!(error, GuestError::Ended { .. }), "{error}");
        assert!(guest.send(b"x").is_err());
        assert!(guest.transcript().contains("no more input"));
    }
}

//! The two ends of a session's terminal: the stream that it writes to, and itself as commands reach it.

use core::fmt;

use crate::persist::{Clock, PAUSE, persist};
use crate::protocol::{Asked, Client as TerminalClient, Completion, Stop};
use crate::session::{Leave, Session};
use crate::terminal::{Closed, Sink};
use ipc::abi::Handle;
use ipc::proto::remote::Role;
use ipc::proto::stream::{CHUNK_MAX, Chunk, Client as StreamClient};
use sysroot::{Connection, OwnedHandle, time};

/// The machine's time.
pub struct Time;

impl Clock for Time {
    fn now(&self) -> u64 {
        time::now()
    }
    fn pause(&self) {
        time::sleep(PAUSE);
    }
}

/// A stream as a terminal's screen.
pub struct Screen(StreamClient<Connection>);

impl Screen {
    /// A screen behind a stream's endpoint.
    pub const fn new(stream: Handle) -> Self {
        Self(StreamClient::new(Connection::new(stream)))
    }
}

impl Sink for Screen {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        for part in bytes.chunks(CHUNK_MAX) {
            // A part is at most a chunk.
            let chunk = Chunk::try_from(part).unwrap_or_default();
            persist(&Time, || self.0.write(&chunk))?;
        }
        Ok(())
    }
}

/// A terminal, as the thread that runs commands has it. Text is sent a line at a time.
pub struct TerminalSession {
    /// Closed with the session, which the terminal's thread is told so.
    handle: OwnedHandle,
    gathered: Chunk,
    /// Ctrl-C was pressed since the line began.
    interrupted: bool,
    /// The terminal shows nothing more of the command.
    ended: bool,
    role: Role,
    leave: Leave,
    /// A command has ended the session.
    left: bool,
}

impl TerminalSession {
    /// Through a handle with the badge of the command thread; with what who asks may do, and how the session is left.
    pub const fn new(terminal: OwnedHandle, role: Role, leave: Leave) -> Self {
        Self {
            handle: terminal,
            gathered: Chunk::new(),
            interrupted: false,
            ended: false,
            role,
            leave,
            left: false,
        }
    }

    fn terminal(&self) -> TerminalClient<Connection> {
        TerminalClient::new(Connection::new(self.handle.raw()))
    }

    /// How the session is left.
    pub const fn how_left(&self) -> &'static str {
        self.leave.how
    }

    /// Whether a command has ended the session.
    pub const fn has_left(&self) -> bool {
        self.left
    }

    /// Waits for what is asked for next. The command or the completion before it, if any, is over.
    ///
    /// # Errors
    /// The session is gone.
    pub fn next(&mut self, completion: &Completion) -> Result<Asked, fmt::Error> {
        // If it fails because the command was ended, there is still a next one; else there is none either.
        let _ = self.flush();
        let asked = self.terminal().next_line(completion);
        (self.interrupted, self.ended) = (false, false);
        asked.map_err(|_| fmt::Error)
    }

    fn flush(&mut self) -> fmt::Result {
        let chunk = core::mem::take(&mut self.gathered);
        if self.ended {
            return Err(fmt::Error);
        }
        if chunk.is_empty() {
            return Ok(());
        }
        self.ended = self.terminal().print(&chunk).map_err(|_| fmt::Error)?;
        self.interrupted |= self.ended;
        if self.ended { Err(fmt::Error) } else { Ok(()) }
    }
}

impl fmt::Write for TerminalSession {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.ended {
            return Err(fmt::Error);
        }
        for part in text.as_bytes().chunks(CHUNK_MAX) {
            if self.gathered.extend(part).is_err() {
                self.flush()?;
                // It is empty now, and the part is at most a chunk.
                self.gathered.extend(part).map_err(|_| fmt::Error)?;
            }
        }
        if text.contains('\n') {
            self.flush()?;
        }
        Ok(())
    }
}

impl Session for TerminalSession {
    fn role(&self) -> Role {
        self.role
    }

    fn leave(&mut self) -> Leave {
        self.left = self.leave.ends;
        self.leave
    }

    fn interrupted(&self) -> bool {
        self.interrupted
    }

    fn guard(&mut self, stop: Stop) -> bool {
        // What was written goes first. Whether Ctrl-C ended it is what the answer says.
        let _ = self.flush();
        // A session that is gone wants nothing any more: whatever runs for it should end.
        let was = self.terminal().guard(&stop).unwrap_or(true);
        self.interrupted |= was;
        self.ended = false;
        was
    }

    fn page(&mut self, on: bool) -> fmt::Result {
        self.flush()?;
        self.terminal().page(&on).map_err(|_| fmt::Error)
    }
}

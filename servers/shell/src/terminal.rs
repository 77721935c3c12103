//! One session's terminal: the only place that knows what its screen shows.
//!
//! It is served by one thread and called by the others of its session, so it needs no locks: the thread that reads the
//! stream brings what was typed, the one that runs commands fetches lines and prints, and the programs that the session
//! runs write. Nobody waits here for a command, so Ctrl-C is seen at once whatever runs.
//!
//! What is typed while a command runs is kept for the next prompt, up to [`AHEAD_MAX`] bytes; the loss of more is
//! announced there. Ctrl-C throws away what was typed before it.

use alloc::collections::VecDeque;
use alloc::string::String;
use core::fmt::Write as _;

use ipc::proto::stream::{self, Chunk, StreamError};
use ipc::proto::{Call, Parked, Responder, Served};
use profd::text::counted;

use crate::line::keys::INTERRUPT;
use crate::line::view::CLEAR_SCREEN;
use crate::line::{Decoder, Editor, Event};
use crate::protocol::{
    COMMANDS, Guard, INPUT, Input, Line, NextLine, PROGRAMS, Print, Service, Stop, TerminalError,
};

/// Bytes kept that were typed while a command ran.
pub const AHEAD_MAX: usize = 16 * 1024;

/// The session's stream is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// Where a terminal writes; the call returns when the bytes are accepted.
pub trait Sink {
    /// Writes all the bytes.
    ///
    /// # Errors
    /// [`Closed`] if they can never be written.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Closed>;
}

/// What the session is doing.
enum State<P: Responder> {
    /// A command runs, or none was asked for yet.
    Running { interrupted: bool, stop: Stop },
    /// The prompt is shown; who waits for the line.
    Prompt(Parked<P, NextLine>),
}

/// A session's terminal.
pub struct Terminal<S, P: Responder> {
    sink: S,
    /// How this session is left, for who presses Ctrl-D.
    leave: &'static str,
    state: State<P>,
    editor: Editor,
    decoder: Decoder,
    /// Typed, not yet looked at.
    ahead: VecDeque<u8>,
    /// Bytes typed that did not fit into `ahead`.
    lost: u64,
    /// Whether the cursor stands at the start of a row, prompt aside.
    fresh: bool,
}

impl<S: Sink, P: Responder> Terminal<S, P> {
    /// A terminal that shows nothing yet and runs something: its command thread has not asked for a line. `leave` says
    /// how the session is left, in one line.
    pub fn new(sink: S, leave: &'static str) -> Self {
        Self {
            sink,
            leave,
            state: running(),
            editor: Editor::default(),
            decoder: Decoder::default(),
            ahead: VecDeque::new(),
            lost: 0,
            fresh: true,
        }
    }

    /// Shows output. At the prompt it goes above the line that is being edited.
    fn show(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        let Some(&last) = bytes.last() else {
            return Ok(());
        };
        let ended = last == b'\n' || bytes.ends_with(CLEAR_SCREEN.as_bytes());
        if matches!(self.state, State::Running { .. }) {
            self.fresh = ended;
            return self.sink.write(bytes);
        }
        let mut text = String::new();
        self.editor.hide(&mut text);
        self.sink.write(text.as_bytes())?;
        self.sink.write(bytes)?;
        text.clear();
        if !ended {
            text.push('\n');
        }
        self.editor.show(&mut text);
        self.sink.write(text.as_bytes())
    }

    /// Keeps what was typed, as far as there is room.
    fn keep(&mut self, bytes: &[u8]) {
        let room = AHEAD_MAX - self.ahead.len();
        let kept = &bytes[..bytes.len().min(room)];
        self.ahead.extend(kept);
        self.lost += (bytes.len() - kept.len()) as u64;
    }

    /// Edits with what was typed, until a line is complete.
    fn edit(&mut self, echo: &mut String) -> Option<String> {
        while let Some(byte) = self.ahead.pop_front() {
            for key in self.decoder.feed(byte).into_iter().flatten() {
                match self.editor.key(key, echo) {
                    Some(Event::Line(line)) => return Some(line),
                    Some(Event::Leave) => {
                        let _ = writeln!(echo, "\n{}", self.leave);
                        self.editor.show(echo);
                    }
                    None => {}
                }
            }
        }
        None
    }

    /// While a command runs: if Ctrl-C was typed, notes it, shows it and forgets what came before. Answers what to end.
    fn interrupt(&mut self, echo: &mut String) -> Stop {
        let State::Running { interrupted, stop } = &mut self.state else {
            return Stop::Nothing;
        };
        let Some(last) = self.ahead.iter().rposition(|&byte| byte == INTERRUPT) else {
            return Stop::Nothing;
        };
        self.ahead.drain(..=last);
        self.decoder = Decoder::default();
        self.lost = 0;
        *interrupted = true;
        echo.push_str("^C\n");
        self.fresh = true;
        *stop
    }

    /// Whether the running command was interrupted.
    fn interrupted(&self) -> bool {
        matches!(
            self.state,
            State::Running {
                interrupted: true,
                ..
            }
        )
    }
}

fn running<P: Responder>() -> State<P> {
    State::Running {
        interrupted: false,
        stop: Stop::Nothing,
    }
}

impl<S: Sink, P: Responder> Service<P> for Terminal<S, P> {
    fn input(&mut self, mut call: Call<'_, P, Input>, bytes: Chunk) -> Served<Input, P::Handle> {
        only(INPUT, call.badge())?;
        // Ctrl-C must be seen even by a session that has no room for what else was typed.
        let interrupted = bytes.iter().rposition(|&byte| byte == INTERRUPT);
        if let (Some(_), State::Running { .. }) = (interrupted, &self.state) {
            self.ahead.clear();
        }
        self.keep(&bytes);
        let mut echo = String::new();
        if matches!(self.state, State::Prompt(_))
            && let Some(line) = self.edit(&mut echo)
        {
            // The echo goes out first: the command may write as soon as it has its line.
            let _ = self.sink.write(core::mem::take(&mut echo).as_bytes());
            self.fresh = true;
            if let State::Prompt(waiting) = core::mem::replace(&mut self.state, running()) {
                // The command thread never gives up its call while its process lives.
                let _ = waiting.answer(call.responder(), &Line::cut(&line));
            }
        }
        let stop = self.interrupt(&mut echo);
        // A stream that is gone shows no echo; who reads it is told by its own read.
        let _ = self.sink.write(echo.as_bytes());
        Ok(call.reply(stop))
    }

    fn next_line(&mut self, call: Call<'_, P, NextLine>, (): ()) -> Served<NextLine, P::Handle> {
        only(COMMANDS, call.badge())?;
        let mut echo = String::new();
        if !self.fresh {
            echo.push('\n');
        }
        let lost = core::mem::take(&mut self.lost);
        if lost > 0 {
            let _ = writeln!(
                echo,
                "lost {} typed meanwhile: at most {AHEAD_MAX} are kept",
                counted(lost, "byte")
            );
        }
        self.editor.show(&mut echo);
        let line = self.edit(&mut echo);
        self.fresh = true;
        let answer = line.map(|line| {
            self.state = running();
            // A Ctrl-C typed after the line is for the command that it begins; nothing can be ended yet, so the command
            // learns of it from its first `guard` or `print`.
            self.interrupt(&mut echo);
            Line::cut(&line)
        });
        self.sink
            .write(echo.as_bytes())
            .map_err(|Closed| TerminalError::Closed)?;
        if let Some(line) = answer {
            return Ok(call.reply(line));
        }
        let (waiting, outcome) = call.park().map_err(|_| TerminalError::Busy)?;
        self.state = State::Prompt(waiting);
        Ok(outcome)
    }

    fn print(&mut self, call: Call<'_, P, Print>, bytes: Chunk) -> Served<Print, P::Handle> {
        only(COMMANDS, call.badge())?;
        self.show(&bytes).map_err(|Closed| TerminalError::Closed)?;
        Ok(call.reply(self.interrupted()))
    }

    fn guard(&mut self, call: Call<'_, P, Guard>, what: Stop) -> Served<Guard, P::Handle> {
        only(COMMANDS, call.badge())?;
        if let State::Running { stop, .. } = &mut self.state {
            *stop = what;
        }
        Ok(call.reply(self.interrupted()))
    }
}

impl<S: Sink, P: Responder> stream::Service<P> for Terminal<S, P> {
    fn write(
        &mut self,
        call: Call<'_, P, stream::Write>,
        bytes: Chunk,
    ) -> Served<stream::Write, P::Handle> {
        match self.show(&bytes) {
            Ok(()) => Ok(call.reply(())),
            Err(Closed) => Err(StreamError::Closed),
        }
    }

    fn flush(
        &mut self,
        call: Call<'_, P, stream::Flush>,
        (): (),
    ) -> Served<stream::Flush, P::Handle> {
        // What is written goes on to the session's stream before the write is answered.
        Ok(call.reply(()))
    }

    fn read(&mut self, _: Call<'_, P, stream::Read>, _: u16) -> Served<stream::Read, P::Handle> {
        Err(StreamError::WriteOnly)
    }
}

fn only(allowed: u64, badge: u64) -> Result<(), TerminalError> {
    debug_assert!(allowed < PROGRAMS);
    match badge == allowed {
        true => Ok(()),
        false => Err(TerminalError::NotYours),
    }
}

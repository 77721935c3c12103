//! One session's terminal: the only place that knows what its screen shows.
//!
//! It is served by one thread and called by the others of its session, so it needs no locks: the thread that reads the
//! stream brings what was typed, the one that runs commands fetches lines and prints, and the programs that the session
//! runs write. Nobody waits here for a command, so Ctrl-C is seen at once whatever runs.
//!
//! What is typed while a command runs, or while a word is being completed, is kept for the prompt, up to [`AHEAD_MAX`]
//! bytes; the loss of more is announced there. Ctrl-C throws away what was typed before it.
//!
//! Output can be held ([`output`]): then whoever writes waits.

pub(crate) mod output;
mod rows;
#[cfg(test)]
mod tests;
mod typing;

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use ipc::proto::stream::Chunk;
use ipc::proto::{Call, Parked, Responder, Served};
use profd::text::counted;

use crate::line::keys::{GO_ON, HOLD, INTERRUPT};
use crate::line::{Decoder, Editor};
use crate::protocol::{
    COMMANDS, Completion, Front, Guard, INPUT, Input, NextLine, Page, Print, Service, Stop,
    TerminalError, only,
};
use crate::session::Leave;
use output::{Flow, Held, Writer};
use rows::Rows;

/// Bytes kept that were typed while a command ran.
pub const AHEAD_MAX: usize = 16 * 1024;
/// Says that a word cannot be completed, or a key means nothing.
const BELL: char = '\x07';

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

/// What the session is doing. `interrupted`: whether Ctrl-C was pressed meanwhile, and nobody was told so.
enum State<P: Responder> {
    /// A command runs, or none was asked for yet.
    Running { interrupted: bool, stop: Stop },
    /// The prompt is shown; who waits for the line.
    Prompt(Parked<P, NextLine>),
    /// The prompt is shown, and the command thread looks for how the word before the cursor goes on.
    Completing { interrupted: bool },
}

/// A session's terminal.
pub struct Terminal<S, P: Responder> {
    sink: S,
    /// How this session is left, for who presses Ctrl-D.
    leave: Leave,
    state: State<P>,
    editor: Editor,
    decoder: Decoder,
    /// Typed, not yet looked at.
    ahead: VecDeque<u8>,
    /// Bytes typed that did not fit into `ahead`.
    lost: u64,
    /// The last key was a Tab.
    tab: bool,
    /// Where the cursor is and how full the page, prompt aside.
    rows: Rows,
    flow: Flow,
    /// Whether output stops after each page.
    paging: bool,
    /// Who waits for their output to be shown. Nobody unless it is held.
    held: VecDeque<Held<P>>,
    /// The session's stream is gone.
    gone: bool,
}

impl<S: Sink, P: Responder> Terminal<S, P> {
    /// A terminal that shows nothing yet and runs something: its command thread has not asked for a line.
    pub fn new(sink: S, leave: Leave) -> Self {
        Self {
            sink,
            leave,
            state: running(),
            editor: Editor::default(),
            decoder: Decoder::default(),
            ahead: VecDeque::new(),
            lost: 0,
            tab: false,
            rows: Rows::default(),
            flow: Flow::Free,
            paging: false,
            held: VecDeque::new(),
            gone: false,
        }
    }

    /// Whether the prompt is shown and waits for a line.
    pub const fn is_at_prompt(&self) -> bool {
        matches!(self.state, State::Prompt(_))
    }

    /// Whether Ctrl-C was pressed and nobody was told so.
    fn interrupted(&self) -> bool {
        match self.state {
            State::Running { interrupted, .. } | State::Completing { interrupted } => interrupted,
            State::Prompt(_) => false,
        }
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
        let hold = bytes.last() == Some(&HOLD);
        let typed = bytes.iter().copied();
        let typed: Vec<u8> = typed.filter(|byte| ![HOLD, GO_ON].contains(byte)).collect();
        if self.flow == Flow::Stopped && (!hold || typed.contains(&INTERRUPT)) {
            self.go_on(call.responder());
        }
        let (taken, mut stop) = self.turn_pages(&typed, call.responder());
        self.keep(&typed[taken..]);
        let mut echo = String::new();
        if self.is_at_prompt()
            && let Some(edited) = self.edit(&mut echo)
        {
            // The echo goes out first: the command may write as soon as it has its line.
            let _ = self.sink.write(core::mem::take(&mut echo).as_bytes());
            let prompt = core::mem::replace(&mut self.state, running());
            let asked = self.ask(edited);
            if let State::Prompt(waiting) = prompt {
                // The command thread never gives up its call while its process lives.
                let _ = waiting.answer(call.responder(), &asked);
            }
        }
        match self.interrupt(&mut echo) {
            Stop::Nothing => {}
            other => stop = other,
        }
        // A stream that is gone shows no echo; who reads it is told by its own read.
        let _ = self.sink.write(echo.as_bytes());
        if hold && self.flow == Flow::Free {
            self.flow = Flow::Stopped;
        }
        Ok(call.reply(stop))
    }

    fn next_line(
        &mut self,
        mut call: Call<'_, P, NextLine>,
        completion: Completion,
    ) -> Served<NextLine, P::Handle> {
        only(COMMANDS, call.badge())?;
        if self.gone {
            return Err(TerminalError::Closed);
        }
        let mut echo = String::new();
        match (&self.state, completion) {
            (State::Completing { interrupted: true }, _) => {}
            (State::Completing { .. }, Completion::Insert(text))
                if self.editor.insert(&text, &mut echo) => {}
            (State::Completing { .. }, Completion::Shown) => {}
            (State::Completing { .. }, _) => echo.push(BELL),
            (State::Running { .. } | State::Prompt(_), _) => {
                self.end_pages(call.responder());
                if !self.rows.fresh() {
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
            }
        }
        let edited = self.edit(&mut echo);
        let answer = edited.map(|edited| {
            let asked = self.ask(edited);
            // A Ctrl-C typed after the line is for the command that it begins; nothing can be ended yet, so the command
            // learns of it from its first `guard` or `print`.
            self.interrupt(&mut echo);
            asked
        });
        self.sink
            .write(echo.as_bytes())
            .map_err(|Closed| TerminalError::Closed)?;
        match answer {
            Some(asked) => Ok(call.reply(asked)),
            None => {
                let (waiting, outcome) = call.park().map_err(|_| TerminalError::Busy)?;
                self.state = State::Prompt(waiting);
                Ok(outcome)
            }
        }
    }

    fn print(&mut self, call: Call<'_, P, Print>, bytes: Chunk) -> Served<Print, P::Handle> {
        only(COMMANDS, call.badge())?;
        if self.interrupted() {
            return Ok(call.reply(true));
        }
        let shown = self.show(&bytes).map_err(|Closed| TerminalError::Closed)?;
        if shown == bytes.len() {
            return Ok(call.reply(false));
        }
        let (call, outcome) = call.park().map_err(|_| TerminalError::Busy)?;
        self.hold(Writer::Command(call), &bytes[shown..]);
        Ok(outcome)
    }

    fn guard(&mut self, call: Call<'_, P, Guard>, what: Stop) -> Served<Guard, P::Handle> {
        only(COMMANDS, call.badge())?;
        let mut was = false;
        if let State::Running { interrupted, stop } = &mut self.state {
            *stop = what;
            was = core::mem::take(interrupted);
        }
        Ok(call.reply(was || self.gone))
    }

    fn page(&mut self, call: Call<'_, P, Page>, on: bool) -> Served<Page, P::Handle> {
        only(COMMANDS, call.badge())?;
        // Who has pressed Ctrl-C wants no more pages.
        self.paging = on && !self.interrupted();
        self.rows.begin_page();
        Ok(call.reply(()))
    }
}

impl<S: Sink, P: Responder> Front<P> for Terminal<S, P> {
    fn hang_up(&mut self, responder: &mut P) -> Stop {
        self.gone = true;
        let (interrupted, mut what) = (true, Stop::Nothing);
        match core::mem::replace(&mut self.state, running()) {
            State::Running { stop, .. } => what = stop,
            // The command thread never gives up its call while its process lives.
            State::Prompt(waiting) => drop(waiting.refuse(responder, &TerminalError::Closed)),
            State::Completing { .. } => {}
        }
        let stop = what;
        self.state = State::Running { interrupted, stop };
        self.release(responder);
        what
    }
}

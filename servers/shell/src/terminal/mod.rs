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

mod output;
mod rows;
#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use ipc::proto::stream::Chunk;
use ipc::proto::{Call, Parked, Responder, Served};
use profd::text::counted;

use crate::line::keys::{GO_ON, HOLD, INTERRUPT};
use crate::line::{Decoder, Editor, Event, Key};
use crate::protocol::{
    Asked, COMMANDS, Completion, Guard, INPUT, Input, Line, NextLine, PROGRAMS, Page, Print,
    Service, Stop, TerminalError,
};
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

/// What typing led to, beyond a changed line.
enum Edited {
    Line(String),
    Tab,
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
    /// The last key was a Tab.
    tab: bool,
    /// Where the cursor is and how full the page, prompt aside.
    rows: Rows,
    flow: Flow,
    /// Whether output stops after each page.
    paging: bool,
    /// Who waits for their output to be shown. Nobody unless it is held.
    held: VecDeque<Held<P>>,
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
            tab: false,
            rows: Rows::default(),
            flow: Flow::Free,
            paging: false,
            held: VecDeque::new(),
        }
    }

    /// Keeps what was typed, as far as there is room.
    fn keep(&mut self, bytes: &[u8]) {
        // Ctrl-C must be seen even by a session that has no room for what else was typed.
        if !matches!(self.state, State::Prompt(_)) && bytes.contains(&INTERRUPT) {
            self.ahead.clear();
        }
        let room = AHEAD_MAX - self.ahead.len();
        let kept = &bytes[..bytes.len().min(room)];
        self.ahead.extend(kept);
        self.lost += (bytes.len() - kept.len()) as u64;
    }

    /// Edits with what was typed, until a line is complete or a word is to be completed.
    fn edit(&mut self, echo: &mut String) -> Option<Edited> {
        while let Some(byte) = self.ahead.pop_front() {
            for key in self.decoder.feed(byte).into_iter().flatten() {
                let event = self.editor.key(key, echo);
                if event != Some(Event::Tab) {
                    self.tab = false;
                }
                match event {
                    Some(Event::Line(line)) => return Some(Edited::Line(line)),
                    Some(Event::Tab) => return Some(Edited::Tab),
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

    /// Leaves the prompt for what typing led to; gives what the command thread is asked for.
    fn ask(&mut self, edited: Edited) -> Asked {
        match edited {
            Edited::Line(line) => {
                self.state = running();
                self.rows.begin();
                Asked::Line(Line::cut(&line))
            }
            Edited::Tab => {
                self.state = State::Completing { interrupted: false };
                let (_, before) = self.editor.line();
                Asked::Completion {
                    before: Line::cut(before),
                    again: core::mem::replace(&mut self.tab, true),
                }
            }
        }
    }

    /// If Ctrl-C was typed while the command thread was at something, notes it, shows it and forgets what came before. Answers
    /// what to end.
    fn interrupt(&mut self, echo: &mut String) -> Stop {
        if matches!(self.state, State::Prompt(_)) {
            return Stop::Nothing;
        }
        let Some(last) = self.ahead.iter().rposition(|&byte| byte == INTERRUPT) else {
            return Stop::Nothing;
        };
        self.ahead.drain(..=last);
        self.decoder = Decoder::default();
        self.lost = 0;
        match &mut self.state {
            State::Running { interrupted, stop } => {
                *interrupted = true;
                self.paging = false;
                self.rows.begin();
                echo.push_str("^C\n");
                *stop
            }
            State::Completing { interrupted } => {
                *interrupted = true;
                self.editor.key(Key::Interrupt, echo);
                Stop::Nothing
            }
            State::Prompt(_) => Stop::Nothing,
        }
    }

    /// Whether Ctrl-C was pressed and nobody was told so.
    fn interrupted(&self) -> bool {
        match self.state {
            State::Running { interrupted, .. } | State::Completing { interrupted } => interrupted,
            State::Prompt(_) => false,
        }
    }

    /// Takes keys for as long as a page is shown; gives how many bytes that were, and what to end.
    fn turn_pages(&mut self, typed: &[u8], responder: &mut P) -> (usize, Stop) {
        for (index, &byte) in typed.iter().enumerate() {
            if self.flow != Flow::PageFull {
                return (index, Stop::Nothing);
            }
            for key in self.decoder.feed(byte).into_iter().flatten() {
                match key {
                    Key::Enter | Key::Char(' ') => self.go_on(responder),
                    Key::Char('q' | 'Q') => return (index + 1, self.end_paged(responder)),
                    // As everywhere else.
                    Key::Interrupt => return (index, self.end_paged(responder)),
                    _ => {
                        let _ = self.sink.write(&[BELL as u8]);
                    }
                }
            }
        }
        (typed.len(), Stop::Nothing)
    }

    /// Ends the command whose page is shown; answers what else to end.
    fn end_paged(&mut self, responder: &mut P) -> Stop {
        let mut what = Stop::Nothing;
        if let State::Running { interrupted, stop } = &mut self.state {
            *interrupted = true;
            what = *stop;
        }
        self.paging = false;
        self.go_on(responder);
        what
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
        if matches!(self.state, State::Prompt(_))
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
        Ok(call.reply(was))
    }

    fn page(&mut self, call: Call<'_, P, Page>, on: bool) -> Served<Page, P::Handle> {
        only(COMMANDS, call.badge())?;
        // Who has pressed Ctrl-C wants no more pages.
        self.paging = on && !self.interrupted();
        self.rows.begin_page();
        Ok(call.reply(()))
    }
}

fn only(allowed: u64, badge: u64) -> Result<(), TerminalError> {
    debug_assert!(allowed < PROGRAMS);
    match badge == allowed {
        true => Ok(()),
        false => Err(TerminalError::NotYours),
    }
}

//! Typing: what becomes of bytes at the prompt, while something runs, and while a page is shown.

use alloc::string::String;
use core::fmt::Write as _;
use core::mem;

use ipc::proto::Responder;

use super::output::Flow;
use super::{AHEAD_MAX, BELL, Sink, State, Terminal, running};
use crate::line::keys::INTERRUPT;
use crate::line::{Decoder, Event, Key};
use crate::protocol::{Asked, Line, Stop};

/// What typing led to, beyond a changed line.
pub enum Edited {
    Line(String),
    Tab,
    Leave,
}

impl<S: Sink, P: Responder> Terminal<S, P> {
    /// Keeps what was typed, as far as there is room.
    pub(super) fn keep(&mut self, bytes: &[u8]) {
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
    pub(super) fn edit(&mut self, echo: &mut String) -> Option<Edited> {
        while let Some(byte) = self.ahead.pop_front() {
            for key in self.decoder.feed(byte).into_iter().flatten() {
                let event = self.editor.key(key, echo);
                if event != Some(Event::Tab) {
                    self.tab = false;
                }
                match event {
                    Some(Event::Line(line)) => return Some(Edited::Line(line)),
                    Some(Event::Tab) => return Some(Edited::Tab),
                    Some(Event::Leave) if self.leave.ends => {
                        echo.push('\n');
                        return Some(Edited::Leave);
                    }
                    Some(Event::Leave) => {
                        let _ = writeln!(echo, "\n{}", self.leave.how);
                        self.editor.show(echo);
                    }
                    None => {}
                }
            }
        }
        None
    }

    /// Leaves the prompt for what typing led to; gives what the command thread is asked for.
    pub(super) fn ask(&mut self, edited: Edited) -> Asked {
        match edited {
            Edited::Line(line) => {
                self.state = running();
                self.rows.begin();
                Asked::Line(Line::cut(&line))
            }
            Edited::Leave => {
                self.state = running();
                Asked::Leave
            }
            Edited::Tab => {
                self.state = State::Completing { interrupted: false };
                let (_, before) = self.editor.line();
                Asked::Completion {
                    before: Line::cut(before),
                    again: mem::replace(&mut self.tab, true),
                }
            }
        }
    }

    /// If Ctrl-C was typed while the command thread was at something, notes it, shows it and forgets what came before. Answers
    /// what to end.
    pub(super) fn interrupt(&mut self, echo: &mut String) -> Stop {
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

    /// Takes keys for as long as a page is shown; gives how many bytes that were, and what to end.
    pub(super) fn turn_pages(&mut self, typed: &[u8], responder: &mut P) -> (usize, Stop) {
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

//! Output: where it goes on the screen, and who waits while it is held.
//!
//! Ctrl-S holds it; any key goes on, and does what it does (Ctrl-Q nothing else), so that nobody is left with a screen that
//! seems dead. `more` holds it after each page. Whoever writes meanwhile is parked with what is left of their bytes, a
//! command and a program alike: nothing is lost, and nothing grows. Where no more can be parked, output is shown although
//! it is held. A prompt, and the echo of what is typed, are always shown.

use alloc::vec::Vec;
use core::mem;

use ipc::proto::stream::{self, Chunk, StreamError};
use ipc::proto::{Call, Parked, Responder, Served};

use super::{Closed, Sink, State, Terminal};
use crate::line::view::CLEAR_ROW;
use crate::protocol::{Print, TerminalError};

/// Rows of a page: those of a screen of 24, but for the one that says how it goes on.
pub const PAGE_ROWS: usize = 23;
/// What that one says.
pub const MARK: &str = "-- more: Enter or Space for the next page, q to end --";
/// Writers that wait at most.
pub const HELD_MAX: usize = 64;

/// Whether output goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It does.
    Free,
    /// Ctrl-S was pressed.
    Stopped,
    /// A page is full.
    PageFull,
}

/// One who waits for output to be shown.
pub struct Held<P: Responder> {
    writer: Writer<P>,
    /// What is not shown yet.
    rest: Vec<u8>,
}

pub enum Writer<P: Responder> {
    Command(Parked<P, Print>),
    Program(Parked<P, stream::Write>),
}

impl<S: Sink, P: Responder> Terminal<S, P> {
    /// Shows output as far as it may be shown now; gives how many bytes that is. At the prompt it goes above the line that is
    /// being edited.
    pub(super) fn show(&mut self, bytes: &[u8]) -> Result<usize, Closed> {
        if self.flow != Flow::Free || bytes.is_empty() {
            return Ok(0);
        }
        if !matches!(self.state, State::Running { .. }) {
            self.show_above(bytes)?;
            return Ok(bytes.len());
        }
        let taken = self.rows.take(bytes, self.paging.then_some(PAGE_ROWS));
        self.sink.write(&bytes[..taken])?;
        if taken < bytes.len() {
            self.flow = Flow::PageFull;
            self.mark()?;
        }
        Ok(taken)
    }

    fn show_above(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        let mut text = alloc::string::String::new();
        self.editor.hide(&mut text);
        self.sink.write(text.as_bytes())?;
        self.sink.write(bytes)?;
        text.clear();
        if bytes.last() != Some(&b'\n') {
            text.push('\n');
        }
        self.editor.show(&mut text);
        self.sink.write(text.as_bytes())
    }

    /// Says below a page how it goes on. In the middle of a line the cursor waits at the end of a full row.
    fn mark(&mut self) -> Result<(), Closed> {
        if !self.rows.fresh() {
            self.sink.write(b"\n")?;
        }
        self.sink.write(MARK.as_bytes())
    }

    /// Shows output although it is held.
    fn show_anyway(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        let flow = mem::replace(&mut self.flow, Flow::Free);
        let paging = mem::replace(&mut self.paging, false);
        if flow == Flow::PageFull {
            self.sink.write(CLEAR_ROW.as_bytes())?;
            self.rows.begin();
        }
        let shown = self.show(bytes);
        (self.flow, self.paging) = (flow, paging);
        if flow == Flow::PageFull {
            self.mark()?;
        }
        shown.map(|_| ())
    }

    /// Keeps a writer until output goes on.
    pub(super) fn hold(&mut self, writer: Writer<P>, rest: &[u8]) {
        let rest = rest.to_vec();
        self.held.push_back(Held { writer, rest });
    }

    /// Lets output go on, until a page is full.
    pub(super) fn go_on(&mut self, responder: &mut P) {
        if self.flow == Flow::PageFull {
            // A stream that is gone is told to the writers.
            let _ = self.sink.write(CLEAR_ROW.as_bytes());
            self.rows.begin();
        }
        self.flow = Flow::Free;
        while self.flow == Flow::Free
            && let Some(Held { writer, rest }) = self.held.pop_front()
        {
            let ended = matches!(writer, Writer::Command(_)) && self.interrupted();
            let shown = match ended {
                true => Ok(rest.len()),
                false => self.show(&rest),
            };
            match shown {
                Ok(shown) if shown < rest.len() => {
                    let rest = rest[shown..].to_vec();
                    self.held.push_front(Held { writer, rest });
                }
                shown => writer.answer(responder, shown.map(|_| ended)),
            }
        }
    }

    /// Lets those go whose output nobody will see.
    pub(super) fn release(&mut self, responder: &mut P) {
        (self.flow, self.paging) = (Flow::Free, false);
        for Held { writer, .. } in self.held.drain(..) {
            writer.answer(responder, Err(Closed));
        }
    }

    /// Ends the pages of a command that is over.
    pub(super) fn end_pages(&mut self, responder: &mut P) {
        self.paging = false;
        if self.flow == Flow::PageFull {
            self.go_on(responder);
        }
    }
}

impl<P: Responder> Writer<P> {
    /// Answers: a command hears whether it is to end. A writer that is gone needs no answer.
    fn answer(self, responder: &mut P, shown: Result<bool, Closed>) {
        let _ = match (self, shown) {
            (Self::Command(call), Ok(ended)) => call.answer(responder, &ended),
            (Self::Program(call), Ok(_)) => call.answer(responder, &()),
            (Self::Command(call), Err(Closed)) => call.refuse(responder, &TerminalError::Closed),
            (Self::Program(call), Err(Closed)) => call.refuse(responder, &StreamError::Closed),
        };
    }
}

impl<S: Sink, P: Responder> stream::Service<P> for Terminal<S, P> {
    fn write(
        &mut self,
        call: Call<'_, P, stream::Write>,
        bytes: Chunk,
    ) -> Served<stream::Write, P::Handle> {
        let closed = |Closed| StreamError::Closed;
        let shown = self.show(&bytes).map_err(closed)?;
        let rest = &bytes[shown..];
        if rest.is_empty() {
            return Ok(call.reply(()));
        }
        if self.held.len() == HELD_MAX {
            self.show_anyway(rest).map_err(closed)?;
            return Ok(call.reply(()));
        }
        let (call, outcome) = call.park().map_err(|_| StreamError::Busy)?;
        self.hold(Writer::Program(call), rest);
        Ok(outcome)
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

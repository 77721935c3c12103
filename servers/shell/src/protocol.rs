//! What the threads of a session say to its terminal. Nobody else may: the badge tells them apart from the programs, which
//! use the same endpoint and only speak [`ipc::proto::stream`].

use ipc::proto::stream::{self, Chunk};
use ipc::proto::{Disposition, Message, Responder, Text};
use postcard::experimental::max_size::MaxSize;
use serde::{Deserialize, Serialize};

use crate::line::LINE_MAX;

/// Badge of the thread that reads the session's stream.
pub const INPUT: u64 = 1;
/// Badge of the thread that runs commands.
pub const COMMANDS: u64 = 2;
/// First badge of a program's output.
pub const PROGRAMS: u64 = 16;

/// A line that a user entered.
pub type Line = Text<LINE_MAX>;

/// What Ctrl-C ends, beyond telling the command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub enum Stop {
    /// Nothing: the command sees for itself.
    #[default]
    Nothing,
    /// A process, by killing it.
    Process(u32),
    /// The profile with this number, whether profd has been asked for it yet or not.
    Profile(u64),
    /// A wait for a time.
    Wait,
}

/// Most bytes that complete a word: a program's name, a number or a command, and the blank behind it.
pub const INSERT_MAX: usize = 32;

/// What the thread that runs commands is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub enum Asked {
    /// To run a line.
    Line(Line),
    /// To complete the last word of what is typed.
    Completion {
        /// The line up to the cursor.
        before: Line,
        /// Tab was pressed twice in a row: to show what there is.
        again: bool,
    },
    /// To end the session, which is one that can be left.
    Leave,
}

/// What came of a completion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub enum Completion {
    /// The word cannot be completed, or not without a choice.
    #[default]
    Nothing,
    /// It goes on with this text.
    Insert(Text<INSERT_MAX>),
    /// The choice was shown.
    Shown,
}

/// Why the terminal refuses one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub enum TerminalError {
    /// This operation is not for this caller.
    NotYours,
    /// No call can be parked now.
    Busy,
    /// The session's stream is gone.
    Closed,
}

ipc::protocol! {
    error TerminalError;
    /// Takes what the user typed; answers what is to be ended because of it, now.
    16 Input = input(Chunk) -> Stop;
    /// Says that no command runs, with what came of the completion that was asked for, and answers with what is asked for
    /// next. Parked until there is something.
    17 NextLine = next_line(Completion) -> Asked;
    /// Shows a command's output; answers whether Ctrl-C was pressed since the last `guard` of the command, or since it began.
    /// If it was, nothing is shown. Parked while output is held.
    18 Print = print(Chunk) -> bool;
    /// Says what Ctrl-C ends from now on; answers whether it was pressed since the last `guard` of the command, or since it
    /// began.
    19 Guard = guard(Stop) -> bool;
    /// Says whether the command's output stops after each page.
    20 Page = page(bool) -> ();
}

/// What serves a session's threads and programs.
pub trait Front<P: Responder>: Service<P> + stream::Service<P> {
    /// The session's stream is gone. Answers what is to be ended because of it, now; whatever the command does next is ended as by
    /// Ctrl-C, and there is no next one.
    fn hang_up(&mut self, responder: &mut P) -> Stop;
}

/// Keeps an operation for the caller that it is for.
pub(crate) fn only(allowed: u64, badge: u64) -> Result<(), TerminalError> {
    debug_assert!(allowed < PROGRAMS);
    match badge == allowed {
        true => Ok(()),
        false => Err(TerminalError::NotYours),
    }
}

/// Serves one call of either protocol.
pub fn serve<S, P>(
    session: &mut S,
    responder: &mut P,
    badge: u64,
    message: &mut Message<P::Handle>,
) -> Disposition
where
    S: Service<P> + stream::Service<P>,
    P: Responder,
{
    let stream = stream::OPERATIONS;
    if stream.iter().any(|&(number, _)| number == message.op) {
        stream::dispatch(session, responder, badge, message)
    } else {
        dispatch(session, responder, badge, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_protocols_share_no_number() {
        for (number, name) in OPERATIONS {
            assert!(
                stream::OPERATIONS.iter().all(|(other, _)| other != number),
                "{name}"
            );
        }
    }

    #[test]
    fn wire_bytes_are_pinned() {
        let mut buffer = [0; 8];
        let line = Line::cut("ps");
        let insert = Completion::Insert(Text::cut("a "));
        for (completion, expected) in [
            (Completion::Nothing, &[0][..]),
            (insert, &[1, 2, b'a', b' ']),
            (Completion::Shown, &[2]),
        ] {
            let bytes = postcard::to_slice(&completion, &mut buffer).unwrap();
            assert_eq!(bytes, expected);
        }
        let (before, again) = (line.clone(), true);
        for (asked, expected) in [
            (Asked::Line(line), &[0, 2, b'p', b's'][..]),
            (Asked::Completion { before, again }, &[1, 2, b'p', b's', 1]),
            (Asked::Leave, &[2]),
        ] {
            assert_eq!(postcard::to_slice(&asked, &mut buffer).unwrap(), expected);
        }
        for (stop, expected) in [
            (Stop::Nothing, &[0][..]),
            (Stop::Process(300), &[1, 0xac, 2]),
            (Stop::Profile(300), &[2, 0xac, 2]),
            (Stop::Wait, &[3]),
        ] {
            assert_eq!(postcard::to_slice(&stop, &mut buffer).unwrap(), expected);
        }
    }
}

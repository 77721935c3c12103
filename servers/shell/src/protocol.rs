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
    /// Says that no command runs, and answers with the next line. Parked until there is one.
    17 NextLine = next_line(()) -> Line;
    /// Shows a command's output; answers whether Ctrl-C was pressed since the command began.
    18 Print = print(Chunk) -> bool;
    /// Says what Ctrl-C ends from now on; answers whether it was pressed already.
    19 Guard = guard(Stop) -> bool;
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
        for (stop, expected) in [
            (Stop::Nothing, &[0][..]),
            (Stop::Process(300), &[1, 0xac, 2]),
            (Stop::Profile(300), &[2, 0xac, 2]),
        ] {
            assert_eq!(postcard::to_slice(&stop, &mut buffer).unwrap(), expected);
        }
    }
}

//! The door: lets sessions in that come from elsewhere, each as a process of its own.
//!
//! Not as threads of the shell: the threads, mappings and endpoints of one process would not do for as many sessions as a
//! machine has room for, and one that fails would take the others and the console's with it. A session lives as long as its
//! process: it goes on when the shell is started again.

use alloc::format;

use ipc::proto::CallError;
use ipc::proto::init::InitError;
use ipc::proto::remote::RemoteError;

use crate::persist::{Clock, persist};
use crate::terminal::Closed;

/// Where sessions come from, and where they go.
pub trait Door {
    /// A session that nobody runs yet. It ends when this is dropped.
    type Session;

    /// Waits for the next one.
    ///
    /// # Errors
    /// The server's.
    fn accept(&mut self) -> Result<Self::Session, CallError<RemoteError>>;

    /// Starts a process that runs it. It stays open here for as long as `session` is kept.
    ///
    /// # Errors
    /// init's.
    fn start(&mut self, session: &Self::Session) -> Result<(), CallError<InitError>>;

    /// Ends one that cannot be run, with a line that says why. Waits for nobody to read it.
    fn turn_away(&mut self, session: Self::Session, why: &str);
}

/// Lets sessions in until there is nowhere they could come from.
pub fn attend(door: &mut impl Door, clock: &impl Clock) -> Closed {
    loop {
        let session = match persist(clock, || door.accept()) {
            Ok(session) => session,
            Err(closed) => return closed,
        };
        if let Err(error) = door.start(&session) {
            door.turn_away(session, &format!("no session: {error}\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::abi::Error;
    use std::collections::VecDeque;

    /// Sessions are numbers.
    #[derive(Default)]
    struct Hall {
        waiting: VecDeque<Result<u32, CallError<RemoteError>>>,
        /// No more than these can be started.
        room: usize,
        started: Vec<u32>,
        turned_away: Vec<(u32, String)>,
    }

    impl Door for Hall {
        type Session = u32;

        fn accept(&mut self) -> Result<u32, CallError<RemoteError>> {
            let dead = Err(CallError::Transport(Error::PeerDied));
            self.waiting.pop_front().unwrap_or(dead)
        }
        fn start(&mut self, session: &u32) -> Result<(), CallError<InitError>> {
            if self.started.len() == self.room {
                return Err(CallError::Service(InitError::TooManyPrograms));
            }
            self.started.push(*session);
            Ok(())
        }
        fn turn_away(&mut self, session: u32, why: &str) {
            self.turned_away.push((session, why.into()));
        }
    }

    struct NoTime;

    impl Clock for NoTime {
        fn now(&self) -> u64 {
            0
        }
        fn pause(&self) {}
    }

    #[test]
    fn each_session_is_run_or_told_why_it_is_not() {
        let mut hall = Hall {
            waiting: (1..=4).map(Ok).collect(),
            room: 2,
            ..Hall::default()
        };
        assert_eq!(attend(&mut hall, &NoTime), Closed);
        assert_eq!(hall.started, [1, 2]);
        let why = || "no session: too many programs run\n".to_owned();
        assert_eq!(hall.turned_away, [(3, why()), (4, why())]);
    }

    #[test]
    fn a_server_that_dies_and_comes_again_brings_more() {
        let dead = || Err(CallError::Transport(Error::PeerDied));
        let busy = Err(CallError::Service(RemoteError::Busy));
        let mut hall = Hall {
            waiting: [dead(), Ok(1), dead(), busy, dead(), Ok(2)].into(),
            room: 9,
            ..Hall::default()
        };
        attend(&mut hall, &NoTime);
        assert_eq!(hall.started, [1, 2]);
    }

    #[test]
    fn who_may_not_accept_does_not_ask_again() {
        let not_yours = Err(CallError::Service(RemoteError::NotYours));
        let mut hall = Hall {
            waiting: [not_yours, Ok(1)].into(),
            room: 9,
            ..Hall::default()
        };
        assert_eq!(attend(&mut hall, &NoTime), Closed);
        assert!(hall.started.is_empty());
    }
}

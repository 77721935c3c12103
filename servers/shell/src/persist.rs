//! Calls to a stream, or for sessions, whose server may die, and be started again.
//!
//! init keeps the endpoint of a server that it starts again, and a call made meanwhile waits there (docs/programs.md): the
//! wait for the next instance is the kernel's. Before that init fails every call that it finds at the endpoint, and who
//! calls again at once keeps it at that: hence the pause. When init has given up, the endpoint is dead and every call fails
//! at once: many failures in a row are how the end of a stream shows. A server that refuses is there, and what it lacks now it may
//! have later: it is asked as long as it does not say that it will refuse for ever.

use ipc::proto::CallError;
use ipc::proto::remote::RemoteError;
use ipc::proto::stream::StreamError;

use crate::format::{MILLISECOND, SECOND};
use crate::terminal::Closed;

/// Failures in a row, each with a pause behind it, after which a stream is gone.
const FAILURES_MAX: u32 = 20;
/// Length of a pause, in nanoseconds.
pub const PAUSE: u64 = 50 * MILLISECOND;
/// A call that took this long, in nanoseconds, had a server: for one that comes again it waits less than a second.
const SERVED: u64 = SECOND;

/// The time, and waiting for it.
pub trait Clock {
    /// Nanoseconds since boot.
    fn now(&self) -> u64;
    /// Waits for [`PAUSE`].
    fn pause(&self);
}

/// What a server refuses with.
pub trait Refusal {
    /// Whether it will say so for ever.
    fn is_final(&self) -> bool;
}

impl Refusal for StreamError {
    fn is_final(&self) -> bool {
        matches!(self, Self::Closed | Self::WriteOnly)
    }
}

impl Refusal for RemoteError {
    fn is_final(&self) -> bool {
        matches!(self, Self::NotYours | Self::Over)
    }
}

/// Makes a call until it is answered.
///
/// # Errors
/// [`Closed`] if what is called is gone.
pub fn persist<T, E: Refusal>(
    clock: &impl Clock,
    mut call: impl FnMut() -> Result<T, CallError<E>>,
) -> Result<T, Closed> {
    let mut failures = 0;
    while failures < FAILURES_MAX {
        let asked = clock.now();
        match call() {
            Ok(answer) => return Ok(answer),
            Err(CallError::Service(error)) if error.is_final() => return Err(Closed),
            Err(CallError::Service(_)) => failures = 0,
            Err(_) if clock.now().saturating_sub(asked) > SERVED => failures = 1,
            Err(_) => failures += 1,
        }
        clock.pause();
    }
    Err(Closed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::abi::Error;
    use std::cell::Cell;

    const DEAD: Result<(), CallError<StreamError>> = Err(CallError::Transport(Error::PeerDied));

    #[derive(Default)]
    struct Time(Cell<u64>);

    impl Clock for Time {
        fn now(&self) -> u64 {
            self.0.get()
        }
        fn pause(&self) {
            self.0.set(self.0.get() + PAUSE);
        }
    }

    #[test]
    fn a_server_that_is_started_again_answers_in_the_end() {
        let time = Time::default();
        let answer = persist(&time, || match time.now() {
            0..900_000_000 => DEAD,
            _ => Ok(()),
        });
        assert_eq!(answer, Ok(()));
    }

    #[test]
    fn a_dead_endpoint_and_a_closed_stream_are_the_end() {
        let time = Time::default();
        assert_eq!(persist(&time, || DEAD), Err(Closed));
        assert_eq!(time.now(), u64::from(FAILURES_MAX) * PAUSE);
        let closed = Err(CallError::Service(StreamError::Closed));
        assert_eq!(persist(&time, || closed), Err::<(), _>(Closed));
        assert_eq!(time.now(), u64::from(FAILURES_MAX) * PAUSE);
    }

    #[test]
    fn a_server_that_lacks_something_is_asked_until_it_has_it() {
        let time = Time::default();
        let answer = persist(&time, || match time.now() {
            0..60_000_000_000 => Err(CallError::Service(RemoteError::Busy)),
            _ => Ok(()),
        });
        assert_eq!(answer, Ok(()));
    }

    #[test]
    fn a_server_that_dies_now_and_then_is_no_end() {
        let (time, mut deaths) = (Time::default(), 0);
        let answer = persist(&time, || {
            time.0.set(time.now() + 2 * SERVED);
            deaths += 1;
            if deaths < 100 { DEAD } else { Ok(()) }
        });
        assert_eq!(answer, Ok(()));
    }
}

//! The remote shell where it is off: its endpoint answers all the same, because it was perhaps on in an earlier instance of the
//! server, and processes of sessions that ended with that one ask for them here.

use ipc::proto::remote::{Accept, Describe, Finish, RemoteError, Service as RemoteService, Status};
use ipc::proto::stream::{Chunk, Flush, Read, Service as StreamService, StreamError, Write};
use ipc::proto::{Call, Parked, Responder, Served};

use super::service::stranger;

/// No sessions.
pub struct Off<P: Responder> {
    /// The shell, which waits for the first one.
    acceptor: Option<Parked<P, Accept>>,
}

impl<P: Responder> Default for Off<P> {
    fn default() -> Self {
        Self { acceptor: None }
    }
}

impl<P: Responder> RemoteService<P> for Off<P> {
    fn accept(&mut self, mut call: Call<'_, P, Accept>, (): ()) -> Served<Accept, P::Handle> {
        if let Some(earlier) = self.acceptor.take() {
            // Who is gone needs no answer.
            let _ = earlier.refuse(call.responder(), &RemoteError::Busy);
        }
        let (call, outcome) = call.park().map_err(|_| RemoteError::Busy)?;
        self.acceptor = Some(call);
        Ok(outcome)
    }

    fn describe(&mut self, call: Call<'_, P, Describe>, (): ()) -> Served<Describe, P::Handle> {
        Err(stranger(call.badge()))
    }

    fn finish(&mut self, call: Call<'_, P, Finish>, _: Status) -> Served<Finish, P::Handle> {
        Err(stranger(call.badge()))
    }
}

impl<P: Responder> StreamService<P> for Off<P> {
    fn write(&mut self, _: Call<'_, P, Write>, _: Chunk) -> Served<Write, P::Handle> {
        Err(StreamError::Closed)
    }

    fn read(&mut self, _: Call<'_, P, Read>, _: u16) -> Served<Read, P::Handle> {
        Err(StreamError::Closed)
    }

    fn flush(&mut self, _: Call<'_, P, Flush>, (): ()) -> Served<Flush, P::Handle> {
        Err(StreamError::Closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::SESSION_BADGE;
    use ipc::abi::Error;
    use ipc::proto::remote::{self, Client as RemoteClient};
    use ipc::proto::stream::Client as StreamClient;
    use ipc::proto::{CallError, Desk, Loopback, Message, Transport};

    struct Line(Loopback<Off<Desk>>);

    impl Transport for &mut Line {
        type Handle = u32;
        fn call(&mut self, message: &mut Message<u32>) -> Result<(), Error> {
            self.0.call(message)
        }
    }

    #[test]
    fn sessions_of_an_earlier_instance_are_over_and_the_shell_waits_for_others() {
        let mut line = Line(Loopback::new(Off::default(), remote::serve));
        line.0.badge = SESSION_BADGE | 5;
        let over = CallError::Service(RemoteError::Over);
        assert_eq!(RemoteClient::new(&mut line).describe(&()), Err(over));
        let finished = RemoteClient::new(&mut line).finish(&Status::Success);
        assert_eq!(finished, Err(over));
        let closed = CallError::Service(StreamError::Closed);
        let bytes = Chunk::try_from(b"x".as_slice()).unwrap();
        assert_eq!(StreamClient::new(&mut line).write(&bytes), Err(closed));
        assert_eq!(StreamClient::new(&mut line).read(&1), Err(closed));
        assert_eq!(StreamClient::new(&mut line).flush(&()), Err(closed));
        line.0.badge = 7;
        for _ in 0..2 {
            let waits = Err(CallError::Transport(Error::TimedOut));
            assert_eq!(RemoteClient::new(&mut line).accept(&()), waits);
        }
        let (first, answer) = line.0.desk.last_answer.take().unwrap();
        assert_eq!(first, 1);
        assert_eq!(answer.get::<RemoteError>().unwrap(), RemoteError::Busy);
    }
}

//! The protocols `remote` and `stream`, served: each call is answered, or waits with its session.

use ipc::proto::remote::{
    Accept, Describe, Finish, Opened, RemoteError, Service as RemoteService, Status,
};
use ipc::proto::stream::{Chunk, Flush, Read, Service as StreamService, StreamError, Write};
use ipc::proto::{Call, Responder, Served};

use super::session::{WAITING_MAX, Writer};
use super::{Mint, Remote, SESSION_BADGE};

impl<M: Mint<Handle = P::Handle>, P: Responder> RemoteService<P> for Remote<M, P> {
    fn accept(&mut self, mut call: Call<'_, P, Accept>, (): ()) -> Served<Accept, P::Handle> {
        if call.badge() & SESSION_BADGE != 0 {
            return Err(RemoteError::NotYours);
        }
        if let Some(earlier) = self.acceptor.take() {
            // Who is gone needs no answer.
            let _ = earlier.refuse(call.responder(), &RemoteError::Busy);
        }
        let (call, outcome) = call.park().map_err(|_| RemoteError::Busy)?;
        self.acceptor = Some(call);
        self.server.set_serves(true);
        Ok(outcome)
    }

    fn describe(&mut self, call: Call<'_, P, Describe>, (): ()) -> Served<Describe, P::Handle> {
        let badge = call.badge();
        let opened: Opened = match self.called(badge) {
            Some(session) => session.opened.clone(),
            None => return Err(stranger(badge)),
        };
        Ok(call.reply(opened))
    }

    fn finish(&mut self, call: Call<'_, P, Finish>, status: Status) -> Served<Finish, P::Handle> {
        let badge = call.badge();
        let Some(session) = self.called(badge) else {
            return Err(stranger(badge));
        };
        if session.is_over {
            return Err(RemoteError::Over);
        }
        session.is_over = true;
        let number = session.number();
        self.server.finish(self.now, number, status);
        Ok(call.reply(()))
    }
}

/// What is answered to a handle that is no session's of this server.
pub(super) const fn stranger(badge: u64) -> RemoteError {
    if badge & SESSION_BADGE == 0 {
        RemoteError::NotYours
    } else {
        // One that an earlier instance had.
        RemoteError::Over
    }
}

impl<M: Mint<Handle = P::Handle>, P: Responder> StreamService<P> for Remote<M, P> {
    fn write(&mut self, call: Call<'_, P, Write>, bytes: Chunk) -> Served<Write, P::Handle> {
        let Self {
            server, sessions, ..
        } = self;
        let mut sessions = sessions.iter_mut();
        let session = sessions.find(|session| session.badge == Some(call.badge()));
        let session = session.filter(|session| !session.is_over);
        let session = session.ok_or(StreamError::Closed)?;
        if session.writers.len() == WAITING_MAX {
            return Err(StreamError::Busy);
        }
        let taken = match session.writers.is_empty() {
            true => session.write(server, &bytes),
            false => 0,
        };
        if taken == bytes.len() {
            return Ok(call.reply(()));
        }
        // One that cannot be parked is refused with a part of it taken: the caller is out of step, and its session ends.
        let Ok((call, outcome)) = call.park() else {
            session.is_over = true;
            server.close(self.now, session.number(), remote_shell::End::Failed);
            return Err(StreamError::Closed);
        };
        session.writers.push_back(Writer { call, bytes, taken });
        Ok(outcome)
    }

    fn read(&mut self, call: Call<'_, P, Read>, max: u16) -> Served<Read, P::Handle> {
        let Self {
            server,
            sessions,
            now,
            ..
        } = self;
        let mut sessions = sessions.iter_mut();
        let session = sessions.find(|session| session.badge == Some(call.badge()));
        let session = session.filter(|session| !session.is_over);
        let session = session.ok_or(StreamError::Closed)?;
        if session.reader.is_some() {
            return Err(StreamError::Busy);
        }
        let bytes = session.read(server, *now, max.into());
        if max == 0 || !bytes.is_empty() {
            return Ok(call.reply(bytes));
        }
        let (call, outcome) = call.park().map_err(|_| StreamError::Busy)?;
        session.reader = Some((call, max.into()));
        Ok(outcome)
    }

    fn flush(&mut self, call: Call<'_, P, Flush>, (): ()) -> Served<Flush, P::Handle> {
        let badge = call.badge();
        let Self {
            server, sessions, ..
        } = self;
        let mut sessions = sessions.iter_mut();
        let session = sessions.find(|session| session.badge == Some(badge));
        let session = session.ok_or(StreamError::Closed)?;
        if session.is_flushed(server) {
            return Ok(call.reply(()));
        }
        if session.flushers.len() == WAITING_MAX {
            return Err(StreamError::Busy);
        }
        let (call, outcome) = call.park().map_err(|_| StreamError::Busy)?;
        session.flushers.push(call);
        Ok(outcome)
    }
}

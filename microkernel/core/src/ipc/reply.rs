//! Answering: at once, later, or by another hand.

use crate::base::regs::Reg;
use crate::calls::{Caller, Stop};
use crate::handles::Grant;
use crate::hardware::Hardware;
use crate::kernel::Kernel;
use crate::object::Object;
use crate::object::thread::ThreadId;
use core::sync::atomic::Ordering::Relaxed;
use ipc::abi::trace::TraceKind;
use ipc::abi::{Error, Handle, Rights, Tag};

impl<H: Hardware> Kernel<H> {
    /// `reply`: the caller goes on; the server too.
    pub(crate) fn reply(&self, caller: &Caller<'_>, tag: Tag) -> Result<(), Stop> {
        let client = self.answer(caller, tag)?;
        self.make_ready(caller.cpu, client);
        Ok(())
    }

    /// Answers the call that the current thread serves. Returns the client, owned, with its registers complete.
    ///
    /// # Errors
    /// `PeerDied` if the client no longer waits, or cannot take the handles; the server is free of it then. A fault of the
    /// replier's own leaves it serving.
    pub(crate) fn answer(&self, caller: &Caller<'_>, tag: Tag) -> Result<ThreadId, Error> {
        Self::check_tag(tag)?;
        let (cpu, server) = (caller.cpu, caller.thread);
        let (id, sequence) = server.served().ok_or(Error::NoReply)?;
        let client = self.thread(id);
        let transit = self.extract(cpu, server, tag)?;
        self.stop_serving(caller);
        if !client.claim_call(sequence) {
            self.restore(cpu, server, transit);
            return Err(Error::PeerDied);
        }
        if let Err(error) = self.transfer(cpu, server, client, tag, transit) {
            self.finish(cpu, id, Err(error));
            return Err(Error::PeerDied);
        }
        self.settle(cpu, id, Ok(()));
        client.regs.set(Reg::Rdi, 0);
        client.regs.set(Reg::Rsi, tag.raw());
        if self.is_tracing() {
            self.record(
                cpu,
                self.event(TraceKind::Reply, caller.id)
                    .words(self.tid(id), tag.raw()),
            );
        }
        Ok(id)
    }

    /// The current thread serves nobody.
    fn stop_serving(&self, caller: &Caller<'_>) {
        caller.thread.set_serving(None);
        self.own_priority(caller.cpu, caller.thread);
    }

    /// Drops the call that the current thread serves, if any: its client fails at once.
    pub(crate) fn drop_served(&self, caller: &Caller<'_>) {
        if let Some(client) = caller.thread.served() {
            self.stop_serving(caller);
            self.fail_call(caller.cpu, client, Error::PeerDied);
        }
    }

    /// `reply_park`: the call becomes a handle.
    pub(crate) fn reply_park(&self, caller: &Caller<'_>) -> Result<(Handle,), Stop> {
        let (id, sequence) = caller.thread.served().ok_or(Error::NoReply)?;
        let grant = Grant {
            object: Object::Reply(id, sequence),
            rights: Rights::TRANSFER | Rights::MANAGE,
        };
        self.make_room(caller.cpu, caller.process, 1)?;
        let handle = self.insert(caller.cpu, caller.process, grant)?;
        let client = self.thread(id);
        if client.status().sequence() == sequence {
            client.server.store(ThreadId::NONE, Relaxed);
        }
        self.stop_serving(caller);
        Ok((handle,))
    }

    /// `reply_take`: the current thread serves the parked call from now on.
    pub(crate) fn reply_take(&self, caller: &Caller<'_>, handle: Handle) -> Result<(), Stop> {
        if caller.thread.served().is_some() {
            return Err(Error::WrongState.into());
        }
        let (id, sequence) = {
            let mut handles = caller.process.handles.lock(&caller.cpu.token);
            let grant = handles.get(&self.pools.chunks, handle)?;
            let (id, sequence) = grant.named(Object::as_reply, Rights::empty())?;
            handles.remove(&self.pools.chunks, handle)?;
            (id, sequence)
        };
        let client = self.thread(id);
        caller.thread.set_serving(Some((id, sequence)));
        // If the client has gone meanwhile, the reply will say so; nothing is lent by one that does not wait.
        if client.status().sequence() == sequence {
            client.server.store(caller.id.0, Relaxed);
            self.own_priority(caller.cpu, caller.thread);
        }
        Ok(())
    }
}

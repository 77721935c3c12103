//! The calling side.

use super::donate::Raise;
use super::transfer::Transit;
use crate::base::lock::{Guard, rank};
use crate::base::pool::Ref;
use crate::base::regs::Reg;
use crate::calls::{Caller, Stop};
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::object::endpoint::Queues;
use crate::object::thread::{ANY_CPU, State, ThreadId};
use crate::object::{Endpoint, Object};
use crate::trace::Event;
use core::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst, fence};
use ipc::abi::trace::TraceKind;
use ipc::abi::{Delivery, Error, Handle, Rights, Tag};

impl<H: Hardware> Kernel<H> {
    /// `call`: to a server that waits, or into the endpoint's queue.
    pub(crate) fn call(
        &self,
        caller: &Caller<'_>,
        handle: Handle,
        tag: Tag,
        deadline: u64,
    ) -> Result<(), Stop> {
        Self::check_tag(tag)?;
        let grant = self.lookup(caller, handle)?;
        let (reference, badge) = grant.named(Object::as_endpoint, Rights::CALL)?;
        let badge = badge
            .and_then(|badge| self.pools.badges.get(badge))
            .map_or(0, |badge| badge.value.load(Relaxed));
        let cpu = caller.cpu;
        let transit = self.extract(cpu, caller.thread, tag)?;
        let alive = match self.queues(cpu, reference) {
            None => Err(Error::BadHandle),
            Some(queues) if queues.dead => Err(Error::PeerDied),
            Some(queues) => Ok(queues),
        };
        let mut queues = match alive {
            Ok(queues) => queues,
            Err(error) => {
                self.restore(cpu, caller.thread, transit);
                return Err(error.into());
            }
        };
        // At most SERVERS_MAX threads can wait here.
        while let Some(id) = queues.receivers.first() {
            let server = self.thread(id);
            // A message that a server cannot take is no reason to wake it.
            if tag.handles() != 0
                && let Err(stop) =
                    self.make_room(cpu, self.process_of(server), tag.handles() as u32)
            {
                drop(queues);
                self.restore(cpu, caller.thread, transit);
                return Err(stop);
            }
            queues.receivers.remove(&self.pools.threads, id);
            let seen = server.status();
            if seen.state() == State::Receiving && server.claim(seen) {
                drop(queues);
                if self.is_tracing() {
                    self.record(cpu, self.call_event(caller, reference, tag));
                }
                return self.hand_over(caller, id, (tag, transit), badge, deadline);
            }
        }
        if self.is_past(deadline) {
            drop(queues);
            self.restore(cpu, caller.thread, transit);
            return Err(Error::TimedOut.into());
        }
        if tag.handles() != 0 {
            // The handles stay with their caller until the message is received. A server that came meanwhile is met by
            // making the call again.
            drop(queues);
            self.restore(cpu, caller.thread, transit);
            queues = self
                .queues(cpu, reference)
                .filter(|queues| !queues.dead && queues.receivers.first().is_none())
                .ok_or(Stop::Restart)?;
        }
        if self.is_tracing() {
            self.record(cpu, self.call_event(caller, reference, tag));
        }
        let thread = caller.thread;
        thread.badge.store(badge, Relaxed);
        thread.regs.set(Reg::Rsi, tag.raw());
        thread.blocked_on.store(reference.pack(), Relaxed);
        let priority = thread.priority.load(Relaxed);
        queues
            .callers
            .push(&self.pools.threads, caller.id, priority);
        let raise = Raise::all(&queues.servers, priority);
        self.block(cpu, caller.id, State::Queued, deadline);
        // Who raised it before it was seen to wait here left the queue to it. It cannot leave the queue without this lock.
        fence(SeqCst);
        let raised = thread.priority.load(Relaxed);
        let raise = if raised > priority && thread.linked.load(Relaxed) {
            queues.callers.remove(&self.pools.threads, caller.id);
            queues.callers.push(&self.pools.threads, caller.id, raised);
            Raise::all(&queues.servers, raised)
        } else {
            raise
        };
        drop(queues);
        self.raise(cpu, raise);
        Err(Stop::Blocked)
    }

    fn call_event(&self, caller: &Caller<'_>, endpoint: Ref<Endpoint>, tag: Tag) -> Event {
        self.event(TraceKind::Call, caller.id)
            .words(endpoint.pack(), tag.raw())
    }

    pub(super) fn receive_event(&self, server: ThreadId, client: ThreadId, tag: Tag) -> Event {
        self.event(TraceKind::Receive, server)
            .words(self.tid(client), tag.raw())
    }

    /// An endpoint's queues, locked; `None` if it has been freed. It is looked up again under the lock, where it stays what it is: in
    /// between, its slot may have been made anew for others.
    pub(super) fn queues<'a>(
        &'a self,
        cpu: &'a CpuState,
        reference: Ref<Endpoint>,
    ) -> Option<Guard<'a, Queues, { rank::ENDPOINT }>> {
        let endpoint = self.pools.endpoints.get(reference)?;
        let queues = endpoint.queues.lock(&cpu.token);
        self.pools.endpoints.get(reference)?;
        Some(queues)
    }

    /// Gives the current thread's call to a claimed server, and the CPU with it.
    fn hand_over(
        &self,
        caller: &Caller<'_>,
        server_id: ThreadId,
        (tag, transit): (Tag, Transit),
        badge: u64,
        deadline: u64,
    ) -> Result<(), Stop> {
        let (cpu, client, server) = (caller.cpu, caller.thread, self.thread(server_id));
        if let Err(error) = self.transfer(cpu, client, server, tag, transit) {
            // Something else took the room that was made in the server's table. That is the caller's loss; the server receives again.
            self.again(cpu, server_id);
            return Err(error.into());
        }
        self.deliver(cpu, server_id, tag, badge);
        if self.is_tracing() {
            self.record(cpu, self.receive_event(server_id, caller.id, tag));
        }
        server.set_serving(Some((caller.id, client.next_sequence())));
        client.server.store(server_id.0, Relaxed);
        self.block(cpu, caller.id, State::Called, deadline);
        self.set_priority(cpu, server);
        self.run_or_ready(cpu, server_id);
        Err(Stop::Blocked)
    }

    /// Writes what receive returns into a claimed server's registers.
    fn deliver(&self, cpu: &CpuState, id: ThreadId, tag: Tag, badge: u64) {
        self.settle(cpu, id, Ok(()));
        let regs = &self.thread(id).regs;
        regs.set(Reg::Rdi, badge);
        regs.set(Reg::Rsi, tag.raw());
        regs.set(Reg::Rdx, Delivery::Call as u64);
    }

    /// Runs an owned thread here at once, for the current one has just blocked; elsewhere if it is pinned there.
    pub(crate) fn run_or_ready(&self, cpu: &CpuState, id: ThreadId) {
        let pinned = self.thread(id).pinned.load(Relaxed);
        if pinned == ANY_CPU || pinned == cpu.token.id().0 {
            self.switch_to(cpu, id);
        } else {
            self.make_ready(cpu, id);
        }
    }

    /// What every message must keep to.
    pub(crate) fn check_tag(tag: Tag) -> Result<(), Error> {
        if tag.len() > ipc::abi::message::PAYLOAD_MAX
            || tag.handles() > ipc::abi::message::HANDLES_MAX
        {
            return Err(Error::TooLarge);
        }
        Ok(())
    }

    /// The endpoint that a handle lets the caller receive from.
    pub(crate) fn receiving_end(
        &self,
        caller: &Caller<'_>,
        handle: Handle,
    ) -> Result<Ref<Endpoint>, Error> {
        let grant = self.lookup(caller, handle)?;
        let (reference, _) = grant.named(Object::as_endpoint, Rights::RECEIVE)?;
        Ok(reference)
    }
}

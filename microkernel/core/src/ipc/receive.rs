//! The serving side: waiting for calls, bits and closed badges at once.

use crate::base::pool::Ref;
use crate::base::regs::Reg;
use crate::calls::{Caller, Stop};
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::object::Endpoint;
use crate::object::endpoint::Queues;
use crate::object::queue::PriorityQueue;
use crate::object::thread::{State, ThreadId};
use core::sync::atomic::Ordering::Relaxed;
use ipc::abi::{Delivery, Error, Handle, Tag};

/// Callers whose messages cannot be taken, skipped in one receive; then the call is restarted.
const REFUSED_MAX: usize = 4;

impl<H: Hardware> Kernel<H> {
    /// `receive`.
    pub(crate) fn receive(
        &self,
        caller: &Caller<'_>,
        handle: Handle,
        deadline: u64,
    ) -> Result<(), Stop> {
        let endpoint = self.chosen_end(caller, handle)?;
        self.drop_served(caller);
        self.receive_from(caller, endpoint, deadline)
    }

    /// `reply_receive`: if the server then has to wait, its client takes the CPU back.
    pub(crate) fn reply_receive(
        &self,
        caller: &Caller<'_>,
        handle: Handle,
        tag: Tag,
        deadline: u64,
    ) -> Result<(), Stop> {
        let endpoint = self.chosen_end(caller, handle)?;
        let client = match self.answer(caller, tag) {
            Ok(client) => Some(client),
            // A client that went away is no reason not to serve the next.
            Err(Error::PeerDied | Error::NoReply) => None,
            Err(error) => return Err(error.into()),
        };
        let received = self.receive_from(caller, endpoint, deadline);
        if let Some(client) = client {
            match received {
                Err(Stop::Blocked) if self.is_next(caller, client) => {
                    self.run_or_ready(caller.cpu, client)
                }
                _ => self.make_ready(caller.cpu, client),
            }
        }
        received
    }

    /// Whether an owned thread would be the first of this CPU's queue, without its lock. Who queues one there now kicks this CPU.
    fn is_next(&self, caller: &Caller<'_>, id: ThreadId) -> bool {
        let highest = PriorityQueue::highest_of(caller.cpu.queue.glance());
        highest.is_none_or(|highest| highest <= self.thread(id).priority.load(Relaxed))
    }

    fn chosen_end(
        &self,
        caller: &Caller<'_>,
        handle: Handle,
    ) -> Result<Option<Ref<Endpoint>>, Error> {
        if handle == Handle::NONE {
            return caller.thread.bound().map(|_| None).ok_or(Error::BadHandle);
        }
        self.receiving_end(caller, handle).map(Some)
    }

    fn receive_from(
        &self,
        caller: &Caller<'_>,
        reference: Option<Ref<Endpoint>>,
        deadline: u64,
    ) -> Result<(), Stop> {
        if let Some(bits) = self.take_bound_bits(caller) {
            return self.deliver_other(caller, Delivery::Notification, bits);
        }
        let Some(reference) = reference else {
            return self.wait_bound(caller, None, 0, deadline);
        };
        self.serve_endpoint(caller, reference)?;
        for _ in 0..REFUSED_MAX {
            let queues = self.queues(caller.cpu, reference);
            let mut queues = queues.ok_or(Error::BadHandle)?;
            if let Some(value) = self.take_closed(caller, &mut queues) {
                return self.deliver_other(caller, Delivery::BadgeClosed, value);
            }
            let Some(id) = queues.callers.pop(&self.pools.threads) else {
                return self.wait_bound(caller, Some(&mut queues), reference.pack(), deadline);
            };
            // Claimed under the lock: once it is let go, the thread may wait somewhere else.
            let seen = self.thread(id).status();
            let claimed = self.thread(id).claim(seen);
            drop(queues);
            if claimed && self.take_call(caller, id, seen.sequence()) {
                return Err(Stop::Delivered);
            }
        }
        Err(Stop::Restart)
    }

    /// Takes a queued call, claimed and out of the queue. False if its message cannot be taken.
    fn take_call(&self, caller: &Caller<'_>, id: ThreadId, sequence: u64) -> bool {
        let (cpu, server, client) = (caller.cpu, caller.thread, self.thread(id));
        let tag = Tag::from_raw(client.regs.get(Reg::Rsi));
        let transferred = self
            .extract(cpu, client, tag)
            .and_then(|transit| self.transfer(cpu, client, server, tag, transit));
        if let Err(error) = transferred {
            self.finish(cpu, id, Err(error));
            return false;
        }
        let regs = &server.regs;
        regs.set(Reg::Rax, 0);
        regs.set(Reg::Rdi, client.badge.load(Relaxed));
        regs.set(Reg::Rsi, tag.raw());
        regs.set(Reg::Rdx, Delivery::Call as u64);
        server.set_serving(Some((id, sequence)));
        client.server.store(caller.id.0, Relaxed);
        client.blocked_on.store(0, Relaxed);
        // The same wait, under the same sequence number and deadline, goes on.
        client.change(State::Called);
        if self.is_tracing() {
            self.record(cpu, self.receive_event(caller.id, id, tag));
        }
        self.own_priority(cpu, server);
        true
    }

    /// Registers the current thread as one that serves the endpoint, so that callers who wait raise it.
    fn serve_endpoint(&self, caller: &Caller<'_>, reference: Ref<Endpoint>) -> Result<(), Error> {
        let thread = caller.thread;
        let before = thread.receives_from.load(Relaxed);
        if before == reference.pack() {
            return Ok(());
        }
        self.leave_endpoint(caller.cpu, caller.id);
        let queues = self.queues(caller.cpu, reference);
        let mut queues = queues.ok_or(Error::BadHandle)?;
        queues
            .servers
            .push(caller.id)
            .map_err(|_| Error::LimitReached)?;
        thread.receives_from.store(reference.pack(), Relaxed);
        // Who waits there already did not know of this thread.
        let waiting = queues.callers.highest().unwrap_or(0);
        let before = thread.priority.fetch_max(waiting, Relaxed);
        caller.cpu.priority.store(before.max(waiting), Relaxed);
        Ok(())
    }

    /// The thread no longer serves the endpoint it received from last.
    pub(crate) fn leave_endpoint(&self, cpu: &CpuState, id: ThreadId) {
        let before = Ref::unpack(self.thread(id).receives_from.swap(0, Relaxed));
        if let Some(endpoint) = before.and_then(|reference| self.pools.endpoints.get(reference)) {
            endpoint
                .queues
                .lock(&cpu.token)
                .servers
                .retain(|&server| server != id);
        }
    }

    /// Blocks the current thread until a call, a bit or the deadline comes; if the deadline has come, it goes on at once. The
    /// notification's lock is held over the last look at its bits and the publication, so that no bit falls between.
    fn wait_bound(
        &self,
        caller: &Caller<'_>,
        queues: Option<&mut Queues>,
        blocked_on: u64,
        deadline: u64,
    ) -> Result<(), Stop> {
        let notification = caller
            .thread
            .bound()
            .and_then(|bound| self.pools.notifications.get(bound));
        let mut bits = notification.map(|notification| notification.bits.lock(&caller.cpu.token));
        if let Some(bits) = bits
            .as_mut()
            .filter(|bits| bits.bound == Some(caller.id) && bits.pending != 0)
        {
            let taken = core::mem::take(&mut bits.pending);
            return self.deliver_other(caller, Delivery::Notification, taken);
        }
        let past = self.is_past(deadline);
        if let Some(queues) = queues {
            if queues.dead {
                return Err(Error::PeerDied.into());
            }
            // Nobody waits here, and it serves nobody: what it was lent is over.
            let own = caller.thread.base_priority.load(Relaxed);
            caller.thread.priority.store(own, Relaxed);
            if !past {
                queues
                    .receivers
                    .push_front(&self.pools.threads, caller.id, 0);
            }
        }
        if past {
            self.reconsider(caller.cpu);
            return Err(Error::TimedOut.into());
        }
        caller.thread.blocked_on.store(blocked_on, Relaxed);
        self.block(caller.cpu, caller.id, State::Receiving, deadline);
        Err(Stop::Blocked)
    }

    /// Takes the bits of the bound notification, if any are set.
    fn take_bound_bits(&self, caller: &Caller<'_>) -> Option<u64> {
        let notification = self.pools.notifications.get(caller.thread.bound()?)?;
        let mut bits = notification.bits.lock(&caller.cpu.token);
        if bits.bound != Some(caller.id) || bits.pending == 0 {
            return None;
        }
        Some(core::mem::take(&mut bits.pending))
    }

    /// Takes a closed badge off the endpoint's list, and frees it.
    fn take_closed(&self, caller: &Caller<'_>, queues: &mut Queues) -> Option<u64> {
        let reference = queues.closed?;
        let badge = self.pools.badges.get(reference)?;
        queues.closed = Ref::unpack(badge.next.load(Relaxed));
        let value = badge.value.load(Relaxed);
        self.free_badge(caller.cpu, reference);
        Some(value)
    }

    fn deliver_other(&self, caller: &Caller<'_>, what: Delivery, value: u64) -> Result<(), Stop> {
        let regs = &caller.thread.regs;
        regs.set(Reg::Rax, 0);
        regs.set(Reg::Rdi, value);
        regs.set(Reg::Rsi, 0);
        regs.set(Reg::Rdx, what as u64);
        Err(Stop::Delivered)
    }
}

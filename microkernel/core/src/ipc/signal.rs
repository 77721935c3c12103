//! Notifications: setting bits, waiting for them, binding them to a thread, and their timers.

use crate::base::addr::Nanos;
use crate::base::lock::{Guard, rank};
use crate::base::pool::Ref;
use crate::base::regs::Reg;
use crate::calls::{Caller, Stop};
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::object::notification::Bits;
use crate::object::thread::{State, ThreadId};
use crate::object::{Notification, Object};
use core::sync::atomic::{
    Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::SeqCst, fence,
};
use ipc::abi::{Delivery, Error, Handle, NEVER, Rights};

impl<H: Hardware> Kernel<H> {
    /// Sets bits, and wakes who waits for them.
    pub(crate) fn set_bits(&self, cpu: &CpuState, reference: Ref<Notification>, set: u64) {
        let Some(mut bits) = self.bits(cpu, reference) else {
            return;
        };
        bits.pending |= set;
        if bits.pending == 0 {
            return;
        }
        // A waiter that cannot be claimed is just being woken by another CPU, of which there are few.
        while let Some(id) = bits.waiters.pop(&self.pools.threads) {
            let thread = self.thread(id);
            let seen = thread.status();
            if seen.state() == State::Waiting && thread.claim(seen) {
                let taken = core::mem::take(&mut bits.pending);
                drop(bits);
                thread.regs.set(Reg::Rdi, taken);
                self.finish(cpu, id, Ok(()));
                return;
            }
        }
        let Some(id) = bits.bound else { return };
        let thread = self.thread(id);
        let seen = thread.status();
        if seen.state() == State::Receiving && thread.claim(seen) {
            let taken = core::mem::take(&mut bits.pending);
            drop(bits);
            self.unlink(cpu, id, State::Receiving);
            thread.regs.set(Reg::Rdi, taken);
            thread.regs.set(Reg::Rsi, 0);
            thread.regs.set(Reg::Rdx, Delivery::Notification as u64);
            self.finish(cpu, id, Ok(()));
        }
    }

    /// A notification's bits, locked; `None` if it has been freed. It is looked up again under the lock, where it stays what it is: in
    /// between, its slot may have been made anew for others.
    fn bits<'a>(
        &'a self,
        cpu: &'a CpuState,
        reference: Ref<Notification>,
    ) -> Option<Guard<'a, Bits, { rank::NOTIFICATION }>> {
        let notification = self.pools.notifications.get(reference)?;
        let bits = notification.bits.lock(&cpu.token);
        self.pools.notifications.get(reference)?;
        Some(bits)
    }

    fn notification(
        &self,
        caller: &Caller<'_>,
        handle: Handle,
        right: Rights,
    ) -> Result<Ref<Notification>, Error> {
        let grant = self.lookup(caller, handle)?;
        grant.named(Object::as_notification, right)
    }

    /// `signal`.
    pub(crate) fn signal(&self, caller: &Caller<'_>, handle: Handle, set: u64) -> Result<(), Stop> {
        let reference = self.notification(caller, handle, Rights::SIGNAL)?;
        self.set_bits(caller.cpu, reference, set);
        Ok(())
    }

    /// `wait`.
    pub(crate) fn wait(
        &self,
        caller: &Caller<'_>,
        handle: Handle,
        deadline: u64,
    ) -> Result<(u64,), Stop> {
        let reference = self.notification(caller, handle, Rights::WAIT)?;
        let mut bits = self.bits(caller.cpu, reference).ok_or(Error::BadHandle)?;
        if bits.pending != 0 {
            return Ok((core::mem::take(&mut bits.pending),));
        }
        if self.is_past(deadline) {
            return Err(Error::TimedOut.into());
        }
        caller.thread.blocked_on.store(reference.pack(), Relaxed);
        bits.waiters.push(
            &self.pools.threads,
            caller.id,
            caller.thread.priority.load(Relaxed),
        );
        self.block(caller.cpu, caller.id, State::Waiting, deadline);
        Err(Stop::Blocked)
    }

    /// `bind`.
    pub(crate) fn bind(
        &self,
        caller: &Caller<'_>,
        handle: Handle,
        thread: Handle,
    ) -> Result<(), Stop> {
        let reference = self.notification(caller, handle, Rights::WAIT)?;
        if thread == Handle::NONE {
            self.unbind(caller.cpu, reference, None);
            return Ok(());
        }
        let hold = self.hold(caller, thread, Object::as_thread, Rights::MANAGE)?;
        let thread = hold.object;
        let id = ThreadId(thread.index());
        let mut bits = self.bits(caller.cpu, reference).ok_or(Error::BadHandle)?;
        let word = &self.thread(id).bound;
        // Both ends are tied under this lock; the thread's own word decides between two notifications.
        if bits.bound.is_some()
            || word
                .compare_exchange(0, reference.pack(), AcqRel, Acquire)
                .is_err()
        {
            return Err(Error::Busy.into());
        }
        bits.bound = Some(id);
        // A thread that ends says so before it looks at its bond: it sees this one, or is seen here.
        fence(SeqCst);
        if self.thread(id).status().state() == State::Dead {
            self.loosen(reference, &mut bits);
            return Err(Error::WrongState.into());
        }
        drop(bits);
        // Bits that were set before, for a thread that waits already.
        self.set_bits(caller.cpu, reference, 0);
        Ok(())
    }

    /// Undoes a bond, from either end; from a thread's end only its own.
    pub(crate) fn unbind(
        &self,
        cpu: &CpuState,
        reference: Ref<Notification>,
        from: Option<ThreadId>,
    ) {
        let Some(mut bits) = self.bits(cpu, reference) else {
            return;
        };
        if from.is_some() && bits.bound != from {
            return;
        }
        let Some(id) = self.loosen(reference, &mut bits) else {
            return;
        };
        // Without its bond, a thread that waits for nothing else would wait for ever.
        let thread = self.thread(id);
        let seen = thread.status();
        let stranded = seen.state() == State::Receiving && thread.blocked_on.load(Relaxed) == 0;
        if stranded && thread.claim(seen) {
            drop(bits);
            self.finish(cpu, id, Err(Error::BadHandle));
        }
    }

    /// Takes both ends of a bond apart, under the notification's lock.
    pub(crate) fn loosen(&self, reference: Ref<Notification>, bits: &mut Bits) -> Option<ThreadId> {
        let id = bits.bound.take()?;
        let _ = self
            .thread(id)
            .bound
            .compare_exchange(reference.pack(), 0, AcqRel, Acquire);
        Some(id)
    }

    /// `timer_set`.
    pub(crate) fn timer_set(
        &self,
        caller: &Caller<'_>,
        handle: Handle,
        set: u64,
        deadline: u64,
    ) -> Result<(), Stop> {
        let reference = self.notification(caller, handle, Rights::WAIT)?;
        let cpu = caller.cpu;
        let mut bits = self.bits(cpu, reference).ok_or(Error::BadHandle)?;
        self.cancel_timer(cpu, reference, &mut bits);
        if deadline != NEVER {
            bits.timer_bits = set;
            bits.timer_cpu = Some(cpu.token.id().0);
            let mut timers = cpu.timers.lock(&cpu.token);
            timers.set(self.timer_item(reference), Nanos(deadline));
            if let Some(next) = timers.next() {
                self.hw.set_timer(next);
            }
        }
        Ok(())
    }

    /// Takes a notification's timer out of the queue it is in.
    pub(crate) fn cancel_timer(
        &self,
        cpu: &CpuState,
        reference: Ref<Notification>,
        bits: &mut Bits,
    ) {
        if let Some(there) = bits
            .timer_cpu
            .take()
            .and_then(|id| self.cpus.get(id as usize))
        {
            there
                .timers
                .lock(&cpu.token)
                .cancel(self.timer_item(reference));
        }
    }

    /// A notification's timer has come. It may have been set anew since it was taken off the queue; then it waits for that.
    pub(crate) fn expire_timer(&self, cpu: &CpuState, slot: u32) {
        let Some(reference) = self.pools.notifications.reference(slot) else {
            return;
        };
        let Some(mut bits) = self.bits(cpu, reference) else {
            return;
        };
        let here = bits.timer_cpu == Some(cpu.token.id().0);
        let rearmed = cpu
            .timers
            .lock(&cpu.token)
            .deadline(self.timer_item(reference))
            .is_some();
        if !here || rearmed {
            return;
        }
        bits.timer_cpu = None;
        let set = bits.timer_bits;
        drop(bits);
        self.set_bits(cpu, reference, set);
    }
}

//! Handles and the counts behind them: looking up, putting in, copying, letting go.

use crate::base::cpu::Cpu;
use crate::base::pool::Ref;
use crate::base::regs::Reg;
use crate::calls::{Caller, Stop};
use crate::handles::{CHUNK_ENTRIES, Grant, HandleTable};
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::object::process::Counted;
use crate::object::thread::State;
use crate::object::{Badge, Endpoint, Memory, Object, Process, ThreadId};
use crate::work::Item;
use core::sync::atomic::{AtomicU32, Ordering::AcqRel, Ordering::Relaxed, Ordering::Release};
use ipc::abi::{Delivery, Error, Handle, Rights};

/// An object that is kept from being freed while a call uses it.
pub(crate) struct Hold<'a, H: Hardware + 'static, T> {
    kernel: &'a Kernel<H>,
    cpu: &'a CpuState,
    grant: Grant,
    /// What is held.
    pub(crate) object: T,
}

impl<H: Hardware, T> Hold<'_, H, T> {
    /// What the handle allows.
    pub(crate) const fn rights(&self) -> Rights {
        self.grant.rights
    }
}

impl<H: Hardware, T> Drop for Hold<'_, H, T> {
    fn drop(&mut self) {
        if self.grant.object.is_counted() {
            self.kernel
                .release(self.cpu, &Grant::keeping(self.grant.object));
        }
    }
}

/// Takes one off a count; whether it was the last.
fn last(count: &AtomicU32) -> bool {
    let was = count.fetch_sub(1, AcqRel);
    debug_assert!(was != 0, "a count went below zero");
    was == 1
}

impl<H: Hardware> Kernel<H> {
    /// What a handle of the caller names. It may be freed right after: see [`Kernel::hold`].
    pub(crate) fn lookup(&self, caller: &Caller<'_>, handle: Handle) -> Result<Grant, Error> {
        caller
            .process
            .handles
            .lock(&caller.cpu.token)
            .get(&self.pools.chunks, handle)
    }

    /// What `object` finds a handle of the caller to name, kept until the hold is dropped. See [`Grant::named`].
    ///
    /// # Errors
    /// `BadHandle`, `WrongType`, `MissingRight`.
    pub(crate) fn hold<'a, T>(
        &'a self,
        caller: &Caller<'a>,
        handle: Handle,
        object: impl FnOnce(Object) -> Option<T>,
        rights: Rights,
    ) -> Result<Hold<'a, H, T>, Error> {
        let handles = caller.process.handles.lock(&caller.cpu.token);
        let grant = handles.get(&self.pools.chunks, handle)?;
        let object = grant.named(object, rights)?;
        if grant.object.is_counted() {
            self.retain(caller.cpu, &Grant::keeping(grant.object));
        }
        drop(handles);
        // From here on the drop of the hold gives the count back.
        Ok(Hold {
            kernel: self,
            cpu: caller.cpu,
            grant,
            object,
        })
    }

    /// Puts a grant, already counted, into a process's table. On error the caller still has it, and undoes what it made. That is work, so
    /// the call is not made again for it: what it waited for would be its own doing. A call that makes something sees first to the
    /// room for it.
    pub(crate) fn insert(
        &self,
        cpu: &CpuState,
        process: &Process,
        grant: Grant,
    ) -> Result<Handle, Error> {
        let mut table = process.handles.lock(&cpu.token);
        self.grow(cpu, process, &mut table, 1)?;
        table.insert(&self.pools.chunks, grant)
    }

    /// Sees to it that a table has room for a few more handles.
    ///
    /// # Errors
    /// `LimitReached`, `OutOfMemory`, `PeerDied`; `Restart` while there is work, which may free a chunk.
    pub(crate) fn make_room(
        &self,
        cpu: &CpuState,
        process: &Process,
        handles: u32,
    ) -> Result<(), Stop> {
        // Looked at first, as in `take_slot`.
        let busy = self.work.is_busy();
        let mut table = process.handles.lock(&cpu.token);
        self.grow(cpu, process, &mut table, handles)
            .map_err(|error| match error {
                Error::OutOfMemory if busy => Stop::Restart,
                error => error.into(),
            })
    }

    /// Sees to it that a process's table, which is locked, has the room: until it is let go no other thread takes it.
    ///
    /// # Errors
    /// `LimitReached`, `OutOfMemory`, `PeerDied`.
    pub(crate) fn grow(
        &self,
        cpu: &CpuState,
        process: &Process,
        table: &mut HandleTable,
        handles: u32,
    ) -> Result<(), Error> {
        debug_assert!(
            handles as usize <= CHUNK_ENTRIES,
            "one more chunk is enough"
        );
        if table.room() >= handles {
            return Ok(());
        }
        if !process.count(Counted::Chunks, self.limit(Counted::Chunks)) {
            return Err(Error::LimitReached);
        }
        table
            .grow(&cpu.token, &self.pools.chunks)
            .inspect_err(|_| process.uncount(Counted::Chunks))
    }

    /// Counts one more handle, or hold, of an object. The caller has one already, or the lock of the table that has one, so that the
    /// count is not zero.
    pub(crate) fn retain(&self, cpu: &CpuState, grant: &Grant) {
        let count = match grant.object {
            Object::Process(reference) => self.pools.processes.get(reference).map(|object| {
                object.names.fetch_add(1, Relaxed);
                &object.refs
            }),
            Object::Thread(reference) => {
                self.pools.threads.get(reference).map(|object| &object.refs)
            }
            Object::Endpoint(reference, badge) => {
                if let Some(badge) = badge.and_then(|badge| self.pools.badges.get(badge)) {
                    badge.refs.fetch_add(1, Relaxed);
                }
                self.pools.endpoints.get(reference).map(|endpoint| {
                    if grant.rights.contains(Rights::RECEIVE) {
                        endpoint.receivers.fetch_add(1, Relaxed);
                    }
                    &endpoint.refs
                })
            }
            Object::Notification(reference) => self
                .pools
                .notifications
                .get(reference)
                .map(|object| &object.refs),
            Object::Memory(reference) => {
                self.pools.memory.get(reference).map(|object| &object.refs)
            }
            Object::Interrupt(line) => {
                self.retain_line(cpu, line);
                None
            }
            Object::Ports { .. } | Object::Reply(..) | Object::Profiler | Object::System => None,
        };
        if let Some(count) = count {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Gives back one counted handle or hold; the last one frees the object, or has deferred work free it.
    pub(crate) fn release(&self, cpu: &CpuState, grant: &Grant) {
        match grant.object {
            Object::Process(reference) => {
                let slot = reference.index();
                if last(&self.process(slot).names) {
                    self.end_unreachable(cpu, slot);
                }
                self.release_process(&cpu.token, slot);
            }
            Object::Thread(reference) => self.release_thread(cpu, ThreadId(reference.index())),
            Object::Endpoint(reference, badge) => {
                self.release_endpoint(cpu, reference, badge, grant.rights)
            }
            Object::Notification(reference) => {
                if let Some(notification) = self.pools.notifications.get(reference)
                    && last(&notification.refs)
                {
                    self.begin_freeing(&notification.owner);
                    self.work
                        .push(&cpu.token, Item::Notification(reference.index()));
                }
            }
            Object::Memory(reference) => self.release_memory(cpu, reference),
            Object::Interrupt(line) => self.release_line(cpu, line),
            Object::Reply(thread, sequence) => {
                self.fail_call(cpu, (thread, sequence), Error::PeerDied)
            }
            Object::Ports { .. } | Object::Profiler | Object::System => {}
        }
    }

    /// Gives back a thread; its slot is free with the last. One that is held can be started by nobody when only its process's list
    /// names it.
    fn release_thread(&self, cpu: &CpuState, id: ThreadId) {
        let thread = self.thread(id);
        let slot = thread.process.load(Relaxed);
        match thread.refs.fetch_sub(1, AcqRel) {
            1 => {
                self.begin_freeing(&thread.process);
                self.work.push(&cpu.token, Item::Thread(id.0));
            }
            2 if thread.status().state() == State::Held => self.end_unreachable(cpu, slot),
            was => debug_assert!(was != 0, "a count went below zero"),
        }
    }

    /// Gives back a memory object; the last one has it freed in steps.
    pub(crate) fn release_memory(&self, cpu: &CpuState, reference: Ref<Memory>) {
        let memory = self.memory(reference);
        if last(&memory.refs) {
            self.begin_freeing(&memory.payer);
            self.work.push(&cpu.token, Item::Memory(reference.index()));
        }
    }

    /// Gives back a process: its slot is free with the last.
    pub(crate) fn release_process(&self, cpu: &Cpu, slot: u32) {
        let process = self.process(slot);
        if last(&process.refs) {
            self.work.push(cpu, Item::Slot(slot));
        }
    }

    fn release_endpoint(
        &self,
        cpu: &CpuState,
        reference: Ref<Endpoint>,
        badge: Option<Ref<Badge>>,
        rights: Rights,
    ) {
        let Some(endpoint) = self.pools.endpoints.get(reference) else {
            return;
        };
        if let Some(badge) = badge {
            self.release_badge(cpu, endpoint, badge);
        }
        let deaf = rights.contains(Rights::RECEIVE) && last(&endpoint.receivers);
        let item = Item::Endpoint(reference.index());
        if deaf {
            // Before the count is given back: until then the slot cannot be another endpoint's.
            endpoint.queues.lock(&cpu.token).dead = true;
            self.work.push_once(&cpu.token, item, &endpoint.in_work);
        }
        if last(&endpoint.refs) {
            self.begin_freeing(&endpoint.owner);
            let mut queues = endpoint.queues.lock(&cpu.token);
            queues.unnamed = true;
            self.work.push_once(&cpu.token, item, &endpoint.in_work);
        }
    }

    /// The last handle with a badge tells the endpoint: a thread that waits there at once, else the next receive.
    fn release_badge(&self, cpu: &CpuState, endpoint: &Endpoint, reference: Ref<Badge>) {
        let Some(badge) = self.pools.badges.get(reference) else {
            return;
        };
        if !last(&badge.refs) {
            return;
        }
        let value = badge.value.load(Relaxed);
        let mut queues = endpoint.queues.lock(&cpu.token);
        if queues.dead {
            drop(queues);
            self.free_badge(cpu, reference);
            return;
        }
        while let Some(id) = queues.receivers.pop(&self.pools.threads) {
            let thread = self.thread(id);
            let seen = thread.status();
            if seen.state() == State::Receiving && thread.claim(seen) {
                drop(queues);
                self.free_badge(cpu, reference);
                thread.regs.set(Reg::Rdi, value);
                thread.regs.set(Reg::Rsi, 0);
                thread.regs.set(Reg::Rdx, Delivery::BadgeClosed as u64);
                self.finish(cpu, id, Ok(()));
                return;
            }
        }
        badge
            .next
            .store(queues.closed.map_or(0, |next| next.pack()), Relaxed);
        queues.closed = Some(reference);
    }

    /// Frees a badge that no handle carries any more.
    pub(crate) fn free_badge(&self, cpu: &CpuState, reference: Ref<Badge>) {
        if let Some(badge) = self.pools.badges.get(reference) {
            let owner = badge.owner.load(Relaxed);
            self.pools.badges.give(&cpu.token, reference);
            self.uncount(cpu, owner, Counted::Badges);
        }
    }

    /// Nobody names an object on this process's account any more: it is about to be freed.
    fn begin_freeing(&self, owner: &AtomicU32) {
        let owner = self.process(owner.load(Relaxed));
        owner.freeing.fetch_add(1, Relaxed);
    }

    /// The object is free: it goes off the account.
    pub(crate) fn end_freeing(&self, cpu: &CpuState, owner: u32, kind: Counted) {
        let process = self.process(owner);
        process.uncount(kind);
        // After it: who sees that nothing is being freed finds the place on the account.
        process.freeing.fetch_sub(1, Release);
        self.release_process(&cpu.token, owner);
        self.work.retry();
    }

    /// Takes an object off its process's account.
    pub(crate) fn uncount(&self, cpu: &CpuState, slot: u32, kind: Counted) {
        self.process(slot).uncount(kind);
        self.release_process(&cpu.token, slot);
    }
}

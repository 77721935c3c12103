//! Calls about memory objects and mappings.

use super::{Caller, Stop};
use crate::account::Account;
use crate::base::addr::{Frame, PhysAddr, UserAddr};
use crate::base::pool::Ref;
use crate::boot::memory::Range;
use crate::handles::Grant;
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::mem::frame_list::FrameList;
use crate::mem::frames::{Run, Search};
use crate::mem::grace::Epoch;
use crate::mem::page::{Access, Pages};
use crate::object::memory::Backing;
use crate::object::process::Counted;
use crate::object::{Memory, Object};
use crate::space::Mapping;
use core::sync::atomic::Ordering::Relaxed;
use ipc::abi::layout::PAGE_SIZE;
use ipc::abi::layout::PHYSICAL_END;
use ipc::abi::{Error, Handle, Rights};

/// Pages zeroed in one step.
const STEP: u64 = 16;

/// What can be done with pages that were made here: never executed, by any mapping, since they can be written. Code comes from
/// the boot archive alone, which cannot.
const ALL: Rights = Rights::READ
    .union(Rights::WRITE)
    .union(Rights::DUPLICATE)
    .union(Rights::TRANSFER);

impl<H: Hardware> Kernel<H> {
    /// Takes a memory object from the pool, counted once and charged to nobody yet.
    pub(crate) fn new_memory(
        &self,
        cpu: &CpuState,
        payer: u32,
        backing: Backing,
        count: u64,
    ) -> Result<Ref<Memory>, Stop> {
        self.count(self.process(payer), Counted::Memory)?;
        let (reference, memory) = self
            .take_slot(cpu, &self.pools.memory)
            .inspect_err(|_| self.uncount(cpu, payer, Counted::Memory))?;
        memory.payer.store(payer, Relaxed);
        memory.refs.store(1, Relaxed);
        let mut pages = memory.pages.lock(&cpu.token);
        pages.backing = backing;
        pages.count = count;
        pages.ready = 0;
        Ok(reference)
    }

    /// Gives the caller a handle to an object that was just made, or lets the object go.
    fn hand_out(
        &self,
        caller: &Caller<'_>,
        memory: Ref<Memory>,
        rights: Rights,
    ) -> Result<Handle, Error> {
        let grant = Grant {
            object: Object::Memory(memory),
            rights,
        };
        self.insert(caller.cpu, caller.process, grant)
            .inspect_err(|_| self.release_memory(caller.cpu, memory))
    }

    pub(super) fn memory_create(
        &self,
        caller: &Caller<'_>,
        process: Handle,
        pages: u64,
        contiguous: u64,
    ) -> Result<(Handle,), Stop> {
        let target = self.target(caller, process, Rights::MANAGE);
        let (slot, _hold) = target.inspect_err(|_| self.give_up_filling(caller))?;
        let memory = match caller.thread.filling() {
            Some(memory) => memory,
            None => {
                if contiguous > 1 || pages == 0 {
                    return Err(Error::BadArgument.into());
                }
                let payer = self.process(slot);
                // Its quota has gone back to its parent: that is not what is wrong.
                if payer.is_dead() {
                    return Err(Error::PeerDied.into());
                }
                if pages > payer.quota.load(Relaxed) {
                    return Err(Error::QuotaExceeded.into());
                }
                self.make_room(caller.cpu, caller.process, 1)?;
                let backing = if contiguous == 0 {
                    Backing::Paged(FrameList::new())
                } else {
                    Backing::Contiguous(Frame(0))
                };
                let memory = self.new_memory(caller.cpu, slot, backing, pages)?;
                caller.thread.filling.store(memory.pack(), Relaxed);
                caller.thread.cursor.store(0, Relaxed);
                caller.thread.awaited_epoch.store(0, Relaxed);
                memory
            }
        };
        // What is being filled says how: another thread may have changed the arguments that a restarted call is made with.
        match self.fill(caller, memory) {
            Err(Stop::Restart) => Err(Stop::Restart),
            Err(stop) => {
                self.give_up_filling(caller);
                Err(stop)
            }
            Ok(()) => {
                caller.thread.filling.store(0, Relaxed);
                Ok((self.hand_out(caller, memory, ALL)?,))
            }
        }
    }

    /// Lets go of the object that the caller is filling, if there is one: the call will not be made again.
    fn give_up_filling(&self, caller: &Caller<'_>) {
        if let Some(memory) = Ref::unpack(caller.thread.filling.swap(0, Relaxed)) {
            self.release_memory(caller.cpu, memory);
        }
    }

    /// Adds some zeroed pages to an object being made.
    fn fill(&self, caller: &Caller<'_>, reference: Ref<Memory>) -> Result<(), Stop> {
        let memory = self.memory(reference);
        let payer = memory.payer.load(Relaxed);
        if self.process(payer).is_dead() {
            return Err(Error::PeerDied.into());
        }
        let run = {
            let pages = memory.pages.lock(&caller.cpu.token);
            matches!(pages.backing, Backing::Contiguous(_))
        };
        if run {
            return self.fill_run(caller, memory);
        }
        let mut account = Account::new(self, caller.cpu, payer);
        for _ in 0..STEP {
            let frame = account.take_page().map_err(|error| account.stop(error))?;
            let mut pages = memory.pages.lock(&caller.cpu.token);
            let count = pages.count;
            let Backing::Paged(list) = &mut pages.backing else {
                return Err(Error::WrongState.into());
            };
            if let Err(error) = list.push(self.hw, frame, &mut account) {
                drop(pages);
                account.put_back(frame);
                return Err(account.stop(error));
            }
            if list.len() == count {
                return Ok(());
            }
        }
        Err(Stop::Restart)
    }

    /// Looks for frames in a row, charges them at once, then zeroes them in steps.
    fn fill_run(&self, caller: &Caller<'_>, memory: &Memory) -> Result<(), Stop> {
        let payer = self.process(memory.payer.load(Relaxed));
        let mut pages = memory.pages.lock(&caller.cpu.token);
        let count = u32::try_from(pages.count).map_err(|_| Error::OutOfMemory)?;
        let thread = caller.thread;
        let cursor = thread.cursor.load(Relaxed);
        let first = match pages.backing {
            Backing::Contiguous(first) if pages.ready > 0 => first,
            _ => {
                let awaited = Epoch::from_raw(thread.awaited_epoch.load(Relaxed));
                if awaited != Epoch::NONE && !self.frames_are_back(caller.cpu, awaited) {
                    return Err(Stop::Restart);
                }
                // Charged before they are taken: to give back many frames takes many steps, to give back a charge takes one.
                self.charge(payer, count.into())?;
                let mut search = Search::from_raw(cursor as u32);
                let token = &caller.cpu.token;
                let found = self.frames.allocate_run(token, count, &mut search);
                if let Run::Found(first) = found {
                    pages.backing = Backing::Contiguous(first);
                    pages.ready = count.into();
                    thread.cursor.store(0, Relaxed);
                    return Err(Stop::Restart);
                }
                payer.uncharge(count.into());
                if let Run::None = found {
                    if awaited != Epoch::NONE {
                        return Err(Error::OutOfMemory.into());
                    }
                    // What was freed before may have waited just now, or lain behind the search. Once it is back, the search
                    // begins anew; what it does not find then is not there.
                    let epoch = self.grace.retire_epoch();
                    thread.awaited_epoch.store(epoch.raw(), Relaxed);
                    search = Search::default();
                }
                thread.cursor.store(search.raw().into(), Relaxed);
                return Err(Stop::Restart);
            }
        };
        let to = (cursor + STEP).min(count.into());
        for index in cursor..to {
            self.hw.zero(Frame(first.0 + index as u32));
        }
        thread.cursor.store(to, Relaxed);
        if to < u64::from(count) {
            Err(Stop::Restart)
        } else {
            Ok(())
        }
    }

    pub(super) fn memory_physical(
        &self,
        caller: &Caller<'_>,
        system: Handle,
        base: u64,
        pages: u64,
    ) -> Result<(Handle,), Stop> {
        self.system(caller, system, Rights::DEVICES)?;
        if !base.is_multiple_of(PAGE_SIZE) {
            return Err(Error::Misaligned.into());
        }
        let end = pages
            .checked_mul(PAGE_SIZE)
            .and_then(|bytes| base.checked_add(bytes))
            .filter(|&end| pages > 0 && end <= PHYSICAL_END)
            .ok_or(Error::BadArgument)?;
        if !self.hw.is_device(Range { start: base, end }) {
            return Err(Error::BadArgument.into());
        }
        self.make_room(caller.cpu, caller.process, 1)?;
        let first = PhysAddr(base).frame();
        let memory = self.new_memory(caller.cpu, caller.slot, Backing::Device(first), pages)?;
        Ok((self.hand_out(caller, memory, ALL)?,))
    }

    pub(super) fn memory_part(
        &self,
        caller: &Caller<'_>,
        memory: Handle,
        first: u64,
        pages: u64,
    ) -> Result<(Handle,), Stop> {
        let hold = self.hold(caller, memory, Object::as_memory, Rights::DUPLICATE)?;
        let whole = hold.object;
        let backing = {
            let of = self.memory(whole).pages.lock(&caller.cpu.token);
            if pages == 0 || first.checked_add(pages).is_none_or(|end| end > of.count) {
                return Err(Error::BadArgument.into());
            }
            match of.backing {
                Backing::Paged(_) => return Err(Error::WrongState.into()),
                Backing::Device(base) => Backing::Device(Frame(base.0 + first as u32)),
                Backing::Contiguous(base) | Backing::Borrowed(base, _) => {
                    Backing::Borrowed(Frame(base.0 + first as u32), Some(whole))
                }
            }
        };
        self.make_room(caller.cpu, caller.process, 1)?;
        let counted = matches!(backing, Backing::Borrowed(..));
        let part = self.new_memory(caller.cpu, caller.slot, backing, pages)?;
        if counted {
            self.memory(whole).refs.fetch_add(1, Relaxed);
        }
        Ok((self.hand_out(caller, part, hold.rights())?,))
    }

    pub(super) fn memory_info(
        &self,
        caller: &Caller<'_>,
        memory: Handle,
    ) -> Result<(u64, u64), Stop> {
        let hold = self.hold(caller, memory, Object::as_memory, Rights::empty())?;
        let pages = self.memory(hold.object).pages.lock(&caller.cpu.token);
        let base = match pages.backing {
            Backing::Paged(_) => 0,
            Backing::Contiguous(first) | Backing::Borrowed(first, _) | Backing::Device(first) => {
                first.start().0
            }
        };
        Ok((pages.count, base))
    }

    #[expect(clippy::too_many_arguments, reason = "the system call has them")]
    pub(super) fn map(
        &self,
        caller: &Caller<'_>,
        process: Handle,
        memory: Handle,
        address: u64,
        first: u64,
        pages: u64,
        rights: Rights,
    ) -> Result<(), Stop> {
        let (slot, _target) = self.target(caller, process, Rights::MANAGE)?;
        let pages = Pages::new(UserAddr(address), pages)?;
        let access = Access::from_rights(rights)?;
        let hold = self.hold(caller, memory, Object::as_memory, access.rights())?;
        let mapping = Mapping {
            pages,
            memory: hold.object,
            first,
            allowed: hold.rights(),
            access,
        };
        match self.map_step(caller.cpu, slot, &mapping) {
            // Pages that were mapped already were taken back: as after unmapping, no CPU may go on using them.
            Err(Stop::Error(error @ (Error::QuotaExceeded | Error::Busy))) => {
                self.await_flush(caller, self.process(slot), Err(error))
            }
            other => other,
        }
    }

    pub(super) fn unmap(
        &self,
        caller: &Caller<'_>,
        process: Handle,
        address: u64,
        pages: u64,
    ) -> Result<(), Stop> {
        let (slot, _target) = self.target(caller, process, Rights::MANAGE)?;
        self.unmap_step(caller, slot, Pages::new(UserAddr(address), pages)?)
    }

    pub(super) fn protect(
        &self,
        caller: &Caller<'_>,
        process: Handle,
        address: u64,
        pages: u64,
        rights: Rights,
    ) -> Result<(), Stop> {
        let (slot, _target) = self.target(caller, process, Rights::MANAGE)?;
        let pages = Pages::new(UserAddr(address), pages)?;
        self.protect_step(caller, slot, pages, Access::from_rights(rights)?)
    }
}

//! Address spaces: which memory objects are mapped where. Mapping and unmapping are done in steps; how far they have come is
//! kept in the region, so that the call can be made again from the start.

use crate::base::addr::{Frame, UserAddr};
use crate::base::lock::{Guard, rank};
use crate::base::pool::Ref;
use crate::base::regs::Reg;
use crate::calls::{Caller, Stop};
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::mem::page::{Access, Kind, Pages};
use crate::mem::paging::{Tables, Teardown};
use crate::mem::supply::Supply;
use crate::object::memory::Backing;
use crate::object::thread::State;
use crate::object::{Memory, Process};
use core::sync::atomic::Ordering::{Acquire, Relaxed};
use ipc::abi::layout::{INFO_PAGE, MAPPINGS_MAX};
use ipc::abi::{Error, NEVER, Rights};

/// Mappings that a space holds at most.
pub const REGIONS_MAX: usize = MAPPINGS_MAX as usize;
/// Pages done in one step.
const STEP: u64 = 32;

/// What is being done to a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Pages are being mapped.
    Mapping,
    /// It is whole.
    Whole,
    /// Pages are being unmapped; then this is the answer.
    Unmapping(Result<(), Error>),
    /// Pages are being given another access; the number is how many have it.
    Protecting(Access, u64),
}

/// A mapping.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    pub(crate) pages: Pages,
    /// Counted.
    pub(crate) memory: Ref<Memory>,
    /// The object's page that is mapped first.
    pub(crate) first: u64,
    /// What the handle allowed.
    pub(crate) allowed: Rights,
    pub(crate) access: Access,
    pub(crate) kind: Kind,
    /// Pages that are mapped.
    done: u64,
    phase: Phase,
}

/// What a process's space lock guards.
#[derive(Debug)]
pub struct Space {
    regions: heapless::Vec<Region, REGIONS_MAX>,
    /// How far the teardown of its tables has come.
    pub teardown: Option<Teardown>,
}

impl Space {
    /// Nothing mapped.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            regions: heapless::Vec::new(),
            teardown: None,
        }
    }

    /// Takes a region off the list and says what it mapped; for a space that no CPU uses any more.
    pub fn pop(&mut self) -> Option<Ref<Memory>> {
        self.regions.pop().map(|region| region.memory)
    }

    /// The region in a place of the list.
    pub(crate) fn region(&self, place: usize) -> Option<&Region> {
        self.regions.get(place)
    }

    /// Its regions and their objects, for tests.
    #[cfg(test)]
    pub(crate) fn mapped(&self) -> Vec<(Pages, Ref<Memory>)> {
        self.regions
            .iter()
            .map(|region| (region.pages, region.memory))
            .collect()
    }

    fn find(&mut self, pages: Pages) -> Option<(usize, &mut Region)> {
        self.regions
            .iter_mut()
            .enumerate()
            .find(|(_, region)| region.pages == pages)
    }
}

impl Default for Space {
    fn default() -> Self {
        Self::new()
    }
}

/// Takes frames on a process's account.
pub(crate) struct Account<'a, H: Hardware + 'static> {
    kernel: &'a Kernel<H>,
    cpu: &'a CpuState,
    slot: u32,
    /// What was not to be had last is on its way.
    comes: bool,
}

impl<'a, H: Hardware> Account<'a, H> {
    pub(crate) const fn new(kernel: &'a Kernel<H>, cpu: &'a CpuState, slot: u32) -> Self {
        Self {
            kernel,
            cpu,
            slot,
            comes: false,
        }
    }

    /// What a call answers after this error of something that took from here: if a frame is on its way, it is made again.
    pub(crate) fn stop(&self, error: Error) -> Stop {
        match error {
            Error::QuotaExceeded | Error::OutOfMemory if self.comes => Stop::Restart,
            error => error.into(),
        }
    }

    /// A zeroed frame.
    pub(crate) fn take_page(&mut self) -> Result<Frame, Error> {
        let frame = self.take()?;
        self.kernel.hw.zero(frame);
        Ok(frame)
    }

    /// Gives back a page that may have been mapped.
    pub(crate) fn give_page(&mut self, frame: Frame) {
        self.give(frame);
    }

    /// Gives back a page that nobody has seen.
    pub(crate) fn put_back(&mut self, frame: Frame) {
        self.kernel.frames.free(&self.cpu.token, frame);
        self.kernel.process(self.slot).uncharge(1);
    }
}

impl<H: Hardware> Supply for Account<'_, H> {
    fn take(&mut self) -> Result<Frame, Error> {
        let process = self.kernel.process(self.slot);
        let mut fails = |stop, error| {
            self.comes = stop == Stop::Restart;
            error
        };
        self.kernel
            .charge(process, 1)
            .map_err(|stop| fails(stop, Error::QuotaExceeded))?;
        self.kernel.take_frame(self.cpu).map_err(|stop| {
            process.uncharge(1);
            fails(stop, Error::OutOfMemory)
        })
    }
    fn give(&mut self, frame: Frame) {
        self.kernel
            .frames
            .retire(&self.cpu.token, frame, self.kernel.grace.retire_epoch());
        self.kernel.process(self.slot).uncharge(1);
    }
}

/// What `map` is asked for, checked.
pub(crate) struct Mapping {
    pub(crate) pages: Pages,
    pub(crate) memory: Ref<Memory>,
    pub(crate) first: u64,
    pub(crate) allowed: Rights,
    pub(crate) access: Access,
}

impl<H: Hardware> Kernel<H> {
    /// One step of mapping. `Restart` until it is whole.
    pub(crate) fn map_step(&self, cpu: &CpuState, slot: u32, wanted: &Mapping) -> Result<(), Stop> {
        let process = self.process(slot);
        let tables = Tables::at(process.root().ok_or(Error::PeerDied)?);
        let mut space = process.space.lock(&cpu.token);
        let going_on = space.find(wanted.pages).is_some_and(|(_, region)| {
            region.phase != Phase::Whole
                && region.memory == wanted.memory
                && region.first == wanted.first
        });
        if !going_on {
            self.add_region(cpu, process, &mut space, wanted)?;
        }
        let Some((index, region)) = space.find(wanted.pages) else {
            return Err(Error::Busy.into());
        };
        match region.phase {
            Phase::Mapping => {
                let mut account = Account::new(self, cpu, slot);
                for _ in 0..STEP {
                    let Some(page) = region.pages.page(region.done) else {
                        break;
                    };
                    let mapped = self
                        .page_of(cpu, region.memory, region.first + region.done)
                        .and_then(|frame| {
                            tables.map(
                                self.hw,
                                page,
                                frame,
                                region.access,
                                region.kind,
                                &mut account,
                            )
                        });
                    if let Err(error) = mapped {
                        let stop = account.stop(error);
                        if stop == Stop::Restart {
                            return Err(stop);
                        }
                        // Tables that were made for this page alone.
                        tables.prune(self.hw, page, &mut account);
                        region.phase = Phase::Unmapping(Err(error));
                        return Err(Stop::Restart);
                    }
                    region.done += 1;
                }
                if region.done == region.pages.count() {
                    region.phase = Phase::Whole;
                    return Ok(());
                }
                Err(Stop::Restart)
            }
            Phase::Unmapping(answer) => {
                self.take_apart(cpu, slot, tables, space, index)?;
                answer.map_err(Stop::from)
            }
            Phase::Whole | Phase::Protecting(..) => Err(Error::Busy.into()),
        }
    }

    fn add_region(
        &self,
        cpu: &CpuState,
        process: &Process,
        space: &mut Space,
        wanted: &Mapping,
    ) -> Result<(), Error> {
        if process.is_dead() {
            return Err(Error::PeerDied);
        }
        let info = Pages::new(UserAddr(INFO_PAGE), 1)?;
        if wanted.pages.overlaps(info)
            || space
                .regions
                .iter()
                .any(|region| region.pages.overlaps(wanted.pages))
        {
            return Err(Error::Overlap);
        }
        let memory = self.memory(wanted.memory);
        let kind = {
            let pages = memory.pages.lock(&cpu.token);
            let end = wanted
                .first
                .checked_add(wanted.pages.count())
                .ok_or(Error::BadArgument)?;
            if end > pages.count {
                return Err(Error::BadArgument);
            }
            if matches!(pages.backing, Backing::Device(_)) {
                Kind::Device
            } else {
                Kind::Ram
            }
        };
        if kind == Kind::Device && wanted.access == Access::Execute {
            return Err(Error::BadArgument);
        }
        let region = Region {
            pages: wanted.pages,
            memory: wanted.memory,
            first: wanted.first,
            allowed: wanted.allowed,
            access: wanted.access,
            kind,
            done: 0,
            phase: Phase::Mapping,
        };
        space
            .regions
            .push(region)
            .map_err(|_| Error::LimitReached)?;
        memory.refs.fetch_add(1, Relaxed);
        Ok(())
    }

    /// The frame of an object's page.
    pub(crate) fn page_of(
        &self,
        cpu: &CpuState,
        memory: Ref<Memory>,
        index: u64,
    ) -> Result<Frame, Error> {
        let pages = self.memory(memory).pages.lock(&cpu.token);
        if index >= pages.count {
            return Err(Error::BadArgument);
        }
        match &pages.backing {
            Backing::Paged(list) => list.get(self.hw, index).ok_or(Error::BadArgument),
            Backing::Contiguous(first) | Backing::Borrowed(first, _) | Backing::Device(first) => {
                Ok(Frame(first.0 + index as u32))
            }
        }
    }

    /// Unmaps some pages of a region, from its end. `Restart` until none is left; then the region goes, and lets go of its object.
    fn take_apart(
        &self,
        cpu: &CpuState,
        slot: u32,
        tables: Tables,
        mut space: Guard<'_, Space, { rank::SPACE }>,
        index: usize,
    ) -> Result<(), Stop> {
        let mut account = Account::new(self, cpu, slot);
        let region = &mut space.regions[index];
        for _ in 0..STEP {
            let Some(page) = region
                .done
                .checked_sub(1)
                .and_then(|last| region.pages.page(last))
            else {
                break;
            };
            tables.unmap(self.hw, page);
            if region.done == 1 || page.address().is_multiple_of(1 << 21) {
                tables.prune(self.hw, page, &mut account);
            }
            region.done -= 1;
        }
        if region.done > 0 {
            return Err(Stop::Restart);
        }
        let memory = region.memory;
        space.regions.swap_remove(index);
        drop(space);
        // Its frames, if this was the last count, wait for a grace period of their own.
        self.release_memory(cpu, memory);
        Ok(())
    }

    /// One step of unmapping; after the last the caller waits until no CPU can use the pages.
    pub(crate) fn unmap_step(
        &self,
        caller: &Caller<'_>,
        slot: u32,
        pages: Pages,
    ) -> Result<(), Stop> {
        let (cpu, process) = (caller.cpu, self.process(slot));
        let tables = Tables::at(process.root().ok_or(Error::PeerDied)?);
        let mut space = process.space.lock(&cpu.token);
        let (index, region) = space.find(pages).ok_or(Error::NotMapped)?;
        match region.phase {
            Phase::Whole => region.phase = Phase::Unmapping(Ok(())),
            Phase::Unmapping(_) => {}
            // Whoever is at it, if anyone still is, finds it busy. A call that was given up leaves a region so.
            Phase::Mapping | Phase::Protecting(..) => {
                region.phase = Phase::Unmapping(Err(Error::Busy));
            }
        }
        self.take_apart(cpu, slot, tables, space, index)?;
        self.await_flush(caller, process, Ok(()))
    }

    /// One step of changing a region's access.
    pub(crate) fn protect_step(
        &self,
        caller: &Caller<'_>,
        slot: u32,
        pages: Pages,
        access: Access,
    ) -> Result<(), Stop> {
        let (cpu, process) = (caller.cpu, self.process(slot));
        let tables = Tables::at(process.root().ok_or(Error::PeerDied)?);
        let mut space = process.space.lock(&cpu.token);
        let (_, region) = space.find(pages).ok_or(Error::NotMapped)?;
        let from = match region.phase {
            Phase::Whole => {
                if !region.allowed.contains(access.rights()) {
                    return Err(Error::MissingRight.into());
                }
                if region.kind == Kind::Device && access == Access::Execute {
                    return Err(Error::BadArgument.into());
                }
                0
            }
            Phase::Protecting(to, done) if to == access => done,
            _ => return Err(Error::Busy.into()),
        };
        let to = (from + STEP).min(region.pages.count());
        for index in from..to {
            if let Some(page) = region.pages.page(index) {
                tables.protect(self.hw, page, access)?;
            }
        }
        if to < region.pages.count() {
            region.phase = Phase::Protecting(access, to);
            return Err(Stop::Restart);
        }
        region.access = access;
        region.phase = Phase::Whole;
        drop(space);
        self.await_flush(caller, process, Ok(()))
    }

    /// Flushes here, and blocks the caller until every other CPU that has the space loaded has flushed. Then the call's answer
    /// is `answer`.
    pub(crate) fn await_flush(
        &self,
        caller: &Caller<'_>,
        process: &Process,
        answer: Result<(), Error>,
    ) -> Result<(), Stop> {
        let cpu = caller.cpu;
        // Its fence is between the changed entries and the look at who may have read them.
        let epoch = self.grace.retire_epoch();
        let active = process.active.load(Acquire);
        if active & cpu.token.id().bit() != 0 {
            self.hw.flush_all();
        }
        let others = active & !cpu.token.id().bit();
        if others == 0 {
            return answer.map_err(Stop::from);
        }
        let status = answer.map_or_else(|error| error as u64, |()| 0);
        caller.thread.regs.set(Reg::Rax, status);
        self.grace.advance(epoch);
        caller.thread.awaited_epoch.store(epoch.raw(), Relaxed);
        caller.thread.awaited_cpus.store(others, Relaxed);
        caller.thread.blocked_on.store(0, Relaxed);
        let mut waiters = self.shootdown.lock(&cpu.token);
        waiters.push(&self.pools.threads, caller.id, 0);
        self.block(cpu, caller.id, State::Unmapping, NEVER);
        drop(waiters);
        self.kick_all(cpu, others);
        Err(Stop::Blocked)
    }
}

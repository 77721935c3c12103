//! Address spaces: which memory objects are mapped where. Mapping and unmapping are done in steps; how far they have come is
//! kept in the region, so that the call can be made again from the start.

use crate::account::Account;
use crate::base::addr::{Frame, UserAddr};
use crate::base::lock::{Guard, rank};
use crate::base::pool::Ref;
use crate::base::regs::Reg;
use crate::calls::{Caller, Stop};
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::mem::page::{Access, Kind, Pages};
use crate::mem::paging::{Tables, Teardown};
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
    /// Pages are being unmapped.
    Unmapping,
    /// It did not become whole, and its pages are being unmapped; then this is what the call that maps answers.
    Failed(Error),
    /// Pages are being given another access; the number is how many have it.
    Protecting(Access, u64),
}

/// What is mapped where; as `map` is asked for it, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) pages: Pages,
    pub(crate) memory: Ref<Memory>,
    /// The object's page that is mapped first.
    pub(crate) first: u64,
    /// What the handle allowed.
    pub(crate) allowed: Rights,
    pub(crate) access: Access,
}

/// A mapping that is there, or on its way. Its object is counted.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    pub(crate) mapping: Mapping,
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
        self.regions.pop().map(|region| region.mapping.memory)
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
            .map(|region| (region.mapping.pages, region.mapping.memory))
            .collect()
    }

    fn find(&mut self, pages: Pages) -> Option<(usize, &mut Region)> {
        self.regions
            .iter_mut()
            .enumerate()
            .find(|(_, region)| region.mapping.pages == pages)
    }

    /// The place of a mapping that was begun and is not whole, by this call or another that asks for the same.
    fn begun(&self, wanted: &Mapping) -> Option<usize> {
        self.regions.iter().position(|region| {
            matches!(region.phase, Phase::Mapping | Phase::Failed(_)) && region.mapping == *wanted
        })
    }
}

impl Default for Space {
    fn default() -> Self {
        Self::new()
    }
}

impl<H: Hardware> Kernel<H> {
    /// One step of mapping. `Restart` until it is whole.
    pub(crate) fn map_step(&self, cpu: &CpuState, slot: u32, wanted: &Mapping) -> Result<(), Stop> {
        let process = self.process(slot);
        let tables = Tables::at(process.root().ok_or(Error::PeerDied)?);
        let mut space = process.space.lock(&cpu.token);
        let index = match space.begun(wanted) {
            Some(index) => index,
            None => self.add_region(cpu, process, &mut space, wanted)?,
        };
        if let Phase::Failed(error) = space.regions[index].phase {
            self.take_apart(cpu, slot, tables, space, index)?;
            return Err(error.into());
        }
        let region = &mut space.regions[index];
        let mut account = Account::new(self, cpu, slot);
        for _ in 0..STEP {
            let Some(page) = wanted.pages.page(region.done) else {
                break;
            };
            let mapped = self
                .page_of(cpu, wanted.memory, wanted.first + region.done)
                .and_then(|frame| {
                    tables.map(
                        self.hw,
                        page,
                        frame,
                        wanted.access,
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
                region.phase = Phase::Failed(error);
                return Err(Stop::Restart);
            }
            region.done += 1;
        }
        if region.done < wanted.pages.count() {
            return Err(Stop::Restart);
        }
        region.phase = Phase::Whole;
        Ok(())
    }

    /// Begins a mapping, and says its place.
    fn add_region(
        &self,
        cpu: &CpuState,
        process: &Process,
        space: &mut Space,
        wanted: &Mapping,
    ) -> Result<usize, Error> {
        if process.is_dead() {
            return Err(Error::PeerDied);
        }
        let info = Pages::new(UserAddr(INFO_PAGE), 1)?;
        if wanted.pages.overlaps(info)
            || space
                .regions
                .iter()
                .any(|region| region.mapping.pages.overlaps(wanted.pages))
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
            mapping: *wanted,
            kind,
            done: 0,
            phase: Phase::Mapping,
        };
        space
            .regions
            .push(region)
            .map_err(|_| Error::LimitReached)?;
        memory.refs.fetch_add(1, Relaxed);
        Ok(space.regions.len() - 1)
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
                .and_then(|last| region.mapping.pages.page(last))
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
        let memory = region.mapping.memory;
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
            // Whoever is at it, if anyone still is, finds it busy. A call that was given up leaves a region so.
            Phase::Mapping => region.phase = Phase::Failed(Error::Busy),
            Phase::Whole | Phase::Protecting(..) => region.phase = Phase::Unmapping,
            Phase::Unmapping | Phase::Failed(_) => {}
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
                if !region.mapping.allowed.contains(access.rights()) {
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
        let to = (from + STEP).min(pages.count());
        for index in from..to {
            if let Some(page) = pages.page(index) {
                tables.protect(self.hw, page, access)?;
            }
        }
        if to < pages.count() {
            region.phase = Phase::Protecting(access, to);
            return Err(Stop::Restart);
        }
        region.mapping.access = access;
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

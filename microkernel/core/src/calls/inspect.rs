//! The records of `system_info`: one for each slot that is in use. A slot may be freed and taken anew while it is looked at; then it has
//! no record, as it had none for a moment.

use super::{Caller, Stop};
use crate::base::addr::PhysAddr;
use crate::base::cpu::Cpu;
use crate::hardware::{Hardware, PhysMemory};
use crate::kernel::{CpuState, Kernel};
use crate::mem::page::Kind;
use crate::object::memory::Backing;
use crate::object::thread::{ANY_CPU, State, ThreadId};
use crate::object::{Memory, Process};
use core::sync::atomic::{Ordering::Acquire, Ordering::Relaxed, fence};
use ipc::abi::Error;
use ipc::abi::info::{CpuInfo, MemoryInfo};
use ipc::abi::inspect::{
    InterruptInfo, LineInfo, MappingInfo, MappingSource, PAGE_BITS, PageInfo, ProcessInfo,
    StackInfo, StackKind, ThreadInfo,
};
use ipc::abi::layout::{INTERRUPTS, MAPPINGS_MAX, PAGE_SIZE};
use zerocopy::IntoBytes;

/// Bytes of a page that are looked at in one go.
const LOOK: usize = 512;

/// The slot that an index means, of those that there are.
fn slot(index: u64, slots: u32) -> Result<u32, Error> {
    u32::try_from(index)
        .ok()
        .filter(|&index| index < slots)
        .ok_or(Error::NotFound)
}

/// Bytes at the beginning of a page of RAM that are zero, in whole words.
fn leading_zeroes(memory: &impl PhysMemory, page: PhysAddr) -> u64 {
    let mut zeroes = 0;
    for piece in 0..PAGE_SIZE / LOOK as u64 {
        let mut words = [0_u64; LOOK / 8];
        memory.read_bytes(page.offset(piece * LOOK as u64), words.as_mut_bytes());
        let found = words.iter().position(|&word| word != 0);
        zeroes += 8 * found.unwrap_or(words.len()) as u64;
        if found.is_some() {
            break;
        }
    }
    zeroes
}

impl<H: Hardware> Kernel<H> {
    /// The CPU with an index.
    pub(super) fn cpu_at(&self, index: u64) -> Result<&'static CpuState, Error> {
        let index = usize::try_from(index).map_err(|_| Error::NotFound)?;
        self.cpus.get(index).ok_or(Error::NotFound)
    }

    pub(super) fn memory_state(&self, caller: &Caller<'_>) -> MemoryInfo {
        let cpu = &caller.cpu.token;
        let usage = self.frames.usage(cpu);
        let pools = [
            self.pools.processes.usage(cpu),
            self.pools.threads.usage(cpu),
            self.pools.endpoints.usage(cpu),
            self.pools.notifications.usage(cpu),
            self.pools.memory.usage(cpu),
            self.pools.chunks.usage(cpu),
            self.pools.badges.usage(cpu),
        ];
        MemoryInfo {
            total: self.facts.total_pages,
            free: usage.free.into(),
            waiting: usage.waiting.into(),
            kernel: self.facts.kernel_pages,
            bootfs: self.facts.bootfs_pages,
            processes: u64::from(usage.total - usage.free - usage.waiting),
            pools: pools.map(|(used, all)| [used.into(), all.into()]),
        }
    }

    pub(super) fn cpu_state(&self, index: u64) -> Result<CpuInfo, Stop> {
        let there = self.cpu_at(index)?;
        let time = self.cpu_time(there)?;
        let load = &there.load;
        Ok(CpuInfo {
            apic_id: load.apic_id.load(Relaxed),
            idle_ns: self.hw.tsc_to_nanos(time.idle),
            busy_ns: self.hw.tsc_to_nanos(time.busy),
            ticks: load.ticks.load(Relaxed),
            interrupts: load.interrupts().interrupts(),
            syscalls: load.syscalls.load(Relaxed),
            switches: load.switches.load(Relaxed),
            longest_entry: load.longest_entry.load(Relaxed),
            tsc_offset: load.tsc_offset.load(Relaxed),
            started_ns: self.hw.time_at(time.started).0,
            at_ns: self.hw.time_at(time.now).0,
        })
    }

    pub(super) fn interrupt_state(&self, index: u64) -> Result<InterruptInfo, Error> {
        Ok(self.cpu_at(index)?.load.interrupts())
    }

    pub(super) fn line_state(
        &self,
        caller: &Caller<'_>,
        index: u64,
    ) -> Result<Option<LineInfo>, Error> {
        let line = slot(index, INTERRUPTS)?;
        let taken = {
            let mut lines = self.lines.lock(&caller.cpu.token);
            lines.place(line).and_then(|place| *place)
        };
        let count = self.line_counts[line as usize].load(Relaxed);
        if taken.is_none() && count == 0 {
            return Ok(None);
        }
        Ok(Some(LineInfo {
            taken_by: taken.map_or(0, |taken| taken.pid.into()),
            driver: taken.map_or(0, |taken| taken.driver.into()),
            count,
            by_message: u64::from(line >= self.hw.lines()),
        }))
    }

    pub(super) fn stack_state(&self, index: u64) -> Result<StackInfo, Error> {
        let kinds = StackKind::ALL.len() as u64;
        let cpu = self.cpu_at(index / kinds)?.token.id();
        Ok(self.hw.stack(cpu, StackKind::ALL[(index % kinds) as usize]))
    }

    /// The process in a slot, if there is one: its id is 0 until it is whole, and again before its slot is free.
    fn process_in(&self, slot: u32) -> Option<(u32, &'static Process)> {
        let (_, process) = self.pools.processes.occupant(slot)?;
        let pid = process.pid.load(Acquire);
        (pid != 0).then_some((pid, process))
    }

    /// What `look` says of the process in a slot, if it is the same one after.
    fn process_at<T>(&self, slot: u32, look: impl FnOnce(u32, &'static Process) -> T) -> Option<T> {
        let (pid, process) = self.process_in(slot)?;
        let seen = look(pid, process);
        fence(Acquire);
        (process.pid.load(Relaxed) == pid).then_some(seen)
    }

    pub(super) fn process_state(
        &self,
        caller: &Caller<'_>,
        index: u64,
    ) -> Result<Option<ProcessInfo>, Error> {
        let slot = slot(index, self.pools.processes.len())?;
        let cpu = &caller.cpu.token;
        Ok(self.process_at(slot, |pid, process| {
            let reason = process.life.lock(cpu).reason;
            let handles = process.handles.lock(cpu).used();
            let parent = self.pools.processes.at(process.parent.load(Relaxed));
            ProcessInfo {
                pid: pid.into(),
                parent: parent.map_or(0, |parent| parent.pid.load(Relaxed).into()),
                image: process.image.load(Relaxed).into(),
                name: process.name(),
                reason: reason as u64,
                pages: process.pages.load(Relaxed),
                quota_pages: process.quota.load(Relaxed),
                handles: handles.into(),
                objects: core::array::from_fn(|kind| process.objects[kind].load(Relaxed).into()),
                ended_ns: self.hw.tsc_to_nanos(process.cpu_ticks.load(Relaxed)),
                gone_ns: self.hw.tsc_to_nanos(process.gone_ticks.load(Relaxed)),
            }
        }))
    }

    pub(super) fn thread_state(&self, index: u64) -> Result<Option<ThreadInfo>, Stop> {
        let slot = slot(index, self.pools.threads.len())?;
        let Some((reference, thread)) = self.pools.threads.occupant(slot) else {
            return Ok(None);
        };
        // What a thread is made with is there when its status says that it is not dead.
        let state = thread.status().state();
        if state == State::Dead {
            return Ok(None);
        }
        let (ran, now) = self.thread_time(ThreadId(slot), thread)?;
        let process = thread.process.load(Relaxed);
        let pinned = thread.pinned.load(Relaxed);
        let info = ThreadInfo {
            tid: thread.tid().into(),
            pid: self.process(process).pid.load(Relaxed).into(),
            process: process.into(),
            state: state.public() as u64,
            cpu: thread.last_cpu.load(Relaxed).into(),
            priority: thread.priority.load(Relaxed).into(),
            base_priority: thread.base_priority.load(Relaxed).into(),
            pinned: match pinned {
                ANY_CPU => u64::MAX,
                pinned => pinned.into(),
            },
            cpu_ns: self.hw.tsc_to_nanos(ran),
            at_ns: self.hw.time_at(now).0,
            stack: thread.stack.load(Relaxed),
            buffer: thread.buffer_object.load(Relaxed),
        };
        fence(Acquire);
        // The same thread all the while, or none.
        Ok(self.pools.threads.get(reference).map(|_| info))
    }

    /// The process and the number of the mapping with an index.
    fn mapping_at(&self, index: u64) -> Result<(u32, usize), Error> {
        let process = slot(index / MAPPINGS_MAX, self.pools.processes.len())?;
        Ok((process, (index % MAPPINGS_MAX) as usize))
    }

    pub(super) fn mapping_state(
        &self,
        caller: &Caller<'_>,
        index: u64,
    ) -> Result<Option<MappingInfo>, Error> {
        let (slot, n) = self.mapping_at(index)?;
        let cpu = &caller.cpu.token;
        let seen = self.process_at(slot, |pid, process| {
            // The region keeps its object, and the lock keeps the region.
            let space = process.space.lock(cpu);
            let region = space.region(n)?;
            let (source, first) = self.source(
                cpu,
                self.memory(region.mapping.memory),
                region.mapping.first,
            );
            Some(MappingInfo {
                pid: pid.into(),
                address: region.mapping.pages.address(),
                pages: region.mapping.pages.count(),
                rights: region.mapping.access.rights().bits().into(),
                allowed: region.mapping.allowed.bits().into(),
                source: source as u64,
                first,
                object: region.mapping.memory.pack(),
            })
        });
        Ok(seen.flatten())
    }

    /// Where an object's pages come from, and the number of one of them there.
    fn source(&self, cpu: &Cpu, memory: &Memory, first: u64) -> (MappingSource, u64) {
        let from = match memory.pages.lock(cpu).backing {
            Backing::Paged(_) => return (MappingSource::Memory, first),
            Backing::Contiguous(_) => return (MappingSource::Contiguous, first),
            Backing::Device(_) => return (MappingSource::Device, first),
            Backing::Borrowed(from, _) => u64::from(from.0),
        };
        let facts = &self.facts;
        let archive = u64::from(facts.bootfs.0);
        let rings = u64::from(facts.rings.0);
        let ring_pages = facts.ring_bytes / PAGE_SIZE * self.cpus.len() as u64;
        if (archive..archive + facts.bootfs_pages).contains(&from) {
            (MappingSource::Archive, from - archive + first)
        } else if (rings..rings + ring_pages).contains(&from) {
            (MappingSource::Rings, from - rings + first)
        } else {
            // A part of memory in a row.
            (MappingSource::Contiguous, first)
        }
    }

    pub(super) fn page_state(
        &self,
        caller: &Caller<'_>,
        index: u64,
    ) -> Result<Option<PageInfo>, Error> {
        let (slot, n) = self.mapping_at(index >> PAGE_BITS)?;
        let page = index & ((1 << PAGE_BITS) - 1);
        let cpu = caller.cpu;
        let seen = self.process_at(slot, |pid, process| {
            // As above; so the frame stays the object's.
            let space = process.space.lock(&cpu.token);
            let region = space.region(n)?;
            if region.kind == Kind::Device {
                return None;
            }
            let address = region.mapping.pages.page(page)?.address();
            let frame = self
                .page_of(cpu, region.mapping.memory, region.mapping.first + page)
                .ok()?;
            Some(PageInfo {
                pid: pid.into(),
                address,
                zeroes: leading_zeroes(self.hw, frame.start()),
            })
        });
        Ok(seen.flatten())
    }
}

//! What the fake kernel tells of itself: fields again, and a change in the middle of looking at them.

use std::collections::BTreeMap;

use ipc::abi::Error;
use ipc::abi::inspect::{
    InterruptInfo, LineInfo, MappingInfo, PageInfo, ProcessInfo, StackInfo, StackKind, ThreadInfo,
};
use ipc::abi::layout::{INTERRUPTS, NAME_MAX, PAGE_SIZE};
use ipc::abi::trace::{TRACE_READ_MAX, TRACE_RECORDS, TraceRecord};

use super::FakeSystem;
use crate::inspect::{Inspect, TracePart};

/// Interrupt lines that can be asked about.
const LINES: u64 = INTERRUPTS as u64;

/// The slots of the kernel's pools. CPUs are those of [`FakeSystem::cpus`].
#[derive(Clone, Debug, Default)]
pub struct FakeKernel {
    pub processes: Vec<Option<ProcessInfo>>,
    pub threads: Vec<Option<ThreadInfo>>,
    /// By slot of the process and number.
    pub mappings: BTreeMap<(u64, u64), MappingInfo>,
    /// Zeroes at the beginning of pages, by address.
    pub zeroes: BTreeMap<u64, u64>,
    pub stacks: Vec<[StackInfo; StackKind::ALL.len()]>,
    pub interrupts: Vec<InterruptInfo>,
    pub lines: BTreeMap<u64, LineInfo>,
    pub tracing: bool,
    /// By CPU, from the first record since boot on.
    pub trace: Vec<Vec<TraceRecord>>,
    /// After so many slots were read, all becomes this.
    pub change: Option<(usize, Box<FakeKernel>)>,
}

impl FakeKernel {
    /// Adds a process, in the next slot.
    pub fn process(&mut self, pid: u64, name: &str) -> &mut ProcessInfo {
        let mut padded = [0; NAME_MAX];
        padded[..name.len()].copy_from_slice(name.as_bytes());
        self.processes.push(Some(ProcessInfo {
            pid,
            name: padded,
            ..ProcessInfo::default()
        }));
        self.processes.last_mut().unwrap().as_mut().unwrap()
    }
    /// Adds a thread of the process that was added last.
    pub fn thread(&mut self, tid: u64) -> &mut ThreadInfo {
        let pid = self.processes.last().unwrap().unwrap().pid;
        self.threads.push(Some(ThreadInfo {
            tid,
            pid,
            process: self.processes.len() as u64 - 1,
            pinned: u64::MAX,
            ..ThreadInfo::default()
        }));
        self.threads.last_mut().unwrap().as_mut().unwrap()
    }

    /// Counts a slot that is read, and gives it.
    fn slot<T: Copy>(
        &mut self,
        get: impl Fn(&Self) -> &Vec<Option<T>>,
        slot: u64,
    ) -> Result<Option<T>, Error> {
        if let Some((left, after)) = self.change.take() {
            match left.checked_sub(1) {
                Some(left) => self.change = Some((left, after)),
                None => *self = *after,
            }
        }
        let slot = get(self).get(slot as usize);
        slot.copied().ok_or(Error::NotFound)
    }
}

impl Inspect for FakeSystem {
    fn process_slot(&mut self, slot: u64) -> Result<Option<ProcessInfo>, Error> {
        self.kernel.slot(|kernel| &kernel.processes, slot)
    }
    fn thread_slot(&mut self, slot: u64) -> Result<Option<ThreadInfo>, Error> {
        self.kernel.slot(|kernel| &kernel.threads, slot)
    }
    fn mapping(&mut self, process: u64, n: u64) -> Result<Option<MappingInfo>, Error> {
        Ok(self.kernel.mappings.get(&(process, n)).copied())
    }
    fn page(&mut self, process: u64, n: u64, page: u32) -> Result<Option<PageInfo>, Error> {
        let mapping = self.kernel.mappings.get(&(process, n));
        Ok(mapping
            .filter(|mapping| u64::from(page) < mapping.pages)
            .map(|mapping| {
                let address = mapping.address + u64::from(page) * PAGE_SIZE;
                let zeroes = self.kernel.zeroes.get(&address).copied();
                PageInfo {
                    pid: mapping.pid,
                    address,
                    zeroes: zeroes.unwrap_or(PAGE_SIZE),
                }
            }))
    }
    fn stack(&mut self, cpu: u64, which: StackKind) -> Result<StackInfo, Error> {
        let stacks = self.kernel.stacks.get(cpu as usize);
        stacks
            .map(|stacks| stacks[which as usize])
            .ok_or(Error::NotFound)
    }
    fn interrupts(&mut self, cpu: u64) -> Result<InterruptInfo, Error> {
        let interrupts = self.kernel.interrupts.get(cpu as usize);
        interrupts.copied().ok_or(Error::NotFound)
    }
    fn line(&mut self, line: u64) -> Result<Option<LineInfo>, Error> {
        match line {
            0..LINES => Ok(self.kernel.lines.get(&line).copied()),
            _ => Err(Error::NotFound),
        }
    }
    fn is_traced(&mut self) -> Result<bool, Error> {
        Ok(self.kernel.tracing)
    }
    fn set_trace(&mut self, on: bool) -> Result<(), Error> {
        self.kernel.tracing = on;
        Ok(())
    }
    fn trace(&mut self, cpu: u64, position: u64) -> Result<TracePart, Error> {
        let all = self.kernel.trace.get(cpu as usize).ok_or(Error::NotFound)?;
        let written = all.len();
        let position = written.min(usize::try_from(position).unwrap_or(usize::MAX));
        let first = position.max(written.saturating_sub(TRACE_RECORDS));
        let next = written.min(first + TRACE_READ_MAX);
        Ok(TracePart {
            records: all[first..next].to_vec(),
            next: next as u64,
            lost: (first - position) as u64,
        })
    }
    /// A tick is half a nanosecond.
    fn time_at(&self, tsc: u64) -> u64 {
        tsc / 2
    }
}

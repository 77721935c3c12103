//! Who had the CPUs between two snapshots.
//!
//! All of a CPU's time is a thread's or idle, so the shares of threads, those of threads that have ended, and idle add up to
//! 100 % for each CPU. But records are read one after the other. Each share is of the time between the two readings of its own
//! record, so a steady load is shown exactly; what the readings do not agree about is [`Usage::off`]. It is never more than twice
//! the time that both snapshots took, on each CPU: every record is read within that, and no thread runs faster than time.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use ipc::abi::inspect::ThreadInfo;
use ipc::abi::layout::NAME_MAX;

use super::share::Share;
use super::snapshot::Snapshot;

#[cfg(test)]
mod tests;

/// A thread's part of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// What it had.
    pub share: Share,
    /// Process id.
    pub pid: u64,
    /// Thread id.
    pub tid: u64,
    /// Name of the process, padded with zeroes.
    pub name: [u8; NAME_MAX],
    /// CPU that it ran on last.
    pub cpu: u64,
    /// Priority that it had then.
    pub priority: u64,
}

/// One CPU's part of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuRow {
    /// With a thread.
    pub busy: Share,
    /// Without.
    pub idle: Share,
}

/// The window between two snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Its length, in nanoseconds, between the snapshots.
    pub window: u64,
    /// Nanoseconds that both snapshots took.
    pub reading: u64,
    /// The threads that live at its end and ran in it, the busiest first.
    pub threads: Vec<Row>,
    /// What threads had that have ended in it, whether they began in it or not.
    pub ended: Share,
    /// Each CPU.
    pub cpus: Vec<CpuRow>,
}

impl Usage {
    /// What happened between two snapshots.
    #[must_use]
    pub fn between(first: &Snapshot, last: &Snapshot) -> Self {
        let names: BTreeMap<u64, [u8; NAME_MAX]> = (last.processes.iter())
            .map(|process| (process.pid, process.name))
            .collect();
        // Thread ids are never used again.
        let mut before: BTreeMap<u64, &ThreadInfo> =
            first.threads.iter().map(|info| (info.tid, info)).collect();
        let whole = last.begun.saturating_sub(first.begun);
        let mut threads = Vec::new();
        for now in &last.threads {
            let share = match before.remove(&now.tid) {
                Some(was) => Share::new(
                    now.cpu_ns.saturating_sub(was.cpu_ns),
                    now.at_ns.saturating_sub(was.at_ns),
                ),
                // It began in the window.
                None => Share::new(now.cpu_ns, whole),
            };
            if share > Share(0) {
                threads.push(Row {
                    share,
                    pid: now.pid,
                    tid: now.tid,
                    name: names.get(&now.pid).copied().unwrap_or_default(),
                    cpu: now.cpu,
                    priority: now.priority,
                });
            }
        }
        threads.sort_by_key(|row| (Reverse(row.share), row.pid, row.tid));
        // What is left of the first has ended, and some of its time was before.
        let earlier: u64 = before.values().map(|info| info.cpu_ns).sum();
        let ended = (last.of_ended()).saturating_sub(first.of_ended() + earlier);
        let cpus = first.cpus.iter().zip(&last.cpus).map(|(was, now)| {
            let window = now.at_ns.saturating_sub(was.at_ns);
            CpuRow {
                busy: Share::new(now.busy_ns.saturating_sub(was.busy_ns), window),
                idle: Share::new(now.idle_ns.saturating_sub(was.idle_ns), window),
            }
        });
        Self {
            window: last.begun.saturating_sub(first.ended),
            reading: (first.ended - first.begun) + (last.ended - last.begun),
            threads,
            ended: Share::new(ended, whole),
            cpus: cpus.collect(),
        }
    }

    /// What the threads that are listed had.
    #[must_use]
    pub fn listed(&self) -> Share {
        Share::sum(self.threads.iter().map(|row| row.share))
    }
    /// What nobody had.
    #[must_use]
    pub fn idle(&self) -> Share {
        Share::sum(self.cpus.iter().map(|cpu| cpu.idle))
    }
    /// What the CPUs say that somebody had, and no thread says: less than nothing if it is the other way round.
    #[must_use]
    pub fn off(&self) -> Share {
        let busy = Share::sum(self.cpus.iter().map(|cpu| cpu.busy));
        Share(busy.0 - self.listed().0 - self.ended.0)
    }
}

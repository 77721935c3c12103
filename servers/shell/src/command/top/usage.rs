//! Who had the CPUs between two snapshots.
//!
//! All of a CPU's time is a thread's or idle, so the shares of threads, those of threads that have ended, and idle add up to 100 % for each
//! CPU. But records are read one after the other. Each share is of the time between the two readings of its own record, so a
//! steady load is shown exactly; what the readings do not agree about is [`Usage::off`]. It is never more than twice the time that both
//! snapshots took, on each CPU: every record is read within that, and no thread runs faster than time.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::fmt;

use ipc::abi::Error;
use ipc::abi::info::CpuInfo;
use ipc::abi::inspect::{ProcessInfo, ThreadInfo};

use crate::inspect::{LOOKS, in_use};
use crate::system::System;

#[cfg(test)]
mod tests;

/// A part of one CPU, in millionths. Shown in percent, rounded to a tenth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(pub i64);

impl Share {
    fn new(part: u64, whole: u64) -> Self {
        let millionths = u128::from(part) * 1_000_000 / u128::from(whole).max(1);
        Self(i64::try_from(millionths).unwrap_or(i64::MAX))
    }
    /// All of these together.
    pub fn sum(shares: impl Iterator<Item = Self>) -> Self {
        Self(shares.map(|share| share.0).sum())
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = self.0.unsigned_abs().saturating_add(500) / 1000;
        let sign = if self.0 < 0 && tenths > 0 { "-" } else { "" };
        let mut text = heapless::String::<24>::new();
        // A sign, twenty digits at most, a point.
        let _ = fmt::Write::write_fmt(
            &mut text,
            format_args!("{sign}{}.{}", tenths / 10, tenths % 10),
        );
        f.pad(&text)
    }
}

/// Everybody's time at about one moment.
pub struct Snapshot {
    begun: u64,
    ended: u64,
    cpus: Vec<CpuInfo>,
    threads: Vec<ThreadInfo>,
    processes: Vec<ProcessInfo>,
}

impl Snapshot {
    /// Reads it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn take(system: &mut dyn System) -> Result<Self, Error> {
        let begun = system.now();
        let mut snapshot = Self {
            begun,
            ended: begun,
            cpus: (0..system.cpus())
                .map(|cpu| system.cpu(cpu))
                .collect::<Result<_, _>>()?,
            threads: Vec::new(),
            processes: processes(system)?,
        };
        for _ in 0..LOOKS {
            let before = snapshot.of_ended();
            snapshot.threads = occupants(|slot| system.thread_slot(slot))?;
            snapshot.processes = processes(system)?;
            // Else a thread that has ended may be in both, or in neither. If some always end, [`Usage::off`] shows it.
            if snapshot.of_ended() == before {
                break;
            }
        }
        snapshot.ended = system.now();
        Ok(snapshot)
    }

    /// When it was complete, in nanoseconds since boot.
    #[must_use]
    pub const fn ended(&self) -> u64 {
        self.ended
    }

    /// Nanoseconds of the threads that have ended.
    fn of_ended(&self) -> u64 {
        let times = self.processes.iter();
        times
            .map(|process| process.ended_ns + process.gone_ns)
            .sum()
    }
}

fn processes(system: &mut dyn System) -> Result<Vec<ProcessInfo>, Error> {
    occupants(|slot| system.process_slot(slot))
}

fn occupants<T>(read: impl FnMut(u64) -> Result<Option<T>, Error>) -> Result<Vec<T>, Error> {
    Ok(in_use(read)?
        .into_iter()
        .map(|(_, record)| record)
        .collect())
}

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
    pub name: [u8; 16],
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
        let names: BTreeMap<u64, [u8; 16]> = (last.processes.iter())
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

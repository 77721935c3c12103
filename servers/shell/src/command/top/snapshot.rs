//! What the kernel's records say of everybody's time.

use alloc::vec::Vec;

use ipc::abi::Error;
use ipc::abi::info::CpuInfo;
use ipc::abi::inspect::{ProcessInfo, ThreadInfo};

use crate::inspect::{LOOKS, in_use};
use crate::system::System;

/// Everybody's time at about one moment.
pub struct Snapshot {
    /// When reading began, in nanoseconds since boot.
    pub begun: u64,
    /// When it was complete.
    pub ended: u64,
    /// Each CPU.
    pub cpus: Vec<CpuInfo>,
    /// Each thread that has not ended.
    pub threads: Vec<ThreadInfo>,
    /// Each process.
    pub processes: Vec<ProcessInfo>,
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
            // Else a thread that has ended may be in both, or in neither. If some always end, `Usage::off` shows it.
            if snapshot.of_ended() == before {
                break;
            }
        }
        snapshot.ended = system.now();
        Ok(snapshot)
    }

    /// Nanoseconds of the threads that have ended.
    pub fn of_ended(&self) -> u64 {
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

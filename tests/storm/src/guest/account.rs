//! What each CPU counted, before and after: NMIs against samples, samples against records.

use alloc::vec::Vec;

use ipc::abi::profile::SampleCounters;
use ipc::abi::{Handle, Syscall};
use sample_ring::Counts;
use sysroot::syscall::rdtsc;
use sysroot::{println, record, startup, time};

use super::failure::{Failure, kernel};

/// How long memory may take to come back.
const BACK: u64 = 10_000 * time::MILLISECOND;

/// What a CPU counted.
#[derive(Clone, Copy, Debug)]
struct Cpu {
    nmis: u64,
    head: u64,
    counters: SampleCounters,
    syscalls: u64,
    ticks: u64,
    /// Nanoseconds since boot, and the TSC.
    at: u64,
    tsc: u64,
}

impl Cpu {
    /// The share of the time since that it spent in samples, in thousandths.
    fn sampling(&self, before: &Self) -> u64 {
        let spent = self.counters.cost - before.counters.cost;
        1000 * spent / (self.tsc - before.tsc).max(1)
    }
}

/// What all of them did.
#[derive(Debug)]
pub struct Account(Vec<Cpu>);

impl Account {
    /// As it stands.
    pub fn of(system: Handle, profiler: Handle) -> Result<Self, Failure> {
        let cpu = |cpu| {
            let (head, counters) =
                record::profiler_cpu(profiler, cpu).map_err(kernel(Syscall::profiler_cpu))?;
            let interrupts =
                record::interrupt_info(system, cpu).map_err(kernel(Syscall::system_info))?;
            let info = record::cpu_info(system, cpu).map_err(kernel(Syscall::system_info))?;
            Ok(Cpu {
                nmis: interrupts.nmis,
                head,
                counters,
                syscalls: info.syscalls,
                ticks: info.ticks,
                at: info.at_ns,
                tsc: rdtsc(),
            })
        };
        (0..startup::info().cpus)
            .map(cpu)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    fn pairs<'a>(&'a self, before: &'a Self) -> impl Iterator<Item = (usize, &'a Cpu, &'a Cpu)> {
        let pairs = self.0.iter().zip(&before.0).enumerate();
        pairs.map(|(cpu, (after, before))| (cpu, after, before))
    }

    /// Prints what was counted since.
    pub fn print_since(&self, before: &Self) {
        for (cpu, after, before) in self.pairs(before) {
            let (now, then) = (&after.counters, &before.counters);
            let nmis = after.nmis - before.nmis;
            let ms = (after.at - before.at) / time::MILLISECOND;
            println!(
                "cpu {cpu}: {nmis} NMIs, {} a second = {} taken + {} late; asked {}, missed {}, throttled {}; time in samples: {} in 1000; {} ticks, {} system calls",
                nmis * 1000 / ms.max(1),
                now.taken - then.taken,
                now.late - then.late,
                now.asked - then.asked,
                now.missed - then.missed,
                now.throttled - then.throttled,
                after.sampling(before),
                after.ticks - before.ticks,
                after.syscalls - before.syscalls
            );
        }
    }

    /// Checks that every NMI took a sample or came late, that every sample is a record that was read or overwritten, and that samples left
    /// each CPU time for its tick.
    pub fn check_since(&self, before: &Self, counts: &[Counts]) -> Result<(), Failure> {
        for ((cpu, after, before), counts) in self.pairs(before).zip(counts) {
            let taken = after.counters.taken - before.counters.taken;
            let nmis = after.nmis - before.nmis;
            let known = taken + (after.counters.late - before.counters.late);
            if nmis != known {
                return Err(Failure::Nmis { cpu, nmis, known });
            }
            let records = counts.read + counts.lost + counts.damaged;
            if records != taken || after.head - before.head != taken {
                return Err(Failure::Records {
                    cpu,
                    records,
                    taken,
                });
            }
            if taken == 0 {
                return Err(Failure::None { cpu });
            }
            if after.ticks == before.ticks {
                return Err(Failure::NoTick { cpu });
            }
        }
        Ok(())
    }
}

/// Pages on this program's account.
pub fn own_pages() -> Result<u64, Failure> {
    let status = record::process_status(Handle::NONE).map_err(kernel(Syscall::process_status))?;
    Ok(status.pages)
}

/// Waits until no more are than before, but for what the heap keeps.
pub fn pages_are_back(before: u64) -> Result<(), Failure> {
    let deadline = time::after(BACK);
    loop {
        let after = own_pages()?;
        if after <= before + HEAP {
            return Ok(());
        }
        if time::now() > deadline {
            return Err(Failure::Pages { before, after });
        }
        time::sleep(time::MILLISECOND);
    }
}

/// Pages by which the heap may have grown: less than a process of the storm has.
const HEAP: u64 = 16;

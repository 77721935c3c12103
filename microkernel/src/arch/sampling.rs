//! The sources of samples that come by NMI from a timer: docs/profiler.md, "Sources".

use super::devices::Registers;
use super::machine::machine;
use super::percpu::PerCpu;
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU64, Ordering};
use ipc::abi::profile::Source;
use kcore::apic::hpet::{self, COUNTS_MAX, HpetBus, OneShot};
use kcore::apic::pace::{PERIOD, Pace};
use kcore::base::cpu::CpuId;
use kcore::hardware::Hardware;
use kcore::profile::{SampleSource, Trigger};

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// With two CPUs or more: each CPU's timer, set for times of its own, sends the next CPU an NMI.
#[derive(Debug)]
pub struct Neighbours;

impl SampleSource for Neighbours {
    fn id(&self) -> Source {
        Source::TimerNmi
    }
    fn frequency(&self) -> u64 {
        SECOND / PERIOD
    }
    // An interval is a half to three halves of a period. At 10 a second the longest is 150 ms, so that the longest window, 2 s,
    // has a dozen samples of each CPU. At 100,000 the shortest is 5 us: some times what a sample and the interrupt that asks for
    // the next one take, 1200 instructions together (docs/benchmarks.md), so that most that are due can be taken.
    fn frequencies(&self) -> RangeInclusive<u64> {
        10..=100_000
    }
    fn trigger(&self) -> Trigger {
        Trigger::Neighbour
    }
    fn arm(&self, cpu: CpuId, frequency: u64) {
        if let Some(cpu) = PerCpu::of(cpu) {
            cpu.timer
                .start_sampling(machine().now(), SECOND / frequency);
            machine().arm(cpu);
        }
    }
    fn disarm(&self, cpu: CpuId) {
        if let Some(cpu) = PerCpu::of(cpu) {
            cpu.timer.stop_sampling();
        }
    }
}

/// With one CPU: a timer of the HPET, which interrupts by a line that the I/O APIC turns into an NMI.
#[derive(Debug)]
pub struct Alone {
    /// The timer.
    pub hpet: OneShot<Hpet>,
    pace: Pace,
    /// Counts of a period.
    period: AtomicU64,
}

impl Alone {
    /// Of this timer.
    #[must_use]
    pub const fn new(hpet: OneShot<Hpet>) -> Self {
        Self {
            hpet,
            pace: Pace::new(0),
            period: AtomicU64::new(0),
        }
    }
    fn period(&self) -> u64 {
        self.period.load(Ordering::Relaxed)
    }
    /// Asks for the next NMI, and says how many samples were due since the last one and not taken: part of the sampling path.
    #[inline]
    pub fn next(&self) -> u64 {
        let period = self.period();
        let late = u64::from(self.hpet.next(self.pace.interval(period) as u32));
        // One that waited for a division each time would take longer.
        if late < period { 0 } else { late / period }
    }
}

/// Periods after which a timer that has not interrupted has missed its time: it compares for equality, and was set when that had
/// passed.
const LOST: u64 = 5;

impl SampleSource for Alone {
    fn id(&self) -> Source {
        Source::TimerNmi
    }
    fn frequency(&self) -> u64 {
        SECOND / PERIOD
    }
    // So far apart that a sample ends long before the next, even where reaching the timer is slow.
    fn frequencies(&self) -> RangeInclusive<u64> {
        10..=10_000
    }
    fn trigger(&self) -> Trigger {
        Trigger::Own
    }
    fn arm(&self, _: CpuId, frequency: u64) {
        // An interval has at least half of it, and at most one and a half.
        let period = self.hpet.counts(SECOND / frequency);
        let period = period.clamp(2, COUNTS_MAX * 2 / 3);
        self.period.store(period, Ordering::Relaxed);
        self.hpet.start(self.pace.interval(period));
    }
    fn disarm(&self, _: CpuId) {
        self.hpet.stop();
    }
    fn is_lost(&self, _: CpuId) -> bool {
        let late = self.hpet.passed().map_or(0, u64::from);
        late > LOST * self.period()
    }
}

/// As many registers as an HPET has at most.
pub type HpetRegisters = Registers<{ hpet::BYTES }>;

/// The HPET's registers.
#[derive(Clone, Copy, Debug)]
pub struct Hpet(pub HpetRegisters);

impl HpetBus for Hpet {
    fn read(&self, offset: u64) -> u32 {
        self.0.read(offset)
    }
    fn write(&self, offset: u64, value: u32) {
        self.0.write(offset, value);
    }
}

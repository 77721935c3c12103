//! The proof that a CPU's counter is what CPUID claims. Each CPU does it once, for itself.
//!
//! It must **count**: hypervisors exist whose counters read as zero, or as what was written last. It must do so at a **rate** that
//! a processor can have. Its **interrupt** must arrive, and the overflow must be **told** until it is acknowledged. And no access may
//! fault, or if it does, that is the answer. All waits are bounded by the TSC, and each looks at least twice, so that a CPU that was kept from running in between is not judged by that.
//!
//! A guest's counter may stand still while its hypervisor works, for one while it serves an access to the counter. So the rate is
//! measured between two reads that are far apart compared with what a read takes, and again if the CPU was kept from running
//! meanwhile.

use super::bus::{GeneralProtection, MonitorBus};
use super::claims::Claims;
use super::counter::Counter;
use super::msr::Msr;
use ipc::abi::monitor::{MONITOR_REGISTERS, MonitorInfo, Verdict};
use zerocopy::FromZeros;

/// Microseconds in which it must have counted: thousands of cycles.
const COUNTS_WITHIN: u64 = 10;
/// Microseconds over which its rate is measured: what a hypervisor takes for a read is little of it.
const MEASURED_OVER: u64 = 100;
/// Microseconds that a measurement takes only if the CPU was kept from running.
const DISTURBED: u64 = 150;
/// Measurements, of which the last counts, disturbed or not.
const ATTEMPTS: u32 = 10;
/// Microseconds in which its interrupt must arrive.
const ARRIVES_WITHIN: u64 = 1_000;
/// Microseconds after which its interrupt is due: little of that time, so that it may be late by many times as much.
const DUE_AFTER: u64 = 61;
/// How often the counter is read meanwhile: some hypervisors look at it only then. Not often, since it may stand still meanwhile.
const LOOKS: u64 = 8;
/// Most TSC ticks to a cycle: a processor that saves power runs at a fraction of the TSC's rate.
const TICKS_MAX: u64 = 16;
/// Most cycles to a TSC tick: one that runs faster than its nominal rate does so by less than that.
const CYCLES_MAX: u64 = 8;

const SECOND: u64 = 1_000_000;

/// What the proof needs besides the registers.
pub trait Bench: MonitorBus<Fault = GeneralProtection> {
    /// The time-stamp counter.
    fn tsc(&self) -> u64;
    /// From here on an NMI on this CPU is the counter's, and so is one behind it: some processors send one more than they should.
    /// False if one is on its way already.
    fn expect(&self) -> bool;
    /// Whether the first has come.
    fn has_arrived(&self) -> bool;
    /// It did not, and is not waited for any longer. Both may still come.
    fn give_up(&self);
}

/// What a CPU's proof found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// For who asks.
    pub info: MonitorInfo,
    /// The counter of cycles, if it works, stopped.
    pub counter: Option<Counter>,
}

/// Proves the counter of this CPU, whose claims these are, with interrupts off. The TSC runs at `tsc_hz`. It takes little more than
/// a millisecond at most; nothing counts afterwards.
pub fn prove<B: Bench>(claims: &Claims, bench: &B, tsc_hz: u64) -> Finding {
    let mut info = MonitorInfo {
        interface: claims.interface as u64,
        version: claims.version.into(),
        counters: claims.counters.into(),
        counter_bits: claims.counter_bits.into(),
        fixed_counters: claims.fixed.into(),
        fixed_bits: claims.fixed_bits.into(),
        ..MonitorInfo::new_zeroed()
    };
    let Some(counter) = claims.cycles() else {
        return Finding {
            info,
            counter: None,
        };
    };
    let proof = Proof {
        bench,
        counter,
        tsc_hz,
    };
    let verdict = match proof.run(claims, &mut info) {
        Ok(()) => Verdict::Works,
        Err(verdict) => verdict,
    };
    if info.register_count == 0 {
        // It did not come to that while it counted.
        proof.dump(claims, &mut info);
    }
    if verdict != Verdict::Works {
        // What faults cannot be stopped, either.
        let _ = counter.stop(bench);
    }
    info.verdict = verdict as u64;
    Finding {
        info,
        counter: (verdict == Verdict::Works).then_some(counter),
    }
}

struct Proof<'a, B> {
    bench: &'a B,
    counter: Counter,
    tsc_hz: u64,
}

impl From<GeneralProtection> for Verdict {
    fn from(_: GeneralProtection) -> Self {
        Self::Faults
    }
}

impl<B: Bench> Proof<'_, B> {
    fn run(&self, claims: &Claims, info: &mut MonitorInfo) -> Result<(), Verdict> {
        self.counter.claim(self.bench)?;
        self.counts()?;
        info.hz = self.rate()?;
        self.dump(claims, info);
        self.counter.stop(self.bench)?;
        self.interrupts(info.hz)
    }

    const fn ticks(&self, micros: u64) -> u64 {
        (self.tsc_hz as u128 * micros as u128 / SECOND as u128) as u64
    }

    /// That it counts.
    fn counts(&self) -> Result<(), Verdict> {
        let (bench, counter) = (self.bench, &self.counter);
        counter.count(bench)?;
        let begin = bench.tsc();
        let first = counter.read(bench)?;
        while counter.read(bench)? == first {
            if bench.tsc().wrapping_sub(begin) >= self.ticks(COUNTS_WITHIN) {
                return Err(Verdict::StandsStill);
            }
        }
        Ok(())
    }

    /// How fast it counts, in cycles a second.
    fn rate(&self) -> Result<u64, Verdict> {
        let mut measured = self.measure()?;
        for _ in 1..ATTEMPTS {
            if measured.1 <= self.ticks(DISTURBED) {
                break;
            }
            measured = self.measure()?;
        }
        let [counted, passed] = [measured.0, measured.1].map(u128::from);
        let plausible =
            counted * u128::from(TICKS_MAX) >= passed && counted <= passed * u128::from(CYCLES_MAX);
        if !plausible {
            return Err(Verdict::Implausible);
        }
        Ok((counted * u128::from(self.tsc_hz) / passed.max(1)) as u64)
    }

    /// Cycles counted, and TSC ticks that passed meanwhile.
    fn measure(&self) -> Result<(u64, u64), GeneralProtection> {
        let (bench, counter) = (self.bench, &self.counter);
        let first = counter.read(bench)?;
        let begin = bench.tsc();
        let passed = || bench.tsc().wrapping_sub(begin);
        while passed() < self.ticks(MEASURED_OVER) {
            core::hint::spin_loop();
        }
        let counted = counter.counted(first, counter.read(bench)?);
        Ok((counted, passed()))
    }

    /// That its interrupt arrives.
    fn interrupts(&self, hz: u64) -> Result<(), Verdict> {
        let (bench, counter) = (self.bench, &self.counter);
        if !bench.expect() {
            return Err(Verdict::Silent);
        }
        let arrived = self.arrives(hz);
        if arrived != Ok(true) {
            // Counting on, it could interrupt later.
            let stopped = counter.stop(bench);
            bench.give_up();
            stopped?;
        }
        match arrived? {
            true => self.tells(),
            false => Err(Verdict::Silent),
        }
    }

    /// That it tells what its interrupt came for, and no longer once that is acknowledged: by the accesses of the sampling path, which
    /// must not fault. An overflow that is never told is a foreign NMI, and one that is told for ever makes every foreign NMI a sample.
    fn tells(&self) -> Result<(), Verdict> {
        let (bench, counter) = (self.bench, &self.counter);
        let first = counter.enter(bench)?;
        counter.leave(bench, Some(counter.period_max()))?;
        let again = counter.has_overflowed(bench)?;
        counter.stop(bench)?;
        match (first, again) {
            (true, false) => Ok(()),
            _ => Err(Verdict::Misreports),
        }
    }

    fn arrives(&self, hz: u64) -> Result<bool, GeneralProtection> {
        let (bench, counter) = (self.bench, &self.counter);
        let period = (hz / SECOND * DUE_AFTER).clamp(1, counter.period_max());
        let begin = bench.tsc();
        let mut look = ARRIVES_WITHIN / LOOKS;
        counter.start(bench, period)?;
        loop {
            // The time is taken before the look: an NMI that waited for this CPU to run again is there by now.
            let passed = bench.tsc().wrapping_sub(begin);
            if bench.has_arrived() {
                return Ok(true);
            }
            if passed > self.ticks(look) {
                counter.read(bench)?;
                look += ARRIVES_WITHIN / LOOKS;
            }
            if passed > self.ticks(ARRIVES_WITHIN) {
                return Ok(bench.has_arrived());
            }
            core::hint::spin_loop();
        }
    }

    /// Reads the registers, for who wants to see them; those that fault are left out.
    fn dump(&self, claims: &Claims, info: &mut MonitorInfo) {
        let capabilities = claims.has_capabilities.then_some(Msr::CAPABILITIES);
        let debug = claims.may_freeze.then_some(Msr::DEBUG_CONTROL);
        let all = self.counter.registers().chain(capabilities).chain(debug);
        let values = all.filter_map(|msr| Some([msr.number().into(), self.bench.read(msr).ok()?]));
        for (slot, read) in info.registers.iter_mut().zip(values) {
            *slot = read;
            info.register_count += 1;
        }
    }
}

/// A counter's, the shared ones, and two that only some processors have.
const _: () = assert!(MONITOR_REGISTERS >= 6);

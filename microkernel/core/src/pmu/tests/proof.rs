//! The proof: what it says of good counters and of each kind of bad one, and that it ends.

use crate::pmu::fake::{FakeMonitor, Mode, claims_of_all};
use crate::pmu::{Bench, Claims, Finding, GeneralProtection, MonitorBus, Msr, prove};
use ipc::abi::monitor::{Interface, Verdict};
use std::cell::Cell;

/// TSC ticks in a second.
const HZ: u64 = 2_000_000_000;

/// A CPU on which every access takes so many ticks, while so many cycles pass for so many ticks.
struct Cpu {
    monitor: FakeMonitor,
    access: u64,
    cycles: u64,
    ticks: u64,
    tsc: Cell<u64>,
    expects: Cell<bool>,
    gave_up: Cell<bool>,
    /// NMIs that are ours though they are not waited for.
    owed: Cell<u32>,
    /// Accesses in which the counter does not move yet.
    sluggish: Cell<u32>,
    /// The interrupt comes a second time, as late as the first.
    twice: Cell<bool>,
    /// Ticks that an interrupt takes.
    latency: u64,
    due: Cell<Option<u64>>,
    /// Ticks of an access in which nothing is counted; and when ten milliseconds are taken away.
    stolen_by_access: u64,
    stolen_at: Cell<Option<u64>>,
}

impl Cpu {
    fn new(claims: Claims, mode: Mode) -> Self {
        Self {
            monitor: FakeMonitor::new(claims, mode),
            access: 60,
            cycles: 20,
            ticks: 16,
            tsc: Cell::new(12_345),
            expects: Cell::new(false),
            gave_up: Cell::new(false),
            owed: Cell::new(0),
            sluggish: Cell::new(0),
            twice: Cell::new(false),
            latency: 500,
            due: Cell::new(None),
            stolen_by_access: 0,
            stolen_at: Cell::new(None),
        }
    }

    fn steal(&self, ticks: u64) {
        self.tsc.set(self.tsc.get() + ticks);
    }

    fn pass(&self, ticks: u64) {
        if self.stolen_at.get().is_some_and(|at| at <= self.tsc.get()) {
            self.stolen_at.set(None);
            self.steal(HZ / 100);
        }
        self.tsc.set(self.tsc.get() + ticks);
        match self.sluggish.get().checked_sub(1) {
            Some(left) if self.monitor.counts() => self.sluggish.set(left),
            _ => self.monitor.advance(ticks * self.cycles / self.ticks),
        }
        if self.monitor.on_their_way.take() > 0 {
            self.due.set(Some(self.tsc.get() + self.latency));
        }
        if self.due.get().is_some_and(|due| due <= self.tsc.get()) {
            if !self.expects.take() {
                let owed = self.owed.get().checked_sub(1);
                self.owed.set(owed.expect("foreign"));
            }
            let again = self.twice.take().then(|| self.tsc.get() + self.latency);
            self.due.set(again);
        }
    }
}

impl MonitorBus for Cpu {
    type Fault = GeneralProtection;

    fn read(&self, msr: Msr) -> Result<u64, GeneralProtection> {
        self.pass(self.access);
        let value = self.monitor.read(msr);
        self.steal(self.stolen_by_access);
        self.pass(self.access);
        value
    }
    fn write(&self, msr: Msr, value: u64) -> Result<(), GeneralProtection> {
        self.pass(self.access);
        let written = self.monitor.write(msr, value);
        self.pass(self.access);
        written
    }
    fn deliver(&self, unmasked: bool) {
        self.monitor.deliver(unmasked);
    }
}

impl Bench for Cpu {
    fn tsc(&self) -> u64 {
        self.pass(16);
        self.tsc.get()
    }
    fn expect(&self) -> bool {
        self.owed.set(self.owed.get() + 1);
        !self.expects.replace(true)
    }
    fn has_arrived(&self) -> bool {
        !self.expects.get()
    }
    fn give_up(&self) {
        self.owed.set(self.owed.get() + 1);
        self.expects.set(false);
        self.gave_up.set(true);
    }
}

fn verdict(finding: &Finding) -> Verdict {
    Verdict::from_raw(finding.info.verdict).unwrap()
}

fn ends_off(cpu: &Cpu) {
    assert!(!cpu.monitor.unmasked.get() && !cpu.expects.get());
    if !matches!(cpu.monitor.mode, Mode::Faults | Mode::Swallows) {
        assert!(!cpu.monitor.is_running() && !cpu.monitor.counts());
    }
}

#[test]
fn a_good_counter_works_and_its_rate_is_measured() {
    for claims in claims_of_all() {
        for access in [20, 60, 3_000] {
            let mut cpu = Cpu::new(claims, Mode::Good);
            cpu.access = access;
            let begin = cpu.tsc.get();
            let finding = prove(&claims, &cpu, HZ);
            assert_eq!(verdict(&finding), Verdict::Works, "{claims:?}");
            assert_eq!(finding.counter, claims.cycles());
            let rate = HZ * 20 / 16;
            assert!(
                finding.info.hz.abs_diff(rate) < rate / 100,
                "{}",
                finding.info.hz
            );
            let registers = &finding.info.registers[..finding.info.register_count as usize];
            assert!(registers.len() >= 2);
            // They are those of a counter that counts.
            let controls =
                [Msr::INTEL_CONTROL, Msr::AMD_CONTROL].map(|msr| u64::from(msr.number()));
            let control = registers
                .iter()
                .find(|[number, _]| controls.contains(number));
            assert!(
                control.is_none_or(|[_, value]| *value != 0),
                "{registers:x?}"
            );
            if claims.may_freeze {
                assert_eq!(cpu.monitor.register(Msr::DEBUG_CONTROL) >> 12 & 1, 0);
            }
            if claims.interface == Interface::AmdCore {
                let firmwares = cpu.monitor.register(Msr::amd_select(5));
                assert_eq!(firmwares, 0, "what the firmware had counted is off");
            }
            // 61 us to the interrupt, 100 us before, and the accesses.
            let micros = (cpu.tsc.get() - begin) / (HZ / 1_000_000);
            assert!(micros < 180 + access / 10, "{micros}");
            ends_off(&cpu);
        }
    }
}

#[test]
fn each_liar_is_told_by_what_it_does_not_do() {
    for claims in claims_of_all() {
        for (mode, expected) in [
            (Mode::Swallows, Verdict::StandsStill),
            (Mode::Latches, Verdict::StandsStill),
            (Mode::Faults, Verdict::Faults),
            (Mode::Silent, Verdict::Silent),
            (Mode::Blank, Verdict::Misreports),
            (Mode::Stuck, Verdict::Misreports),
        ] {
            let cpu = Cpu::new(claims, mode);
            let begin = cpu.tsc.get();
            let finding = prove(&claims, &cpu, HZ);
            assert_eq!(verdict(&finding), expected, "{claims:?} {mode:?}");
            assert_eq!(finding.counter, None);
            // What it was found out by can be looked at.
            let is_shown = finding.info.register_count >= 2;
            assert_eq!(is_shown, expected != Verdict::Faults, "{mode:?}");
            assert_eq!(cpu.gave_up.get(), expected == Verdict::Silent);
            let micros = (cpu.tsc.get() - begin) / (HZ / 1_000_000);
            assert!(micros < 1_120, "{micros}");
            ends_off(&cpu);
        }
    }
}

#[test]
fn a_counter_has_until_the_first_read_behind_its_bound_to_move() {
    for claims in claims_of_all() {
        // Two passes for an access of 60 ticks each; the bound is 20,000.
        for (passes, expected) in [(100, Verdict::Works), (1_000, Verdict::StandsStill)] {
            let cpu = Cpu::new(claims, Mode::Good);
            cpu.sluggish.set(passes);
            assert_eq!(verdict(&prove(&claims, &cpu, HZ)), expected, "{claims:?}");
        }
    }
}

#[test]
fn a_rate_that_cannot_be_is_not_believed() {
    let [claims, ..] = claims_of_all();
    for (cycles, ticks, expected) in [
        (1, 32, Verdict::Implausible),
        (1, 17, Verdict::Implausible),
        (1, 15, Verdict::Works),
        (120, 16, Verdict::Works),
        (137, 16, Verdict::Implausible),
        (16_000, 16, Verdict::Implausible),
    ] {
        let mut cpu = Cpu::new(claims, Mode::Good);
        (cpu.cycles, cpu.ticks) = (cycles, ticks);
        cpu.access = 400;
        assert_eq!(verdict(&prove(&claims, &cpu, HZ)), expected, "{cycles}");
        ends_off(&cpu);
    }
}

/// A hypervisor that counts nothing while it serves an access, and for a while has the CPU do something else.
#[test]
fn time_that_is_not_the_guests_own_does_not_lower_the_rate() {
    for claims in claims_of_all() {
        let mut cpu = Cpu::new(claims, Mode::Good);
        cpu.stolen_by_access = 3_000;
        cpu.stolen_at = Cell::new(Some(12_345 + 200_000));
        let finding = prove(&claims, &cpu, HZ);
        assert_eq!(verdict(&finding), Verdict::Works, "{claims:?}");
        let rate = HZ * 20 / 16;
        assert!(
            finding.info.hz.abs_diff(rate) < rate / 20,
            "{}",
            finding.info.hz
        );
        assert_eq!(cpu.stolen_at.get(), None);
    }
}

#[test]
fn a_slow_interrupt_is_waited_for_as_long_as_is_said_and_no_longer() {
    let [claims, ..] = claims_of_all();
    for (micros, expected) in [(900, Verdict::Works), (1_100, Verdict::Silent)] {
        let mut cpu = Cpu::new(claims, Mode::Good);
        cpu.latency = micros * (HZ / 1_000_000);
        assert_eq!(verdict(&prove(&claims, &cpu, HZ)), expected, "{micros}");
        // A late one comes all the same.
        cpu.pass(cpu.latency);
        assert_eq!(cpu.due.get(), None);
    }
    // An access takes longer than the whole wait, as where a hypervisor has the CPU do something else.
    let mut cpu = Cpu::new(claims, Mode::Good);
    cpu.access = HZ / 500;
    assert_eq!(verdict(&prove(&claims, &cpu, HZ)), Verdict::Works);
}

/// In time or not, and during the proof or after it.
#[test]
fn an_interrupt_that_comes_twice_is_no_foreign_one() {
    for claims in claims_of_all() {
        for (micros, expected) in [(1, Verdict::Works), (1_100, Verdict::Silent)] {
            let mut cpu = Cpu::new(claims, Mode::Good);
            cpu.latency = micros * (HZ / 1_000_000);
            cpu.twice.set(true);
            assert_eq!(verdict(&prove(&claims, &cpu, HZ)), expected);
            (0..2).for_each(|_| cpu.pass(cpu.latency));
            assert_eq!((cpu.due.get(), cpu.owed.get()), (None, 0));
        }
    }
}

#[test]
fn a_cpu_that_claims_nothing_is_not_touched() {
    let cpu = Cpu::new(Claims::NONE, Mode::Good);
    let finding = prove(&Claims::NONE, &cpu, HZ);
    assert_eq!(finding.info.interface, Interface::None as u64);
    assert_eq!(verdict(&finding), Verdict::Untried);
    assert!(cpu.monitor.log.borrow().is_empty());
}

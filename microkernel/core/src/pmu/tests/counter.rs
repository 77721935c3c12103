//! What is written to which register, and in which order.

use crate::pmu::fake::{Access, FakeMonitor, Mode, STRANGE_STATUS, claims_of_all};
use crate::pmu::{Claims, Counter, GeneralProtection, MonitorBus, Msr};
use Access::{Deliver, Read, Write};
use proptest::prelude::*;

const PERIOD: u64 = 1_000_003;

/// A monitor whose counter runs, and what was done since.
fn running(claims: Claims) -> (FakeMonitor, Counter) {
    let monitor = FakeMonitor::new(claims, Mode::Good);
    let counter = claims.cycles().unwrap();
    counter.claim(&monitor).unwrap();
    counter.start(&monitor, PERIOD).unwrap();
    monitor.log.borrow_mut().clear();
    (monitor, counter)
}

fn log(monitor: &FakeMonitor) -> Vec<Access> {
    monitor.log.take()
}

#[test]
fn an_interrupt_stops_acknowledges_reloads_unmasks_and_goes_on() {
    let [intel, v5, amd, v2, old] = claims_of_all();
    let fixed = Msr::fixed_counter(1);
    for (claims, bits) in [(intel, 48), (v5, 40), (old, 40)] {
        let (monitor, counter) = running(claims);
        monitor.advance(PERIOD);
        assert_eq!(monitor.on_their_way.get(), 1);
        assert!(counter.enter(&monitor).unwrap());
        counter.leave(&monitor, Some(PERIOD)).unwrap();
        let reload = (1 << bits) - PERIOD;
        assert_eq!(
            log(&monitor),
            [
                Write(Msr::INTEL_CONTROL, 0),
                Read(Msr::INTEL_STATUS),
                Write(Msr::INTEL_ACKNOWLEDGE, 1 << 33),
                Write(fixed, reload),
                Deliver(true),
                Write(Msr::INTEL_CONTROL, 1 << 33),
            ]
        );
        // One that is not ours changes nothing.
        assert!(!counter.enter(&monitor).unwrap());
        counter.leave(&monitor, None).unwrap();
        assert_eq!(
            log(&monitor),
            [
                Write(Msr::INTEL_CONTROL, 0),
                Read(Msr::INTEL_STATUS),
                Deliver(true),
                Write(Msr::INTEL_CONTROL, 1 << 33),
            ]
        );
        assert!(monitor.is_running());
    }
    let (monitor, counter) = running(v2);
    monitor.advance(PERIOD);
    assert!(counter.enter(&monitor).unwrap());
    counter.leave(&monitor, Some(PERIOD)).unwrap();
    assert_eq!(
        log(&monitor),
        [
            Write(Msr::AMD_CONTROL, 0),
            Read(Msr::AMD_STATUS),
            Write(Msr::AMD_ACKNOWLEDGE, 1),
            Write(Msr::amd_counter(0), (1 << 48) - PERIOD),
            Deliver(true),
            Write(Msr::AMD_CONTROL, 1),
        ]
    );
    let (monitor, counter) = running(amd);
    monitor.advance(PERIOD);
    assert!(counter.enter(&monitor).unwrap());
    counter.leave(&monitor, Some(PERIOD)).unwrap();
    assert_eq!(
        log(&monitor),
        [
            Read(Msr::amd_counter(0)),
            Write(Msr::amd_counter(0), (1 << 48) - PERIOD),
            Deliver(true),
        ]
    );
}

/// A hypervisor takes the count over when it sees a counter enabled, and one that is enabled late has counted nothing before.
#[test]
fn a_start_enables_last_and_a_stop_first_of_all_disables() {
    let [intel, _, amd, v2, _] = claims_of_all();
    let select = |msr| Write(msr, 0x76 | 0b11 << 16 | 1 << 20 | 1 << 22);
    let load = Write(Msr::amd_counter(0), (1 << 48) - PERIOD);
    let cases = [
        (
            intel,
            vec![
                Write(Msr::INTEL_CONTROL, 0),
                Write(Msr::INTEL_ACKNOWLEDGE, 0b111 << 32 | 0b1111 | 1 << 59),
                Write(Msr::fixed_counter(1), (1 << 48) - PERIOD),
                Deliver(true),
                Write(Msr::FIXED_CONTROL, 0b1011 << 4),
                Write(Msr::INTEL_CONTROL, 1 << 33),
            ],
            vec![
                Write(Msr::FIXED_CONTROL, 0),
                Write(Msr::INTEL_CONTROL, 0),
                Write(Msr::INTEL_ACKNOWLEDGE, 0b111 << 32 | 0b1111 | 1 << 59),
                Deliver(false),
            ],
        ),
        (
            v2,
            vec![
                Write(Msr::AMD_CONTROL, 0),
                Write(Msr::AMD_ACKNOWLEDGE, 0b11_1111 | 1 << 59),
                load,
                Deliver(true),
                select(Msr::amd_select(0)),
                Write(Msr::AMD_CONTROL, 1),
            ],
            vec![
                Write(Msr::amd_select(0), 0),
                Write(Msr::AMD_CONTROL, 0),
                Write(Msr::AMD_ACKNOWLEDGE, 0b11_1111 | 1 << 59),
                Deliver(false),
            ],
        ),
        (
            amd,
            vec![load, Deliver(true), select(Msr::amd_select(0))],
            vec![
                Write(Msr::amd_select(0), 0),
                Write(Msr::amd_counter(0), 1 << 47 | 1),
                Deliver(false),
            ],
        ),
    ];
    for (claims, started, stopped) in cases {
        let (monitor, counter) = running(claims);
        counter.start(&monitor, PERIOD).unwrap();
        assert_eq!(log(&monitor), started);
        counter.stop(&monitor).unwrap();
        assert_eq!(log(&monitor), stopped);
    }
}

#[test]
fn what_firmware_left_counting_set_or_frozen_is_undone() {
    for claims in claims_of_all() {
        let monitor = FakeMonitor::new(claims, Mode::Good);
        monitor.unmasked.set(true);
        let counter = claims.cycles().unwrap();
        counter.claim(&monitor).unwrap();
        assert!(!monitor.unmasked.get() && !monitor.has_overflowed());
        counter.count(&monitor).unwrap();
        let before = counter.read(&monitor).unwrap();
        monitor.advance(5);
        let after = counter.read(&monitor).unwrap();
        assert_eq!(counter.counted(before, after), 5, "{claims:?}");
        // An interrupt leaves it counting: its handler says when it does.
        counter.start(&monitor, PERIOD).unwrap();
        monitor.advance(PERIOD + 7);
        assert_eq!(counter.read(&monitor).unwrap(), 7, "{claims:?}");
    }
}

#[test]
fn the_old_counters_of_amd_fault_and_are_not_touched() {
    let [.., amd, v2, _] = claims_of_all();
    for claims in [amd, v2] {
        let (monitor, counter) = running(claims);
        for index in 0..8 {
            let old = Msr::amd_old(index);
            assert_eq!(monitor.read(old), Err(GeneralProtection));
            assert_eq!(monitor.write(old, 0), Err(GeneralProtection));
        }
        log(&monitor);
        counter.claim(&monitor).unwrap();
        counter.start(&monitor, PERIOD).unwrap();
        monitor.advance(PERIOD);
        let overflowed = counter.enter(&monitor).unwrap();
        counter
            .leave(&monitor, overflowed.then_some(PERIOD))
            .unwrap();
        counter.stop(&monitor).unwrap();
        let is_old = |access: &Access| match access {
            Read(msr) | Write(msr, _) => (0xc001_0000..0xc001_0008).contains(&msr.number()),
            Deliver(_) => false,
        };
        assert!(!log(&monitor).iter().any(is_old));
    }
}

#[test]
fn both_modes_are_counted_and_nothing_else_runs() {
    for claims in claims_of_all() {
        let (monitor, counter) = running(claims);
        assert!(monitor.is_running(), "{claims:?}");
        let [select, ..] = *counter.registers().collect::<Vec<_>>() else {
            panic!("there are some");
        };
        let selected = monitor.register(select);
        if claims.fixed != 0 {
            // Neither AnyThread nor another fixed counter.
            assert_eq!(selected, 0b1011 << 4);
            assert_eq!(monitor.register(Msr::INTEL_CONTROL), 1 << 33);
        } else {
            assert_eq!(selected, 0x76 | 0b11 << 16 | 1 << 20 | 1 << 22);
        }
        if claims.version == 1 {
            // What the firmware had counted is off.
            assert_eq!(monitor.register(Msr::amd_select(5)), 0);
        }
        if claims.may_freeze {
            let left = monitor.register(Msr::DEBUG_CONTROL);
            assert_eq!(left, 1 << 14, "freezing is off, the rest as it was");
        }
        if claims.version >= 2 {
            assert_eq!(monitor.status(), STRANGE_STATUS, "of others");
        }
        counter.stop(&monitor).unwrap();
        monitor.advance(1 << 40);
        assert!(
            !monitor.is_running() && !monitor.has_overflowed(),
            "{claims:?}"
        );
        assert!(!monitor.unmasked.get());
    }
}

#[test]
fn programmable_counters_are_written_as_wide_as_they_can_be() {
    let [intel, ..] = claims_of_all();
    let without = Claims {
        has_capabilities: false,
        may_freeze: false,
        ..intel
    };
    for (claims, capabilities, full_width) in [
        (without, 0, false),
        (intel, !(1 << 13), false),
        (intel, 1 << 13, true),
    ] {
        let monitor = FakeMonitor::new(claims, Mode::Good);
        monitor.capabilities.set(capabilities);
        assert_eq!(claims.full_width(&monitor), Ok(full_width));
        let counter = Counter::intel(&claims, 2, 0xc0, 1, full_width);
        counter.claim(&monitor).unwrap();
        let longest = counter.period_max();
        assert_eq!(
            longest,
            if full_width {
                (1 << 47) - 1
            } else {
                (1 << 31) - 1
            }
        );
        for period in [1, PERIOD, longest] {
            counter.start(&monitor, period).unwrap();
            let stands = counter.read(&monitor).unwrap();
            assert_eq!(counter.counted(stands, 0), period, "{full_width}");
        }
        let select = monitor.register(Msr::intel_select(2));
        assert_eq!(select, 0x1c0 | 0b11 << 16 | 1 << 20 | 1 << 22);
        assert_eq!(monitor.register(Msr::INTEL_CONTROL), 1 << 2);
    }
    let [.., amd, _] = claims_of_all();
    let monitor = FakeMonitor::new(amd, Mode::Good);
    let counter = Counter::amd_core(&amd, 3, 0x1c7, 2);
    counter.claim(&monitor).unwrap();
    counter.start(&monitor, PERIOD).unwrap();
    let select = monitor.register(Msr::amd_select(3));
    assert_eq!(select, 1 << 32 | 0x2c7 | 0b11 << 16 | 1 << 20 | 1 << 22);
    assert_eq!(monitor.register(Msr::AMD_CONTROL), 1 << 3);
}

#[test]
fn an_overflow_while_the_entry_is_masked_is_found() {
    for claims in claims_of_all() {
        let (monitor, counter) = running(claims);
        monitor.unmasked.set(false);
        monitor.advance(PERIOD + 5);
        assert_eq!(monitor.on_their_way.get(), 0);
        assert!(counter.has_overflowed(&monitor).unwrap());
        assert_eq!(counter.read(&monitor).unwrap(), 5);
    }
}

proptest! {
    /// Whatever the period is, up to the longest, the counter overflows after exactly that many.
    #[test]
    fn a_period_is_exact(which in 0usize..5, period in prop_oneof![1u64..1 << 39, Just(u64::MAX)]) {
        let claims = claims_of_all()[which];
        let (monitor, counter) = running(claims);
        let period = period.min(counter.period_max());
        counter.start(&monitor, period).unwrap();
        prop_assert!(!counter.has_overflowed(&monitor).unwrap());
        monitor.advance(period - 1);
        prop_assert!(!counter.has_overflowed(&monitor).unwrap());
        monitor.advance(1);
        prop_assert!(counter.has_overflowed(&monitor).unwrap());
        prop_assert_eq!(monitor.on_their_way.get(), 1);
    }
}

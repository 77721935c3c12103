//! Each interface is programmed as a driver would, and each mode is seen to lie in its way and no other.

use super::*;
use proptest::prelude::*;

const VECTOR: u32 = DELIVER_NMI;
const END: u64 = 1 << 48;

fn pmu(setup: &str) -> Pmu {
    Pmu::new(Setup::parse(setup).unwrap(), 0)
}

/// The registers of one counter for each interface: what starts it, its value, and its status with the bit.
struct Driver {
    name: &'static str,
    start: &'static [(u32, u64)],
    value: u32,
    status: Option<(u32, u64)>,
    acknowledge: u32,
}

const DRIVERS: [Driver; 3] = [
    Driver {
        name: "intel",
        start: &[(0x1d9, 0), (0x38d, 0xb0), (0x38f, 1 << 33)],
        value: 0x30a,
        status: Some((0x38e, 1 << 33)),
        acknowledge: 0x390,
    },
    Driver {
        name: "amd",
        start: &[(0xc001_0200, 0x53_0076)],
        value: 0xc001_0201,
        status: None,
        acknowledge: 0,
    },
    Driver {
        name: "amd2",
        start: &[(0xc001_0200, 0x53_0076), (0xc000_0301, 1)],
        value: 0xc001_0201,
        status: Some((0xc000_0300, 1)),
        acknowledge: 0xc000_0302,
    },
];

impl Driver {
    fn started(&self, mode: &str, period: u64) -> Pmu {
        let mut pmu = pmu(&format!("{}:{mode}", self.name));
        pmu.set_vector(VECTOR);
        pmu.write(self.value, END - period).unwrap();
        for &(register, value) in self.start {
            pmu.write(register, value).unwrap();
        }
        pmu
    }

    /// What a handler does, then time until the counter overflows again.
    fn again(&self, pmu: &mut Pmu, period: u64) -> Happened {
        if let Some((_, bit)) = self.status {
            pmu.write(self.acknowledge, bit).unwrap();
        }
        pmu.write(self.value, END - period).unwrap();
        pmu.set_vector(VECTOR);
        let until = pmu.until_interrupt(false).unwrap();
        pmu.advance(until, false)
    }
}

#[test]
fn a_good_counter_counts_and_interrupts_once_at_its_end() {
    for driver in DRIVERS {
        let mut pmu = driver.started("good", 1000);
        assert_eq!(pmu.until_interrupt(false), Some(1000));
        assert_eq!(pmu.advance(999, false), Happened::default());
        assert_eq!(pmu.advance(500, true), Happened::default(), "halted");
        assert_eq!(pmu.read(driver.value), Ok(END - 1));
        assert_eq!(pmu.advance(6, false).overflow, Some(Delivery::Nmi));
        assert_eq!(pmu.read(driver.value), Ok(5));
        if let Some((status, bit)) = driver.status {
            assert_eq!(pmu.read(status).unwrap() & bit, bit);
            pmu.write(driver.acknowledge, bit).unwrap();
            assert_eq!(pmu.read(status).unwrap() & bit, 0);
            // What firmware left.
            assert_ne!(pmu.read(status), Ok(0));
        }
        assert_eq!(pmu.advance(1000, false), Happened::default());
    }
}

#[test]
fn a_vector_that_is_masked_loses_the_interrupt() {
    for driver in DRIVERS {
        for vector in [MASKED | VECTOR, 0x20] {
            let mut pmu = driver.started("good", 1000);
            pmu.set_vector(vector);
            let happened = pmu.advance(1000, false);
            assert_eq!(happened.overflow, Some(Delivery::Masked));
            assert!(!happened.nmi());
        }
    }
}

#[test]
fn an_intel_interrupt_masks_its_vector_and_freezes_if_it_is_told() {
    for freeze in [false, true] {
        let mut pmu = DRIVERS[0].started("good", 1000);
        pmu.write(msr::DEBUG_CONTROL, u64::from(freeze) << 12)
            .unwrap();
        assert!(pmu.advance(1000, false).nmi());
        assert_eq!(pmu.vector(), VECTOR | MASKED);
        assert_eq!(pmu.read(0x38f), Ok(if freeze { 0 } else { 1 << 33 }));
    }
    let mut pmu = DRIVERS[1].started("good", 1000);
    assert!(pmu.advance(1000, false).nmi());
    assert_eq!(pmu.vector(), VECTOR);
}

#[test]
fn each_mode_lies_in_its_way() {
    for driver in DRIVERS {
        let mut pmu = driver.started("swallowing", 1000);
        assert_eq!(pmu.read(driver.value), Ok(0));
        assert_eq!(pmu.until_interrupt(false), None);
        assert_eq!(pmu.advance(2000, false), Happened::default());
        assert_eq!(pmu.read(driver.value), Ok(0));

        let mut pmu = driver.started("latched", 1000);
        assert_eq!(pmu.until_interrupt(false), None);
        assert_eq!(pmu.advance(2000, false), Happened::default());
        assert_eq!(pmu.read(driver.value), Ok(END - 1000));

        let mut pmu = driver.started("absurd", 1000);
        assert_eq!(pmu.until_interrupt(false), Some(16));
        pmu.advance(10, false);
        assert_eq!(pmu.read(driver.value), Ok(END - 360));
        assert!(pmu.advance(6, false).nmi());

        let mut pmu = driver.started("silent", 1000);
        assert_eq!(pmu.until_interrupt(false), None);
        assert_eq!(pmu.advance(1005, false), Happened::default());
        assert_eq!(pmu.read(driver.value), Ok(5));

        let mut pmu = driver.started("blank", 1000);
        assert!(pmu.advance(1005, false).nmi());
        match driver.status {
            Some((status, _)) => assert_eq!(pmu.read(status), Ok(0)),
            None => assert_eq!(pmu.read(driver.value), Ok((1 << 47) + 5)),
        }

        let mut faulting = self::pmu(&format!("{}:faulting", driver.name));
        assert_eq!(faulting.read(driver.value), Err(Fault));
        assert_eq!(faulting.write(driver.value, 0), Err(Fault));
    }
}

#[test]
fn one_interrupt_in_a_hundred_is_dropped() {
    for driver in DRIVERS {
        let mut pmu = driver.started("dropping", 1000);
        for count in 1..=300 {
            let expected = if count % 100 == 0 {
                Delivery::Dropped
            } else {
                Delivery::Nmi
            };
            let happened = driver.again(&mut pmu, 1000);
            assert_eq!(happened.overflow, Some(expected), "{count}");
        }
    }
}

#[test]
fn one_interrupt_in_a_hundred_comes_again_even_if_all_is_stopped() {
    for driver in DRIVERS {
        let mut pmu = driver.started("late", 1000);
        for count in 1..=100 {
            let happened = driver.again(&mut pmu, 1000);
            assert_eq!(happened.overflow, Some(Delivery::Nmi), "{count}");
        }
        for &(register, _) in driver.start {
            pmu.write(register, 0).unwrap();
        }
        pmu.set_vector(MASKED);
        for halted in [false, true] {
            assert!(pmu.until_interrupt(halted).is_some());
        }
        assert_eq!(pmu.advance(Mode::LATE - 1, true), Happened::default());
        assert!(pmu.advance(1, false).late);
        assert_eq!(pmu.until_interrupt(false), None);
        assert_eq!(pmu.advance(Mode::LATE, false), Happened::default());
    }
}

#[test]
fn the_first_interrupt_comes_behind_its_time_and_once_more() {
    for driver in DRIVERS {
        let mut pmu = driver.started("tardy", 1000);
        let first = pmu.advance(1000, false);
        assert_eq!(first.overflow, Some(Delivery::Dropped));
        for cycles in [Mode::TARDY, Mode::LATE] {
            assert_eq!(pmu.advance(cycles - 1, true), Happened::default());
            assert!(pmu.advance(1, true).late);
        }
        assert_eq!(pmu.advance(Mode::TARDY, true), Happened::default());
        let happened = driver.again(&mut pmu, 1000);
        assert_eq!(happened.overflow, Some(Delivery::Nmi));
    }
}

#[test]
fn reserved_bits_and_registers_of_others_fault() {
    let mut intel = pmu("intel");
    let written = [
        (0x30a, END),
        (0x38d, 0x40),
        (0x38f, 1),
        (0x390, 1),
        (0x38e, 0),
    ];
    for (register, value) in written {
        assert_eq!(intel.write(register, value), Err(Fault), "{register:#x}");
    }
    let mut amd = pmu("amd2");
    // Sign-extended values lose what does not fit.
    amd.write(0xc001_0201, u64::MAX).unwrap();
    assert_eq!(amd.read(0xc001_0201), Ok(END - 1));
    assert_eq!(amd.write(0xc001_0200, 1 << 19), Err(Fault));
    assert_eq!(amd.write(0xc000_0300, 0), Err(Fault));
    for setup in Setup::all().filter(|setup| setup.mode == Mode::Good) {
        let pmu = Pmu::new(setup, 0);
        let answered = |registers: core::ops::RangeInclusive<u32>| {
            registers
                .filter(|&register| pmu.read(register).is_ok())
                .count()
        };
        let (fixed, core, global) = match setup.interface {
            Interface::Intel => (8, 0, 0),
            Interface::Amd => (0, 12, 0),
            Interface::AmdV2 => (0, 12, 4),
        };
        assert_eq!(answered(0x300..=0x3ff), fixed);
        assert_eq!(answered(0xc001_0200..=0xc001_02ff), core);
        assert_eq!(answered(0xc000_0300..=0xc000_0303), global);
        assert_eq!(answered(0xc001_0000..=0xc001_0007), 0, "legacy");
        assert_eq!(answered(0xc1..=0xc8), 0);
    }
}

proptest! {
    /// However time is cut up, the counter interrupts when its cycles are over, and is asked for no later.
    #[test]
    fn an_overflow_is_due_when_its_cycles_are_over(
        which in 0..DRIVERS.len(), period in 1u64..100_000, steps in prop::collection::vec((1u64..5_000, any::<bool>()), 1..100)
    ) {
        let mut pmu = DRIVERS[which].started("good", period);
        let mut left = period;
        for (step, halted) in steps {
            prop_assert_eq!(pmu.until_interrupt(false), Some(left));
            let happened = pmu.advance(step, halted);
            if halted {
                prop_assert_eq!(happened, Happened::default());
            } else if step >= left {
                prop_assert!(happened.nmi());
                return Ok(());
            } else {
                prop_assert_eq!(happened, Happened::default());
                left -= step;
            }
        }
    }
}

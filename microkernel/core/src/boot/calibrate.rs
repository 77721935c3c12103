//! The measurement of the time-stamp counter and the APIC's timer against a clock of known rate, which takes less than 5 ms with
//! a clock that keeps its rate, on a machine that is not held up. One that stands still is given up within microseconds, a far
//! slower one within a second.
//!
//! A look at a counter may be slow, as when the machine is a virtual one and was held up: several are taken and the quickest
//! counts. What makes the rest of the error is the length of the measurement, so one that is not good enough goes on.

use super::tsc::{Error, Look, Rate, Reference, rate, rate_of};

/// Milliseconds after which a measurement may be good enough, and after which it must do.
const WINDOWS_MS: [u64; 2] = [2, 4];
/// Error, in parts per million, that is good enough.
const GOOD_PPM: u64 = 300;
/// Looks taken at each end; the quickest counts.
const LOOKS: u32 = 8;
/// Reads that find the same count before the clock has stopped: some microseconds for the quickest, and every clock here counts
/// at least once in one.
const SAME: u32 = 256;
/// Reads after which a clock that does count is given up: even 5 ns each are more than a window.
const PATIENCE: u32 = 1_000_000;

/// The counters of a machine; all count up.
pub trait Counters {
    /// The time-stamp counter.
    fn tsc(&self) -> u64;
    /// The clock of known rate.
    fn reference(&self) -> u64;
    /// The APIC's timer.
    fn apic_timer(&self) -> u64;
}

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// The TSC.
    pub tsc: Rate,
    /// The APIC timer's counts in a second; `None` if it does not count.
    pub apic_timer: Option<u64>,
}

/// Measures against the clock of known rate.
///
/// # Errors
/// When it is of no use.
pub fn measure(counters: &impl Counters, reference: Reference) -> Result<Measured, Error> {
    let apic_start = look(counters, || counters.apic_timer());
    let start = look(counters, || counters.reference());
    let mut patience = PATIENCE;
    let mut tsc = Err(Error::Stopped);
    for window in WINDOWS_MS {
        let counts = (reference.hz * window / 1000).max(1);
        wait(counters, reference, start.count, counts, &mut patience)?;
        let end = look(counters, || counters.reference());
        tsc = rate(start, end, reference);
        if tsc.is_ok_and(|tsc| tsc.error_ppm <= GOOD_PPM) {
            break;
        }
    }
    let tsc = tsc?;
    let apic_end = look(counters, || counters.apic_timer());
    Ok(Measured {
        tsc,
        apic_timer: rate_of(apic_start, apic_end, tsc.hz),
    })
}

/// Waits until the clock has counted so far from `start`.
fn wait(
    counters: &impl Counters,
    reference: Reference,
    start: u64,
    counts: u64,
    patience: &mut u32,
) -> Result<(), Error> {
    let (mut last, mut same) = (start, 0);
    while *patience > 0 && same < SAME {
        *patience -= 1;
        let count = counters.reference();
        if reference.counted(start, count) >= counts {
            return Ok(());
        }
        same = if count == last { same + 1 } else { 0 };
        last = count;
    }
    Err(Error::Stopped)
}

/// The quickest of some looks at a counter.
fn look(counters: &impl Counters, counter: impl Fn() -> u64) -> Look {
    let once = || Look {
        before: counters.tsc(),
        count: counter(),
        after: counters.tsc(),
    };
    (1..LOOKS).fold(once(), |best, _| {
        let next = once();
        if next.width() < best.width() {
            next
        } else {
            best
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;

    /// A machine whose time passes only while a counter is read.
    struct Fake {
        /// Nanoseconds since the measurement began.
        now: Cell<u64>,
        tsc_hz: u64,
        reference: Reference,
        /// Where the reference stands at first.
        stands: u64,
        /// Nanoseconds that a read of the reference takes.
        cost: u64,
        /// When the reference stops.
        stops: u64,
        /// When the machine is held up, and for how long.
        held_up: Cell<Option<(u64, u64)>>,
    }

    const MILLISECOND: u64 = 1_000_000;
    const CLOCKS: [Reference; 3] = [
        Reference {
            hz: 100_000_000,
            bits: 32,
        },
        Reference {
            hz: 3_579_545,
            bits: 24,
        },
        Reference {
            hz: 1_193_182,
            bits: 16,
        },
    ];

    fn count(hz: u64, nanos: u64) -> u64 {
        (u128::from(hz) * u128::from(nanos) / 1_000_000_000) as u64
    }

    impl Fake {
        fn new(reference: Reference) -> Self {
            Self {
                now: Cell::new(0),
                tsc_hz: 3_000_000_000,
                reference,
                stands: 0,
                cost: 1000,
                stops: u64::MAX,
                held_up: Cell::new(None),
            }
        }
        fn pass(&self, nanos: u64) {
            self.now.set(self.now.get() + nanos);
            if let Some((_, nanos)) = self.held_up.get().filter(|(at, _)| self.now.get() >= *at) {
                self.now.set(self.now.get() + nanos);
                self.held_up.set(None);
            }
        }
    }

    impl Counters for Fake {
        fn tsc(&self) -> u64 {
            self.pass(10);
            count(self.tsc_hz, self.now.get())
        }
        fn reference(&self) -> u64 {
            self.pass(self.cost / 2);
            let mask = u64::MAX >> (64 - self.reference.bits);
            let count = self.stands + count(self.reference.hz, self.now.get().min(self.stops));
            self.pass(self.cost / 2);
            count & mask
        }
        fn apic_timer(&self) -> u64 {
            self.pass(1000);
            count(62_500_000, self.now.get())
        }
    }

    proptest! {
        #[test]
        fn a_measurement_is_short_and_right(
            clock in 0..CLOCKS.len(), tsc_hz in 500_000_000u64..6_000_000_000, stands in any::<u32>(),
            cost in 10..5_000u64, held_up in prop::option::of((0..4 * MILLISECOND, 0..20 * MILLISECOND))
        ) {
            let fake = Fake {
                tsc_hz, cost, stands: stands.into(), held_up: Cell::new(held_up), ..Fake::new(CLOCKS[clock])
            };
            let found = measure(&fake, fake.reference).unwrap();
            let delay = held_up.filter(|_| fake.held_up.get().is_none()).map_or(0, |(_, nanos)| nanos);
            prop_assert!(fake.now.get() <= 5 * MILLISECOND + delay, "{} ns", fake.now.get());
            let error = u128::from(found.tsc.hz.abs_diff(tsc_hz)) * 1_000_000 / u128::from(tsc_hz);
            prop_assert!(error <= u128::from(found.tsc.error_ppm) + 2, "{found:?} {error}");
            prop_assert!(found.apic_timer.unwrap().abs_diff(62_500_000) < 1_000_000, "{found:?}");
        }

        #[test]
        fn a_clock_that_stops_is_given_up_at_once(
            clock in 0..CLOCKS.len(), stops in 0..2 * MILLISECOND, cost in 20..2_000u64
        ) {
            let fake = Fake { stops, cost, ..Fake::new(CLOCKS[clock]) };
            prop_assert_eq!(measure(&fake, fake.reference), Err(Error::Stopped));
            prop_assert!(fake.now.get() <= stops + MILLISECOND, "{} ns", fake.now.get());
        }
    }

    #[test]
    fn only_what_is_not_good_enough_goes_on() {
        for (cost, windows) in [(100, 2..3), (2_000, 4..5)] {
            let fake = Fake {
                cost,
                ..Fake::new(CLOCKS[0])
            };
            let found = measure(&fake, fake.reference).unwrap();
            assert!(windows.contains(&(fake.now.get() / MILLISECOND)));
            assert_eq!(found.tsc.error_ppm <= GOOD_PPM, cost == 100);
        }
    }

    #[test]
    fn a_look_that_was_held_up_does_not_count() {
        for at in (0..15_000).step_by(100) {
            let fake = Fake {
                cost: 100,
                held_up: Cell::new(Some((at, 10 * MILLISECOND))),
                ..Fake::new(CLOCKS[0])
            };
            let found = measure(&fake, fake.reference).unwrap();
            assert!(found.tsc.error_ppm <= GOOD_PPM, "at {at}: {found:?}");
        }
    }

    #[test]
    fn a_clock_far_slower_than_it_says_is_given_up() {
        let fake = Fake::new(CLOCKS[0]);
        let told = Reference {
            hz: u64::MAX / 4,
            bits: 64,
        };
        assert_eq!(measure(&fake, told), Err(Error::Stopped));
        assert!(
            fake.now.get() <= 1_100 * MILLISECOND,
            "{} ns",
            fake.now.get()
        );
    }
}

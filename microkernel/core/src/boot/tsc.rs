//! How fast the time-stamp counter runs, and how far apart the counters of two CPUs are: the arithmetic of it.
//!
//! The counter is read on both sides of each look at a reference clock, so that every error is bounded by the time the
//! looks took: a virtual machine that was stopped in between makes a measurement that says so, not a wrong one.

use crate::base::addr::{Nanos, Tsc};

/// A clock of known rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Counts in a second.
    pub hz: u64,
    /// Bits of the counter, at most 64; it wraps at most once in a measurement.
    pub bits: u32,
}

impl Reference {
    /// Counts from one to another.
    #[must_use]
    pub fn counted(self, start: u64, end: u64) -> u64 {
        end.wrapping_sub(start) & (u64::MAX >> (64 - self.bits.clamp(1, 64)))
    }
}

/// One look at a counter, between two looks at the time-stamp counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// TSC before.
    pub before: u64,
    /// The counter looked at; counting up.
    pub count: u64,
    /// TSC after.
    pub after: u64,
}

impl Look {
    /// TSC ticks that it took: twice the error in when it happened.
    #[must_use]
    pub const fn width(self) -> u64 {
        self.after.wrapping_sub(self.before)
    }
    const fn middle(self) -> u64 {
        self.before.wrapping_add(self.width() / 2)
    }
}

/// A measured rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// TSC ticks in a second.
    pub hz: u64,
    /// Bound of the relative error, in parts per million.
    pub error_ppm: u64,
}

/// Why two looks give no rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The reference did not move.
    Stopped,
    /// The rate found is one that no processor has: under 1 MHz or over 100 GHz.
    Implausible,
}

/// The TSC's rate, from two looks at a reference.
///
/// # Errors
/// Why there is none.
pub fn rate(start: Look, end: Look, reference: Reference) -> Result<Rate, Error> {
    let counts = reference.counted(start.count, end.count);
    if counts == 0 || reference.hz == 0 {
        return Err(Error::Stopped);
    }
    let ticks = end.middle().wrapping_sub(start.middle());
    let hz = u128::from(ticks) * u128::from(reference.hz) / u128::from(counts);
    let hz = u64::try_from(hz).map_err(|_| Error::Implausible)?;
    if !(1_000_000..=100_000_000_000).contains(&hz) {
        return Err(Error::Implausible);
    }
    let looks = u128::from(start.width() / 2) + u128::from(end.width() / 2);
    let error = looks * 1_000_000 / u128::from(ticks) + 1_000_000 / u128::from(counts);
    Ok(Rate {
        hz,
        error_ppm: error as u64,
    })
}

/// The rate of another counter, such as the APIC timer's, from two looks at it and the TSC's rate, in counts a second;
/// `None` if it stands still.
#[must_use]
pub fn rate_of(start: Look, end: Look, tsc_hz: u64) -> Option<u64> {
    let ticks = end.middle().wrapping_sub(start.middle());
    let counts = u128::from(end.count.wrapping_sub(start.count));
    let hz = (counts * u128::from(tsc_hz)).checked_div(ticks.into())?;
    u64::try_from(hz).ok().filter(|&hz| hz > 0)
}

/// Between TSC ticks and nanoseconds since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// The TSC at time zero.
    pub boot: Tsc,
    /// Ticks in a second.
    pub hz: u64,
    /// Nanoseconds in a tick, times 2^32.
    pub mult: u64,
}

impl Scale {
    /// For a counter of `hz` ticks a second that stood at `boot` at time zero; `hz` is at least 1 MHz ([`rate`]).
    #[must_use]
    pub const fn new(boot: Tsc, hz: u64) -> Self {
        let mult = (1_000_000_000u128 << 32) / if hz == 0 { 1 } else { hz } as u128;
        Self {
            boot,
            hz,
            mult: mult as u64,
        }
    }
    /// A difference in nanoseconds, rounded down.
    #[must_use]
    pub const fn nanos(&self, ticks: u64) -> u64 {
        ((ticks as u128 * self.mult as u128) >> 32) as u64
    }
    /// A time since boot. A counter that stands before its value at boot, on another CPU, reads as zero.
    #[must_use]
    pub const fn time(&self, tsc: Tsc) -> Nanos {
        let ticks = tsc.0.wrapping_sub(self.boot.0);
        Nanos(if ticks > u64::MAX / 2 {
            0
        } else {
            self.nanos(ticks)
        })
    }
    /// The first tick at which [`Scale::time`] has reached `time`; `Tsc(u64::MAX)` for a time that never comes.
    #[must_use]
    pub const fn tick_at(&self, time: Nanos) -> Tsc {
        let ticks =
            ((time.0 as u128) << 32).div_ceil(if self.mult == 0 { 1 } else { self.mult } as u128);
        match ticks.checked_add(self.boot.0 as u128) {
            Some(tick) if tick < u64::MAX as u128 => Tsc(tick as u64),
            _ => Tsc(u64::MAX),
        }
    }
}

/// One exchange between two CPUs: the first read its counter, asked the second, and read again when the answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// First CPU's counter before.
    pub asked: u64,
    /// Second CPU's counter, when it saw the question.
    pub there: u64,
    /// First CPU's counter after.
    pub answered: u64,
}

/// How far the second CPU's counter is ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// Ticks ahead; negative if it is behind.
    pub ticks: i64,
    /// The true offset is at most this far from it.
    pub bound: u64,
}

impl Offset {
    /// Whether the counters may well be equal.
    #[must_use]
    pub const fn may_be_zero(self) -> bool {
        self.ticks.unsigned_abs() <= self.bound
    }
}

/// The offset, from the quickest of some exchanges, which bounds it best; `None` without exchanges.
#[must_use]
pub fn offset(exchanges: &[Exchange]) -> Option<Offset> {
    let trip = |e: &Exchange| e.answered.wrapping_sub(e.asked);
    let best = exchanges.iter().min_by_key(|e| trip(e))?;
    let middle = best.asked.wrapping_add(trip(best) / 2);
    Some(Offset {
        ticks: best.there.wrapping_sub(middle) as i64,
        bound: trip(best) / 2 + 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PM_TIMER: Reference = Reference {
        hz: 3_579_545,
        bits: 24,
    };

    fn look(tsc: u64, count: u64, width: u64) -> Look {
        Look {
            before: tsc,
            count,
            after: tsc + width,
        }
    }

    #[test]
    fn a_reference_that_wraps_is_still_one() {
        // 4 ms of a 3 GHz processor.
        let counts = PM_TIMER.hz * 4 / 1000;
        let start = look(1_000_000, (1 << 24) - 5, 100);
        let end = look(13_000_000, counts - 5, 100);
        let found = rate(start, end, PM_TIMER).unwrap();
        assert!(found.hz.abs_diff(3_000_000_000) < 300_000, "{found:?}");
        assert!(found.error_ppm < 90, "{found:?}");
    }

    #[test]
    fn nonsense_gives_no_rate() {
        let (a, b) = (look(0, 5, 1), look(1_000_000, 5, 1));
        assert_eq!(rate(a, b, PM_TIMER), Err(Error::Stopped));
        assert_eq!(
            rate(a, look(10, 900_000, 1), PM_TIMER),
            Err(Error::Implausible)
        );
        assert_eq!(
            rate(a, look(u64::MAX / 2, 6, 1), PM_TIMER),
            Err(Error::Implausible)
        );
        assert_eq!(rate_of(a, b, 1_000_000_000), None);
        assert_eq!(rate_of(a, a, 1_000_000_000), None);
    }

    #[test]
    fn a_slow_look_shows_in_the_error() {
        let start = look(0, 0, 1_000_000);
        let end = look(12_000_000, 14_318, 1_000_000);
        assert!(rate(start, end, PM_TIMER).unwrap().error_ppm > 80_000);
    }

    proptest! {
        #[test]
        fn the_error_bound_holds(
            hz in 10_000_000u64..10_000_000_000, widths in (1u64..10_000, 1u64..10_000), at in (0f64..1.0, 0f64..1.0)
        ) {
            // The looks happen anywhere within their widths, 4 ms apart.
            let ticks = hz / 250;
            let counter = |tsc: u64| (u128::from(tsc) * u128::from(PM_TIMER.hz) / u128::from(hz)) as u64;
            let make = |tsc: u64, width: u64, at: f64| Look {
                before: tsc, count: counter(tsc + (width as f64 * at) as u64), after: tsc + width,
            };
            let (start, end) = (make(1000, widths.0, at.0), make(1000 + ticks, widths.1, at.1));
            let found = rate(start, end, PM_TIMER).unwrap();
            let error = found.hz.abs_diff(hz) as u128 * 1_000_000 / u128::from(hz);
            prop_assert!(error <= u128::from(found.error_ppm) * 11 / 10 + 2, "{found:?} {error}");
        }

        #[test]
        fn times_and_ticks_agree(hz in 1_000_000u64..10_000_000_000, time in 0u64..1 << 50, boot in 0u64..1 << 50) {
            let scale = Scale::new(Tsc(boot), hz);
            let tick = scale.tick_at(Nanos(time));
            prop_assert!(scale.time(tick).0 >= time);
            prop_assert!(time == 0 || scale.time(Tsc(tick.0 - 1)).0 < time);
        }

        #[test]
        fn the_true_offset_is_within_the_bound(
            trips in prop::collection::vec((0u64..5_000, 0u64..5_000), 1..20), ahead in -1_000_000i64..1_000_000
        ) {
            let mut now = 1u64 << 40;
            let exchanges: Vec<_> = trips.iter().map(|&(there, back)| {
                let asked = now;
                now += there + back + 1;
                Exchange { asked, there: (asked + there).wrapping_add_signed(ahead), answered: asked + there + back }
            }).collect();
            let found = offset(&exchanges).unwrap();
            prop_assert!((found.ticks - ahead).unsigned_abs() <= found.bound);
        }
    }

    #[test]
    fn the_ends_of_time_are_defined() {
        let scale = Scale::new(Tsc(1000), 3_000_000_000);
        assert_eq!(scale.tick_at(Nanos::NEVER), Tsc(u64::MAX));
        assert_eq!(scale.time(Tsc(999)), Nanos(0));
        assert_eq!(offset(&[]), None);
        assert!(
            Offset {
                ticks: -5,
                bound: 5
            }
            .may_be_zero()
                && !Offset {
                    ticks: -6,
                    bound: 5
                }
                .may_be_zero()
        );
    }
}

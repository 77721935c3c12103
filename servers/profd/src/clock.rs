//! Time as the kernel's information page gives it: ticks of the TSC in records, nanoseconds in deadlines.

use ipc::abi::info::InfoPage;

/// The TSC's scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    tsc_boot: u64,
    tsc_mult: u64,
    tsc_hz: u64,
}

impl Clock {
    /// The clock that the information page describes.
    #[must_use]
    pub const fn new(page: &InfoPage) -> Self {
        Self { tsc_boot: page.tsc_boot, tsc_mult: page.tsc_mult, tsc_hz: page.tsc_hz }
    }

    /// Nanoseconds since boot at a TSC value.
    #[must_use]
    pub const fn nanoseconds(self, tsc: u64) -> u64 {
        let ticks = tsc.saturating_sub(self.tsc_boot);
        let nanoseconds = (ticks as u128 * self.tsc_mult as u128) >> 32;
        if nanoseconds > u64::MAX as u128 { u64::MAX } else { nanoseconds as u64 }
    }

    /// TSC ticks in some milliseconds.
    #[must_use]
    pub const fn ticks(self, milliseconds: u32) -> u64 {
        let ticks = self.tsc_hz as u128 * milliseconds as u128 / 1000;
        if ticks > u64::MAX as u128 { u64::MAX } else { ticks as u64 }
    }

    /// Whole milliseconds in some TSC ticks.
    #[must_use]
    pub const fn milliseconds(self, ticks: u64) -> u32 {
        if self.tsc_hz == 0 {
            return 0;
        }
        let milliseconds = ticks as u128 * 1000 / self.tsc_hz as u128;
        if milliseconds > u32::MAX as u128 { u32::MAX } else { milliseconds as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_and_times_agree() {
        let page = InfoPage { tsc_boot: 1000, tsc_mult: 1 << 31, tsc_hz: 2_000_000_000, ..InfoPage::default() };
        let clock = Clock::new(&page);
        assert_eq!(clock.nanoseconds(3000), 1000);
        assert_eq!(clock.nanoseconds(0), 0);
        assert_eq!(clock.ticks(3), 6_000_000);
        assert_eq!(clock.milliseconds(clock.ticks(312)), 312);
        assert_eq!(Clock::new(&InfoPage::default()).milliseconds(7), 0);
        let wild = InfoPage { tsc_mult: u64::MAX, tsc_hz: u64::MAX, ..InfoPage::default() };
        assert_eq!(Clock::new(&wild).nanoseconds(u64::MAX), u64::MAX);
        assert_eq!(Clock::new(&wild).ticks(u32::MAX), u64::MAX);
    }
}

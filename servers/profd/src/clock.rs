//! Time as the kernel's information page gives it: ticks of the TSC in records, nanoseconds in deadlines.

use ipc::abi::info::InfoPage;

/// The TSC's scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock(InfoPage);

impl Clock {
    /// The clock that the information page describes.
    #[must_use]
    pub const fn new(page: InfoPage) -> Self {
        Self(page)
    }

    /// Nanoseconds since boot at a TSC value.
    #[must_use]
    pub fn nanoseconds(self, tsc: u64) -> u64 {
        sysroot::clock::nanoseconds(&self.0, tsc)
    }

    /// TSC ticks in some milliseconds.
    #[must_use]
    pub fn ticks(self, milliseconds: u32) -> u64 {
        let ticks = u128::from(self.0.tsc_hz) * u128::from(milliseconds) / 1000;
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }

    /// Whole milliseconds in some TSC ticks.
    #[must_use]
    pub fn milliseconds(self, ticks: u64) -> u32 {
        let milliseconds = self.duration(ticks) / 1_000_000;
        u32::try_from(milliseconds).unwrap_or(u32::MAX)
    }

    /// Whole nanoseconds in some TSC ticks.
    #[must_use]
    pub fn duration(self, ticks: u64) -> u64 {
        let nanoseconds = (u128::from(ticks) * 1_000_000_000).checked_div(self.0.tsc_hz.into());
        u64::try_from(nanoseconds.unwrap_or(0)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_and_times_agree() {
        let page = InfoPage {
            tsc_boot: 1000,
            tsc_mult: 1 << 31,
            tsc_hz: 2_000_000_000,
            ..InfoPage::default()
        };
        let clock = Clock::new(page);
        assert_eq!(clock.nanoseconds(3000), 1000);
        assert_eq!(clock.nanoseconds(0), 0);
        assert_eq!(clock.ticks(3), 6_000_000);
        assert_eq!(clock.milliseconds(clock.ticks(312)), 312);
        assert_eq!(clock.duration(3), 1);
        assert_eq!(Clock::new(InfoPage::default()).milliseconds(7), 0);
        let wild = InfoPage {
            tsc_mult: u64::MAX,
            tsc_hz: u64::MAX,
            ..InfoPage::default()
        };
        assert_eq!(Clock::new(wild).nanoseconds(u64::MAX), u64::MAX);
        assert_eq!(Clock::new(wild).ticks(u32::MAX), u64::MAX);
    }
}

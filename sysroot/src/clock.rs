//! Time from the information page: arithmetic alone, so that it is tested on the host.

use ipc::abi::info::InfoPage;

/// Nanoseconds in a millisecond.
pub const MILLISECOND: u64 = 1_000_000;
/// Nanoseconds in a microsecond.
pub const MICROSECOND: u64 = 1000;

/// Nanoseconds since boot at a time-stamp. A stamp from before boot, as another CPU's may seem to be, counts as boot.
#[must_use]
pub fn nanoseconds(info: &InfoPage, tsc: u64) -> u64 {
    let ticks = tsc.saturating_sub(info.tsc_boot);
    let scaled = (u128::from(ticks) * u128::from(info.tsc_mult)) >> 32;
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_become_nanoseconds() {
        let info = InfoPage {
            tsc_boot: 1000,
            tsc_mult: 1 << 31,
            ..InfoPage::default()
        };
        assert_eq!(nanoseconds(&info, 1000), 0);
        assert_eq!(nanoseconds(&info, 999), 0);
        assert_eq!(nanoseconds(&info, 1000 + 4_000_000_000), 2_000_000_000);
        let fast = InfoPage {
            tsc_mult: u64::MAX,
            ..info
        };
        assert_eq!(nanoseconds(&fast, u64::MAX), u64::MAX);
    }
}

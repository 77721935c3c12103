//! The registers that have to be trapped, and where the map of permissions has them.

use core::ops::RangeInclusive;

/// Debug control, which has a bit that stops the counters.
pub const DEBUG_CONTROL: u32 = 0x1d9;

/// The registers of all interfaces, and those that only others have: each is the model's to answer. 0xC0010000 and on are AMD's
/// of before the core extension, which share their counters with it and are not there for this model.
pub const COUNTERS: [RangeInclusive<u32>; 10] = [
    0xc1..=0xc8,
    0x186..=0x18d,
    DEBUG_CONTROL..=DEBUG_CONTROL,
    0x309..=0x30c,
    0x345..=0x345,
    0x38d..=0x391,
    0x4c1..=0x4c8,
    0xc000_0300..=0xc000_0303,
    0xc001_0000..=0xc001_0007,
    0xc001_0200..=0xc001_020b,
];

/// Bytes of a map of permissions (AMD64 manual volume 2, 15.11).
pub const MAP_BYTES: usize = 8192;

/// The first of the two bits that a register has there: reading it is trapped; the next one is for writing. `None` if it has none and
/// is always trapped.
#[must_use]
pub const fn permission(msr: u32) -> Option<usize> {
    let index = match msr {
        0..=0x1fff => msr,
        0xc000_0000..=0xc000_1fff => 0x2000 + (msr & 0x1fff),
        0xc001_0000..=0xc001_1fff => 0x4000 + (msr & 0x1fff),
        _ => return None,
    };
    Some(index as usize * 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranges_follow_each_other() {
        assert_eq!(permission(0x1fff), Some(0x7fe * 8 + 14));
        assert_eq!(permission(0xc000_0000), Some(0x800 * 8));
        assert_eq!(permission(0xc001_0000), Some(0x1000 * 8));
        assert_eq!(permission(0x2000), None);
        let trapped = COUNTERS.into_iter().flatten();
        assert!(
            trapped
                .filter_map(permission)
                .all(|bit| bit / 8 < MAP_BYTES)
        );
    }
}

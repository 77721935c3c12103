//! One entry of a 4-level page table: Intel SDM volume 3A, "4-Level Paging and 5-Level Paging", tables "Format of a ... Entry";
//! AMD APM volume 2, "Long-Mode Page Translation".
//!
//! The accessed and dirty bits are set from the start, where the hardware would set them: nothing here reads them, and
//! an entry that the hardware never writes can be replaced by a plain store. An entry without the present bit is zero.

use super::page::{Access, Kind};
use crate::base::addr::{Frame, PhysAddr};

const PRESENT: u64 = 1 << 0;
const WRITABLE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
/// With [`CACHE_DISABLE`] and a zero PAT bit this selects entry 3 of the PAT, strong uncacheable as the PAT is after
/// reset (SDM volume 3A, "Programming the PAT").
const WRITE_THROUGH: u64 = 1 << 3;
const CACHE_DISABLE: u64 = 1 << 4;
const ACCESSED: u64 = 1 << 5;
const DIRTY: u64 = 1 << 6;
/// At levels 2 and 3: maps 2 MiB or 1 GiB itself.
const LARGE: u64 = 1 << 7;
const NO_EXECUTE: u64 = 1 << 63;
/// Bits 12 to 51.
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// An entry, as the hardware reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(pub u64);

impl Entry {
    /// Nothing there.
    pub const NONE: Self = Self(0);

    /// Of a table: grants everything, so that the page's own entry decides.
    #[must_use]
    pub const fn table(frame: Frame) -> Self {
        Self(frame.start().0 | PRESENT | WRITABLE | USER | ACCESSED)
    }

    /// Of a user page.
    #[must_use]
    pub const fn page(frame: Frame, access: Access, kind: Kind) -> Self {
        let kind = match kind {
            Kind::Ram => 0,
            Kind::Device => WRITE_THROUGH | CACHE_DISABLE,
        };
        Self(frame.start().0 | PRESENT | USER | ACCESSED | kind | Self::access_bits(access))
    }

    const fn access_bits(access: Access) -> u64 {
        match access {
            Access::Read => NO_EXECUTE,
            Access::Write => WRITABLE | DIRTY | NO_EXECUTE,
            Access::Execute => 0,
        }
    }

    /// The same page with other access.
    #[must_use]
    pub const fn with_access(self, access: Access) -> Self {
        Self(self.0 & !(WRITABLE | DIRTY | NO_EXECUTE) | Self::access_bits(access))
    }

    /// Whether there is anything.
    #[must_use]
    #[inline]
    pub const fn is_present(self) -> bool {
        self.0 & PRESENT != 0
    }
    /// Whether user code gets through.
    #[must_use]
    #[inline]
    pub const fn is_user(self) -> bool {
        self.0 & USER != 0
    }
    /// Whether writing gets through.
    #[must_use]
    #[inline]
    pub const fn is_writable(self) -> bool {
        self.0 & WRITABLE != 0
    }
    /// Whether execution gets through.
    #[must_use]
    #[inline]
    pub const fn is_executable(self) -> bool {
        self.0 & NO_EXECUTE == 0
    }
    /// Whether the page is uncached.
    #[must_use]
    #[inline]
    pub const fn kind(self) -> Kind {
        if self.0 & CACHE_DISABLE != 0 {
            Kind::Device
        } else {
            Kind::Ram
        }
    }
    /// Whether it maps a page larger than 4 KiB, if it is an entry of level 2 or 3.
    #[must_use]
    #[inline]
    pub const fn is_large(self) -> bool {
        self.0 & LARGE != 0
    }

    /// Where the page begins that this entry maps, of `bytes` bytes, a power of two. Masks what lies below: in large pages
    /// bit 12 is a PAT bit.
    #[must_use]
    #[inline]
    pub const fn start(self, bytes: u64) -> PhysAddr {
        PhysAddr(self.0 & ADDRESS & !(bytes - 1))
    }

    /// The low 12 bits of [`Entry::to_user_table`] and [`Entry::to_user_page`] if there is such a table or page.
    pub const TO_USER: u64 = PRESENT | USER;

    /// Where this entry of level 2, 3 or 4 leads user code to: the address of a table, and [`Entry::TO_USER`]; other low bits if it is
    /// absent, not for users, or maps a large page.
    #[inline]
    #[must_use]
    pub const fn to_user_table(self) -> u64 {
        self.0 & (ADDRESS | PRESENT | USER | LARGE)
    }

    /// The same of this entry of level 1, and a page of 4 KiB.
    #[inline]
    #[must_use]
    pub const fn to_user_page(self) -> u64 {
        self.0 & (ADDRESS | PRESENT | USER)
    }

    /// The table this entry of level 2, 3 or 4 leads to; `None` if it is absent, maps a large page, or leads where no frame
    /// number reaches.
    #[must_use]
    #[inline]
    pub const fn next_table(self) -> Option<Frame> {
        let number = (self.0 & ADDRESS) >> 12;
        if !self.is_present() || self.is_large() || number > u32::MAX as u64 {
            return None;
        }
        Some(Frame(number as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits as the manual's tables have them, written out apart from the constants above.
    #[test]
    fn bits_are_those_of_the_manual() {
        let frame = Frame(0xabcde);
        let table = [
            (Entry::table(frame), 0x0000_0000_abcd_e027),
            (
                Entry::page(frame, Access::Read, Kind::Ram),
                0x8000_0000_abcd_e025,
            ),
            (
                Entry::page(frame, Access::Write, Kind::Ram),
                0x8000_0000_abcd_e067,
            ),
            (
                Entry::page(frame, Access::Execute, Kind::Ram),
                0x0000_0000_abcd_e025,
            ),
            (
                Entry::page(frame, Access::Read, Kind::Device),
                0x8000_0000_abcd_e03d,
            ),
            (
                Entry::page(frame, Access::Write, Kind::Device),
                0x8000_0000_abcd_e07f,
            ),
            (
                Entry::page(Frame(u32::MAX), Access::Read, Kind::Ram),
                0x8000_0fff_ffff_f025,
            ),
        ];
        for (entry, bits) in table {
            assert_eq!(entry.0, bits, "{entry:x?}");
        }
    }

    #[test]
    fn a_change_of_access_keeps_the_rest() {
        use Access::{Execute, Read, Write};
        for kind in [Kind::Ram, Kind::Device] {
            for (from, to) in [
                (Read, Write),
                (Write, Execute),
                (Execute, Read),
                (Write, Read),
            ] {
                let changed = Entry::page(Frame(7), from, kind).with_access(to);
                assert_eq!(changed, Entry::page(Frame(7), to, kind));
            }
        }
    }

    #[test]
    fn only_tables_lead_on() {
        assert_eq!(Entry::table(Frame(9)).next_table(), Some(Frame(9)));
        assert_eq!(Entry::NONE.next_table(), None);
        assert_eq!(Entry(0x20_0000 | LARGE | PRESENT).next_table(), None);
        assert_eq!(Entry(1 << 44 | PRESENT).next_table(), None);
    }

    #[test]
    fn what_leads_user_code_on_has_the_tag_and_nothing_else_has() {
        let led = |bits: u64| {
            let entry = Entry(bits);
            [entry.to_user_table(), entry.to_user_page()].map(|to| to & 0xfff == Entry::TO_USER)
        };
        for bits in 0..1 << 12 {
            let user = bits & (PRESENT | USER) == PRESENT | USER;
            let expected = [user && bits & LARGE == 0, user];
            assert_eq!(led(bits), expected, "{bits:#x}");
            assert_eq!(led(bits | NO_EXECUTE | 0xabc << 52 | 7 << 12), expected);
        }
        let entry = Entry(ADDRESS | NO_EXECUTE | 0x7f);
        assert_eq!(entry.to_user_table(), ADDRESS | Entry::TO_USER);
    }
}

//! Pages that a program may map, and what it may do with them. Values of these types were checked: code that takes them need not
//! look again.

use crate::base::addr::UserAddr;
use ipc::abi::layout::{PAGE_SIZE, USER_END, USER_START};
use ipc::abi::{Error, Rights};

/// A page of the user half: its address is aligned, not below `USER_START` and below `USER_END`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Page(u64);

impl Page {
    /// The page that begins at this address.
    ///
    /// # Errors
    /// `Misaligned` if no page begins there, `BadAddress` if it is not one that programs may map.
    pub fn new(address: UserAddr) -> Result<Self, Error> {
        Pages::new(address, 1).map(|pages| pages.first)
    }
    /// Its first byte.
    #[must_use]
    pub const fn address(self) -> u64 {
        self.0
    }
}

/// One or more pages in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pages {
    first: Page,
    count: u64,
}

impl Pages {
    /// `count` pages from this address on.
    ///
    /// # Errors
    /// `Misaligned` if no page begins there, `BadArgument` if there are none, `BadAddress` if not all are pages that programs may map.
    pub fn new(address: UserAddr, count: u64) -> Result<Self, Error> {
        if !address.0.is_multiple_of(PAGE_SIZE) {
            return Err(Error::Misaligned);
        }
        if count == 0 {
            return Err(Error::BadArgument);
        }
        let end = count
            .checked_mul(PAGE_SIZE)
            .and_then(|bytes| address.0.checked_add(bytes));
        if address.0 < USER_START || end.is_none_or(|end| end > USER_END) {
            return Err(Error::BadAddress);
        }
        Ok(Self {
            first: Page(address.0),
            count,
        })
    }
    /// Address of the first byte.
    #[must_use]
    pub const fn address(self) -> u64 {
        self.first.0
    }
    /// Address after the last byte.
    #[must_use]
    pub const fn end(self) -> u64 {
        self.first.0 + self.count * PAGE_SIZE
    }
    /// How many.
    #[must_use]
    pub const fn count(self) -> u64 {
        self.count
    }
    /// The page with this number, counted from the first; `None` past the last.
    #[must_use]
    pub const fn page(self, index: u64) -> Option<Page> {
        if index < self.count {
            Some(Page(self.first.0 + index * PAGE_SIZE))
        } else {
            None
        }
    }
    /// Whether both have a page in common.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.address() < other.end() && other.address() < self.end()
    }
    /// Whether `address` lies in one of them.
    #[must_use]
    pub const fn contains(self, address: UserAddr) -> bool {
        self.address() <= address.0 && address.0 < self.end()
    }
}

/// What a program may do with a page. There is no value for writing and executing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Read.
    Read,
    /// Read and write.
    Write,
    /// Read and execute.
    Execute,
}

impl Access {
    /// What these rights of a memory handle stand for. The hardware cannot grant writing or execution without reading, so `READ`
    /// is implied.
    ///
    /// # Errors
    /// `BadArgument` for no right at all, for both `WRITE` and `EXECUTE`, and for rights that are not about pages.
    pub fn from_rights(rights: Rights) -> Result<Self, Error> {
        let kinds = Rights::READ | Rights::WRITE | Rights::EXECUTE;
        if rights.is_empty() || !kinds.contains(rights) {
            return Err(Error::BadArgument);
        }
        match (
            rights.contains(Rights::WRITE),
            rights.contains(Rights::EXECUTE),
        ) {
            (false, false) => Ok(Self::Read),
            (true, false) => Ok(Self::Write),
            (false, true) => Ok(Self::Execute),
            (true, true) => Err(Error::BadArgument),
        }
    }
    /// The rights that a handle must have for a mapping like this.
    #[must_use]
    pub const fn rights(self) -> Rights {
        match self {
            Self::Read => Rights::READ,
            Self::Write => Rights::READ.union(Rights::WRITE),
            Self::Execute => Rights::READ.union(Rights::EXECUTE),
        }
    }
}

/// What lies behind a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// RAM, cached.
    Ram,
    /// Device registers, uncached; never executable.
    Device,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_edges_of_the_user_half() {
        let page = |address| Page::new(UserAddr(address));
        assert_eq!(page(USER_START).unwrap().address(), USER_START);
        assert_eq!(page(USER_START - PAGE_SIZE), Err(Error::BadAddress));
        assert_eq!(page(USER_START + 8), Err(Error::Misaligned));
        assert!(page(USER_END - PAGE_SIZE).is_ok());
        assert_eq!(page(USER_END), Err(Error::BadAddress));
        assert_eq!(page(0xffff_8000_0000_0000), Err(Error::BadAddress));
        assert_eq!(page(!(PAGE_SIZE - 1)), Err(Error::BadAddress));
        let all = (USER_END - USER_START) / PAGE_SIZE;
        assert!(Pages::new(UserAddr(USER_START), all).is_ok());
        assert_eq!(
            Pages::new(UserAddr(USER_START), all + 1),
            Err(Error::BadAddress)
        );
        assert_eq!(Pages::new(UserAddr(USER_START), 0), Err(Error::BadArgument));
        // A size that overflows to a small one.
        assert_eq!(
            Pages::new(UserAddr(USER_START), (1 << 52) + 1),
            Err(Error::BadAddress)
        );
    }

    #[test]
    fn nothing_is_writable_and_executable() {
        for bits in 0..1 << 17 {
            let rights = Rights::from_bits_truncate(bits);
            let Ok(access) = Access::from_rights(rights) else {
                continue;
            };
            assert!(access.rights().contains(rights), "grants what it was asked");
            assert!(
                !access.rights().contains(Rights::WRITE | Rights::EXECUTE)
                    && rights.intersects(Rights::READ | Rights::WRITE | Rights::EXECUTE)
            );
        }
    }

    proptest! {
        #[test]
        fn pages_overlap_when_they_share_one(a in 16..40u64, b in 16..40u64, m in 1..12u64, n in 1..12u64) {
            let of = |first: u64, count| Pages::new(UserAddr(first * PAGE_SIZE), count).unwrap();
            let (one, other) = (of(a, m), of(b, n));
            let shared = (0..m).filter_map(|index| one.page(index)).any(|page| other.contains(UserAddr(page.address())));
            prop_assert_eq!(one.overlaps(other), shared);
            prop_assert_eq!(one.overlaps(other), other.overlaps(one));
            prop_assert!(one.page(m).is_none() && one.page(m - 1).is_some_and(|page| page.address() + PAGE_SIZE == one.end()));
        }
    }
}

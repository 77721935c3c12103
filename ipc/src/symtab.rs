//! The symbol tables that panics are read with: files of sorted addresses and demangled names.
//!
//! The builder makes one of the kernel's ELF image ([`crate::bootfs::KERNEL_SYMBOLS`]) and one of each program's
//! ([`crate::bootfs::PROGRAM_SYMBOLS`]); the kernel's panic and init's log look addresses up in them. A panic can come at any
//! time and from any defect, so the reader needs no memory but the table, takes nothing in the table on trust, and answers `None` (the
//! address is then printed alone) rather than something wrong.
//!
//! # Format
//! All numbers are little-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | [`MAGIC`] |
//! | 8 | base: what all addresses are relative to |
//! | 4 | n, the number of symbols |
//! | 4 | bytes of all names together |
//! | 8 | [`digest`] of everything after this header |
//! | 16 n | symbols, sorted by address: address - base (4), bytes of code (4), start of the name (4), bytes of the name (4) |
//! | rest | names, UTF-8 |

use crate::digest::digest;

/// First bytes of a table; the last of them is the version of the format.
pub const MAGIC: [u8; 8] = *b"sondsym1";
/// Bytes before the first symbol.
pub const HEADER_SIZE: usize = 32;
/// Bytes of one symbol, without its name.
pub const SYMBOL_SIZE: usize = 16;

/// What is wrong with a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// It does not begin with [`MAGIC`].
    BadMagic,
    /// It is not as long as its header says.
    BadLength,
    /// Its bytes are not those that were written.
    BadSum,
}

/// A function and a place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// Demangled name, without the name of its own image.
    pub name: &'a str,
    /// Bytes from the start of the function.
    pub offset: u64,
}

/// A table whose header and checksum were good when it was opened.
#[derive(Clone, Copy, Debug)]
pub struct SymbolTable<'a> {
    base: u64,
    symbols: &'a [u8],
    names: &'a [u8],
}

impl<'a> SymbolTable<'a> {
    /// Opens a table.
    ///
    /// # Errors
    /// What is wrong with it, if it is not exactly what the builder wrote.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let (header, body) = bytes
            .split_first_chunk::<HEADER_SIZE>()
            .ok_or(Error::BadLength)?;
        if !header.starts_with(&MAGIC) {
            return Err(Error::BadMagic);
        }
        let (base, sum) = (word(header, 8), word(header, 24));
        let (count, names) = (half(header, 16) as usize, half(header, 20) as usize);
        let (symbols, rest) = count
            .checked_mul(SYMBOL_SIZE)
            .and_then(|len| body.split_at_checked(len))
            .ok_or(Error::BadLength)?;
        if rest.len() != names {
            return Err(Error::BadLength);
        }
        if digest(body) != sum {
            return Err(Error::BadSum);
        }
        Ok(Self {
            base,
            symbols,
            names: rest,
        })
    }

    /// The call before a return address: its function, and the offset just behind it.
    #[must_use]
    pub fn lookup_return(&self, address: u64) -> Option<Symbol<'a>> {
        let call = self.lookup(address.checked_sub(1)?)?;
        let offset = call.offset + 1;
        Some(Symbol { offset, ..call })
    }

    /// The function that holds an address; `None` if no function does, or if the table is damaged there.
    #[must_use]
    pub fn lookup(&self, address: u64) -> Option<Symbol<'a>> {
        let relative = u32::try_from(address.checked_sub(self.base)?).ok()?;
        let (symbols, _) = self.symbols.as_chunks::<SYMBOL_SIZE>();
        let after = symbols.partition_point(|symbol| half(symbol, 0) <= relative);
        let symbol = symbols.get(after.checked_sub(1)?)?;
        let offset = relative.checked_sub(half(symbol, 0))?;
        if offset >= half(symbol, 4) {
            return None;
        }
        let start = half(symbol, 8) as usize;
        let end = start.checked_add(half(symbol, 12) as usize)?;
        let name = core::str::from_utf8(self.names.get(start..end)?).ok()?;
        Some(Symbol {
            name,
            offset: offset.into(),
        })
    }
}

/// The 32-bit number at `at`; zero past the end.
fn half(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes.get(at..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |&bytes| u32::from_le_bytes(bytes))
}

/// The 64-bit number at `at`; zero past the end.
fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from(half(bytes, at)) | u64::from(half(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0xffff_ffff_8000_0000;

    /// A table as the builder writes it, of (address, size, name).
    fn table(symbols: &[(u32, u32, &str)]) -> Vec<u8> {
        let (mut body, mut names) = (Vec::new(), String::new());
        for &(address, size, name) in symbols {
            for number in [address, size, names.len() as u32, name.len() as u32] {
                body.extend(number.to_le_bytes());
            }
            names.push_str(name);
        }
        body.extend(names.as_bytes());
        let mut out = MAGIC.to_vec();
        out.extend(BASE.to_le_bytes());
        out.extend((symbols.len() as u32).to_le_bytes());
        out.extend((names.len() as u32).to_le_bytes());
        out.extend(digest(&body).to_le_bytes());
        out.extend(body);
        out
    }

    fn sample() -> Vec<u8> {
        table(&[(16, 8, "idle"), (24, 100, "mémoire::copy"), (200, 4, "end")])
    }

    #[test]
    fn addresses_get_the_function_that_holds_them() {
        let bytes = sample();
        let table = SymbolTable::parse(&bytes).unwrap();
        let name = |at: u64| table.lookup(BASE + at).map(|s| (s.name, s.offset));
        assert_eq!(name(16), Some(("idle", 0)));
        assert_eq!(name(23), Some(("idle", 7)));
        assert_eq!(name(24), Some(("mémoire::copy", 0)));
        assert_eq!(name(123), Some(("mémoire::copy", 99)));
        assert_eq!(name(203), Some(("end", 3)));
        for gap in [0, 15, 124, 199, 204, 1 << 30] {
            assert_eq!(name(gap), None, "{gap}");
        }
        assert_eq!(table.lookup(BASE - 1), None);
        assert_eq!(table.lookup(0), None);
    }

    #[test]
    fn an_empty_table_knows_nothing() {
        let bytes = table(&[]);
        assert_eq!(SymbolTable::parse(&bytes).unwrap().lookup(BASE), None);
    }

    #[test]
    fn damage_is_noticed() {
        let good = sample();
        for len in 0..good.len() {
            assert!(SymbolTable::parse(&good[..len]).is_err(), "{len} bytes");
        }
        for at in 0..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 0x40;
            let is_base = (8..16).contains(&at);
            assert_eq!(SymbolTable::parse(&bytes).is_err(), !is_base, "byte {at}");
        }
    }

    #[test]
    fn damage_after_opening_is_survived() {
        for at in 0..sample().len() - HEADER_SIZE {
            let mut body = sample().split_off(HEADER_SIZE);
            body[at] = 0xff;
            let (symbols, names) = body.split_at(3 * SYMBOL_SIZE);
            let table = SymbolTable {
                base: BASE,
                symbols,
                names,
            };
            for address in 0..256 {
                let _ = table.lookup(BASE + address);
            }
        }
    }
}

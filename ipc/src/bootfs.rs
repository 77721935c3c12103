//! The boot module: a cpio archive with everything the system starts from.
//!
//! The archive is of the "newc with checksum" kind (magic `070702`; the format is described in the BSD manual page
//! `cpio(5)`), so any archiver can list it. Two rules are added. The data of every file begins on a page boundary of the
//! archive, so that program text is mapped in place; the builder reaches that with filler files below `pad/`, which
//! nobody looks up. And the numbers of the special device, which mean nothing for a file, hold a digest of its data: the sum of the
//! format does not notice two changes that cancel out.
//!
//! The kernel, init and profd read it, and none of them can be sure that it is whole: [`Bootfs::parse`] checks the structure
//! once, [`File::verify`] the content of one file when it is about to be used. Nothing here allocates or panics.

#[cfg(any(test, feature = "archive"))]
mod archive;

use core::fmt;

#[cfg(any(test, feature = "archive"))]
pub use archive::Archive;

use crate::digest::digest;

/// Boundary, within the archive, on which the data of every file begins.
pub const ALIGNMENT: usize = 4096;
/// Largest archive, in bytes.
pub const SIZE_MAX: usize = 8 << 20;
/// Most files in an archive, fillers included: a bound for every walk over it.
pub const FILES_MAX: usize = 128;
/// Longest name of a file, in bytes.
pub const NAME_MAX: usize = 64;
/// Bytes of a file's header, before its name.
pub const HEADER_SIZE: usize = 110;
/// First bytes of a file's header.
pub const MAGIC: &[u8; 6] = b"070702";
/// Name of the entry that ends the archive.
pub const TRAILER: &str = "TRAILER!!!";
/// Beginning of the names of fillers.
pub const PAD: &str = "pad/";

/// The file that holds the compiled `system.toml`.
pub const SYSTEM: &str = "system";
/// The file that says, in decimal digits, how many KiB of memory the programs of the system are promised: the kernel refuses
/// a machine that has less to give.
pub const NEEDS: &str = "needs";
/// The file that holds the kernel's ELF image.
pub const KERNEL: &str = "kernel";
/// The file that holds the kernel's symbol table ([`crate::symtab`]).
pub const KERNEL_SYMBOLS: &str = "kernel.sym";
/// The file that holds the keys of the remote shell, a line each: a role and 64 hexadecimal digits.
pub const REMOTE_KEYS: &str = "etc/remote.keys";
/// Beginning of the names of program images.
pub const PROGRAMS: &str = "bin/";
/// Beginning of the names of programs' symbol tables; the rest is as in the name of the image.
pub const PROGRAM_SYMBOLS: &str = "sym/";
/// init's symbol table, which the kernel reads if init ends.
pub const INIT_SYMBOLS: &str = "sym/init";

/// What is wrong with an archive. Offsets are in bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// There are no bytes at all.
    Empty,
    /// A header, a name or data reaches past the end; or the trailer is missing.
    Truncated {
        /// Of the header that does not fit.
        offset: usize,
    },
    /// What should be a header does not begin like one, or holds a number that is none.
    BadHeader {
        /// Of the header.
        offset: usize,
    },
    /// A name is empty, too long, not UTF-8 or not ended by a zero byte.
    BadName {
        /// Of the header.
        offset: usize,
    },
    /// Data of a file does not begin on a page boundary.
    Misaligned {
        /// Of the header.
        offset: usize,
    },
    /// There are more than [`FILES_MAX`] files.
    TooManyFiles,
    /// The data of a file is not that of the digest in its header.
    BadSum,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "the archive is missing"),
            Self::Truncated { offset } => write!(f, "the archive is cut short at byte {offset}"),
            Self::BadHeader { offset } => write!(f, "bad file header at byte {offset}"),
            Self::BadName { offset } => write!(f, "bad file name at byte {offset}"),
            Self::Misaligned { offset } => write!(f, "misaligned file at byte {offset}"),
            Self::TooManyFiles => write!(f, "more than {FILES_MAX} files"),
            Self::BadSum => write!(f, "the content of a file is damaged"),
        }
    }
}

impl core::error::Error for Error {}

/// One file of the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File<'a> {
    /// Its name, such as `bin/shell`.
    pub name: &'a str,
    /// Its bytes.
    pub data: &'a [u8],
    /// Where its bytes begin in the archive, in bytes; a multiple of [`ALIGNMENT`].
    pub offset: usize,
    digest: u64,
}

impl File<'_> {
    /// Checks the data against the digest in the header.
    ///
    /// # Errors
    /// [`Error::BadSum`] if they differ.
    pub fn verify(&self) -> Result<(), Error> {
        if digest(self.data) == self.digest {
            Ok(())
        } else {
            Err(Error::BadSum)
        }
    }
}

/// The numbers in the header of a file, each of which is written there as eight hexadecimal digits. No times, owners or inodes: the
/// same content gives the same archive.
#[must_use]
pub fn fields(name: &str, data: &[u8]) -> [u32; 13] {
    // A regular file that everyone may read.
    const MODE: u32 = 0o100_444;
    let (size, name_size) = (data.len() as u32, name.len() as u32 + 1);
    let digest = digest(data);
    let [high, low] = [(digest >> 32) as u32, digest as u32];
    let sum = data
        .iter()
        .fold(0u32, |sum, &byte| sum.wrapping_add(byte.into()));
    // inode, mode, uid, gid, links, mtime, size, device (2), special device (2), size of the name, sum.
    [0, MODE, 0, 0, 1, 0, size, 0, 0, high, low, name_size, sum]
}

/// An archive whose structure was checked.
#[derive(Clone, Copy, Debug)]
pub struct Bootfs<'a> {
    bytes: &'a [u8],
}

impl<'a> Bootfs<'a> {
    /// Checks the structure of a whole archive: every header, name and bound, and the trailer. Bytes after the trailer
    /// are ignored. The content of files is left to [`File::verify`].
    ///
    /// # Errors
    /// The first defect found.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        if bytes.is_empty() {
            return Err(Error::Empty);
        }
        let mut position = 0;
        for _ in 0..=FILES_MAX {
            match entry(bytes, position)? {
                Some((_, next)) => position = next,
                None => return Ok(Self { bytes }),
            }
        }
        Err(Error::TooManyFiles)
    }

    /// The files in archive order, without fillers.
    #[must_use]
    pub const fn files(&self) -> Files<'a> {
        Files {
            bytes: self.bytes,
            position: 0,
        }
    }

    /// The file with this name; the first, if there are several.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<File<'a>> {
        self.files().find(|file| file.name == name)
    }
}

/// Iterator over the files of an archive.
#[derive(Clone, Debug)]
pub struct Files<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Iterator for Files<'a> {
    type Item = File<'a>;

    fn next(&mut self) -> Option<File<'a>> {
        loop {
            // An error is impossible in a checked archive; it ends the walk like the trailer does.
            let (file, next) = entry(self.bytes, self.position).ok()??;
            self.position = next;
            if !file.name.starts_with(PAD) {
                return Some(file);
            }
        }
    }
}

/// The entry whose header is at `position`, and the position of the next header; `None` at the trailer.
fn entry(bytes: &[u8], position: usize) -> Result<Option<(File<'_>, usize)>, Error> {
    let truncated = Error::Truncated { offset: position };
    let slice = |start: usize, len: usize| {
        let end = start.checked_add(len).ok_or(truncated)?;
        bytes.get(start..end).ok_or(truncated)
    };
    let header = slice(position, HEADER_SIZE)?;
    if !header.starts_with(MAGIC) {
        return Err(Error::BadHeader { offset: position });
    }
    let field = |index: usize| {
        hex(header, MAGIC.len() + 8 * index).ok_or(Error::BadHeader { offset: position })
    };
    let (size, name_size) = (field(6)? as usize, field(11)? as usize);
    let digest = u64::from(field(9)?) << 32 | u64::from(field(10)?);

    let bad_name = Error::BadName { offset: position };
    if !(2..=NAME_MAX + 1).contains(&name_size) {
        return Err(bad_name);
    }
    let name = slice(position + HEADER_SIZE, name_size)?;
    let name = name.strip_suffix(&[0]).ok_or(bad_name)?;
    let name = core::str::from_utf8(name).map_err(|_| bad_name)?;
    if name == TRAILER {
        return Ok(None);
    }

    let offset = align4(position + HEADER_SIZE + name_size);
    let data = slice(offset, size)?;
    if !offset.is_multiple_of(ALIGNMENT) && !name.starts_with(PAD) {
        return Err(Error::Misaligned { offset: position });
    }
    let file = File {
        name,
        data,
        offset,
        digest,
    };
    Ok(Some((file, align4(offset + size))))
}

/// The next multiple of four: names and data are padded to it.
const fn align4(position: usize) -> usize {
    position.next_multiple_of(4)
}

/// The number written as eight hexadecimal digits at `start`; `None` if that is something else.
fn hex(bytes: &[u8], start: usize) -> Option<u32> {
    let digits = bytes.get(start..start + 8)?;
    digits.iter().try_fold(0u32, |value, &digit| {
        Some(value << 4 | char::from(digit).to_digit(16)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive() -> Vec<u8> {
        let mut archive = Archive::default();
        archive.add("system", b"abc");
        archive.add("bin/init", &[7; 5000]);
        archive.finish()
    }

    #[test]
    fn files_are_found_in_place_and_fillers_are_not_files() {
        let bytes = archive();
        let bootfs = Bootfs::parse(&bytes).unwrap();
        let names: Vec<_> = bootfs.files().map(|file| file.name).collect();
        assert_eq!(names, ["system", "bin/init"]);
        let file = bootfs.find("bin/init").unwrap();
        assert_eq!(file.data, [7; 5000]);
        assert_eq!(file.offset % ALIGNMENT, 0);
        assert_eq!(bytes[file.offset..][..5000], [7; 5000]);
        assert_eq!(file.verify(), Ok(()));
        assert_eq!(bootfs.find("pad/0"), None);
        assert_eq!(bootfs.find("bin/none"), None);
    }

    #[test]
    fn the_reader_finds_what_was_written() {
        let contents: Vec<Vec<u8>> = [0, 1, 3, 4095, 4096, 4097, 20_000]
            .iter()
            .map(|&len| (0..len).map(|i: usize| (i % 251) as u8).collect())
            .collect();
        let mut archive = Archive::default();
        for (index, content) in contents.iter().enumerate() {
            archive.add(&format!("bin/program-{}", "x".repeat(index)), content);
        }
        let bytes = archive.finish();
        let bootfs = Bootfs::parse(&bytes).unwrap();
        assert_eq!(bootfs.files().count(), contents.len());
        for (file, content) in bootfs.files().zip(&contents) {
            assert_eq!(file.data, content);
            assert_eq!(file.offset % ALIGNMENT, 0);
            assert_eq!(file.verify(), Ok(()));
        }
    }

    #[test]
    fn every_truncation_is_an_error() {
        let bytes = archive();
        let name = HEADER_SIZE + TRAILER.len() + 1;
        let whole = bytes.len() - align4(name) + name;
        assert_eq!(Bootfs::parse(&[]).unwrap_err(), Error::Empty);
        for len in (1..whole).step_by(7).chain([whole - 1]) {
            let error = Bootfs::parse(&bytes[..len]).unwrap_err();
            assert!(
                matches!(error, Error::Truncated { .. }),
                "{len} bytes: {error:?}"
            );
        }
        assert!(Bootfs::parse(&bytes[..whole]).is_ok());
    }

    #[test]
    fn any_changed_byte_is_noticed_or_harmless() {
        let good = archive();
        let files: Vec<_> = Bootfs::parse(&good).unwrap().files().collect();
        for at in 0..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 0x15;
            let Ok(bootfs) = Bootfs::parse(&bytes) else {
                continue;
            };
            for file in bootfs.files().filter(|file| file.verify().is_ok()) {
                let same = files.iter().any(|good| good.data == file.data);
                assert!(same, "a change at byte {at} went unnoticed");
            }
        }
    }

    #[test]
    fn defects_are_named_with_their_place() {
        let good = archive();
        let change = |at: usize, text: &[u8]| {
            let mut bytes = good.clone();
            bytes[at..][..text.len()].copy_from_slice(text);
            Bootfs::parse(&bytes).unwrap_err()
        };
        let name_size = MAGIC.len() + 8 * 11;
        assert_eq!(change(0, b"070701"), Error::BadHeader { offset: 0 });
        assert_eq!(change(54, b"x"), Error::BadHeader { offset: 0 });
        assert_eq!(change(54, b"FFFFFFFF"), Error::Truncated { offset: 0 });
        assert_eq!(change(name_size, b"00000000"), Error::BadName { offset: 0 });
        assert_eq!(change(name_size, b"FFFFFFFF"), Error::BadName { offset: 0 });
        assert_eq!(change(HEADER_SIZE, b"\xff"), Error::BadName { offset: 0 });

        let mut archive = Archive::default();
        archive.push("bin/init", b"not on a page");
        assert_eq!(
            Bootfs::parse(&archive.finish()).unwrap_err(),
            Error::Misaligned { offset: 0 }
        );
    }

    #[test]
    fn the_walk_is_bounded() {
        let fillers = |count| {
            let mut archive = Archive::default();
            for _ in 0..count {
                archive.push("pad/0", b"");
            }
            archive.finish()
        };
        assert!(Bootfs::parse(&fillers(FILES_MAX)).is_ok());
        let error = Bootfs::parse(&fillers(FILES_MAX + 1)).unwrap_err();
        assert_eq!(error, Error::TooManyFiles);
    }
}

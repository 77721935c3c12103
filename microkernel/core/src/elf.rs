//! Reads the program headers of a static ELF64 program: what the kernel needs to load init, and no more.
//!
//! The file comes from the boot module and may be damaged; every number is checked here, and what [`Program::parse`] gives
//! out can be mapped as it is. Segments are whole pages, in the user half, apart from each other, and never writable and
//! executable. Formats: System V ABI, chapters 4 and 5 (ELF header, program header); its x86-64 supplement for the machine.

use crate::base::addr::UserAddr;
use crate::mem::page::{Access, Pages};
use ipc::abi::layout::PAGE_SIZE;

/// Most segments of a program that are loaded.
pub const SEGMENTS_MAX: usize = 8;
/// Most program headers looked at.
const HEADERS_MAX: usize = 32;
const FILE_HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;

/// `e_type` of a program that is linked at fixed addresses.
const ET_EXEC: u16 = 2;
const EM_X86_64: u16 = 62;
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const PF_X: u32 = 1;
const PF_W: u32 = 2;
const PF_R: u32 = 4;

/// Why a file is not a program that can be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// It does not begin as an ELF64 file for this machine does.
    NotElf,
    /// It needs a dynamic linker, or is no program.
    NotStatic,
    /// Its headers, or what they point to, lie outside the file.
    Truncated,
    /// There are more headers than are looked at, or more segments than are kept.
    TooMany,
    /// A segment is not whole pages, is not in the user half, or is larger in the file than in memory.
    BadSegment,
    /// A segment is writable and executable, or cannot be read.
    BadAccess,
    /// Segments share a page, or there are none.
    BadLayout,
    /// The entry point is not in the text that the file has.
    BadEntry,
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::NotElf => "not an ELF64 file for x86-64",
            Self::NotStatic => "not a static program",
            Self::Truncated => "truncated",
            Self::TooMany => "too many segments",
            Self::BadSegment => "a segment is out of place",
            Self::BadAccess => "a segment is writable and executable, or not readable",
            Self::BadLayout => "segments overlap, or there are none",
            Self::BadEntry => "the entry point is not in the text",
        })
    }
}

impl core::error::Error for Error {}

/// Part of a file, and where it belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Pages it fills.
    pub pages: Pages,
    /// What the program may do there.
    pub access: Access,
    /// Where its contents begin in the file: a multiple of the page size.
    pub offset: usize,
    /// How much of it is in the file; the rest of its pages is zero if it is writable. What is not writable is all in the file, and can
    /// be mapped from there if what follows it on its last page there is no secret.
    pub bytes: usize,
}

/// A program that can be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    entry: u64,
    segments: [Option<Segment>; SEGMENTS_MAX],
}

impl Program {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn parse(file: &[u8]) -> Result<Self, Error> {
        let ident = file.get(..7).ok_or(Error::NotElf)?;
        // Magic, 64 bits, least significant byte first, version 1.
        if ident != [0x7f, b'E', b'L', b'F', 2, 1, 1] {
            return Err(Error::NotElf);
        }
        let header = Fields(file.get(..FILE_HEADER).ok_or(Error::Truncated)?);
        if header.half(18) != EM_X86_64 || header.word(20) != 1 {
            return Err(Error::NotElf);
        }
        if header.half(16) != ET_EXEC {
            return Err(Error::NotStatic);
        }
        let (entry, table) = (header.long(24), header.long(32));
        let (size, count) = (usize::from(header.half(54)), usize::from(header.half(56)));
        if size != PROGRAM_HEADER {
            return Err(Error::NotElf);
        }
        if count > HEADERS_MAX {
            return Err(Error::TooMany);
        }
        let table = part(file, table, (count * size) as u64)?;
        let mut program = Self {
            entry,
            segments: [None; SEGMENTS_MAX],
        };
        for header in table.chunks_exact(size) {
            program.header(file, Fields(header))?;
        }
        program.check_entry()?;
        Ok(program)
    }

    /// Where it starts; in the text that the file has.
    #[must_use]
    pub const fn entry(&self) -> UserAddr {
        UserAddr(self.entry)
    }

    /// Its segments; no two share a page.
    pub fn segments(&self) -> impl Iterator<Item = Segment> + '_ {
        self.segments.iter().copied().flatten()
    }

    /// Takes one program header in.
    fn header(&mut self, file: &[u8], header: Fields<'_>) -> Result<(), Error> {
        match header.word(0) {
            PT_LOAD => {}
            PT_DYNAMIC | PT_INTERP => return Err(Error::NotStatic),
            _ => return Ok(()),
        }
        let Some(segment) = segment(file, header)? else {
            return Ok(());
        };
        if self
            .segments()
            .any(|other| other.pages.overlaps(segment.pages))
        {
            return Err(Error::BadLayout);
        }
        let free = self.segments.iter_mut().find(|place| place.is_none());
        *free.ok_or(Error::TooMany)? = Some(segment);
        Ok(())
    }

    fn check_entry(&self) -> Result<(), Error> {
        if self.segments[0].is_none() {
            return Err(Error::BadLayout);
        }
        let inside = |segment: Segment| {
            let start = segment.pages.address();
            segment.access == Access::Execute
                && self.entry >= start
                && self.entry - start < segment.bytes as u64
        };
        if self.segments().any(inside) {
            Ok(())
        } else {
            Err(Error::BadEntry)
        }
    }
}

/// Checks one loaded segment; `None` if it has no bytes.
fn segment(file: &[u8], header: Fields<'_>) -> Result<Option<Segment>, Error> {
    let flags = header.word(4);
    let (offset, address) = (header.long(8), header.long(16));
    let (in_file, in_memory) = (header.long(32), header.long(40));
    if in_memory == 0 && in_file == 0 {
        return Ok(None);
    }
    let access = match (flags & PF_R, flags & PF_W, flags & PF_X) {
        (PF_R, 0, 0) => Access::Read,
        (PF_R, PF_W, 0) => Access::Write,
        (PF_R, 0, PF_X) => Access::Execute,
        _ => return Err(Error::BadAccess),
    };
    // Only what is copied can have more in memory than in the file.
    if in_file > in_memory || (access != Access::Write && in_file != in_memory) {
        return Err(Error::BadSegment);
    }
    if !offset.is_multiple_of(PAGE_SIZE) {
        return Err(Error::BadSegment);
    }
    let bytes = part(file, offset, in_file)?.len();
    let pages = Pages::new(UserAddr(address), in_memory.div_ceil(PAGE_SIZE))
        .map_err(|_| Error::BadSegment)?;
    Ok(Some(Segment {
        pages,
        access,
        offset: offset as usize,
        bytes,
    }))
}

/// A part of the file, by numbers from the file.
fn part(file: &[u8], offset: u64, bytes: u64) -> Result<&[u8], Error> {
    let start = usize::try_from(offset).map_err(|_| Error::Truncated)?;
    let end = offset
        .checked_add(bytes)
        .and_then(|end| usize::try_from(end).ok())
        .ok_or(Error::Truncated)?;
    file.get(start..end).ok_or(Error::Truncated)
}

/// Fields of a header of known size, by their offsets in it.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn half(self, at: usize) -> u16 {
        u16::from_le_bytes([self.0[at], self.0[at + 1]])
    }
    fn word(self, at: usize) -> u32 {
        u32::from(self.half(at)) | u32::from(self.half(at + 2)) << 16
    }
    fn long(self, at: usize) -> u64 {
        u64::from(self.word(at)) | u64::from(self.word(at + 4)) << 32
    }
}

#[cfg(test)]
mod tests;

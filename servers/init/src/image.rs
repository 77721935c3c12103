//! What to map where for a program's ELF file.
//!
//! Programs are static and linked at one place, with segments on page boundaries of memory and file, so whatever is not
//! written can be mapped from the boot archive as it lies there. The file may be corrupt: everything in it is an
//! allegation until it was checked here.

use alloc::vec::Vec;
use core::fmt;

use ipc::abi::Rights;
use ipc::abi::layout::{PAGE_SIZE, PROGRAM_BASE};
use ipc::proto::init::BUILD_ID_MAX;
use object::LittleEndian;
use object::elf::{self, FileHeader64, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};

/// Most segments that are loaded.
pub const SEGMENTS_MAX: usize = 8;
/// Where images end at the latest: 1 GiB.
pub const IMAGE_END: u64 = 1 << 30;

/// What is wrong with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageError {
    /// Not an ELF64 file for x86-64 that is linked to an address.
    NotExecutable,
    /// A table or a segment reaches past the end of the file.
    Truncated,
    /// No segment to load, or too many.
    SegmentCount,
    /// A segment is outside of where programs may lie, or two overlap, or are out of order.
    Placement,
    /// A segment does not begin on a page boundary, in memory or in the file.
    Alignment,
    /// A segment is both writable and executable, or neither readable.
    Rights,
    /// A segment that is not writable has more memory than file.
    Tail,
    /// The entry point is not in an executable segment.
    Entry,
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotExecutable => "it is no ELF64 file for x86-64",
            Self::Truncated => "it is cut off",
            Self::SegmentCount => "it has no segments, or too many",
            Self::Placement => "a segment is where none may be",
            Self::Alignment => "a segment begins within a page",
            Self::Rights => "a segment has rights that none may have",
            Self::Tail => "a segment that is not written has no content",
            Self::Entry => "it begins where no code is",
        })
    }
}

/// How to make a segment's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// Map the file in place, from this page of it on.
    InPlace {
        /// Page of the file.
        first: u64,
    },
    /// Make zeroed pages and write these bytes to their beginning.
    Copy(&'a [u8]),
}

/// One mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// First address.
    pub address: u64,
    /// Pages.
    pub pages: u64,
    /// Rights of the mapping.
    pub rights: Rights,
    /// What is in it.
    pub content: Content<'a>,
}

impl Segment<'_> {
    const fn end(&self) -> u64 {
        self.address + self.pages * PAGE_SIZE
    }
}

/// A file that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image<'a> {
    /// First instruction.
    pub entry: u64,
    /// By growing address.
    pub segments: Vec<Segment<'a>>,
    /// Build-id, cut or filled with zeros; zero if there is none.
    pub build_id: [u8; BUILD_ID_MAX],
}

impl<'a> Image<'a> {
    /// Checks a file.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(file: &'a [u8]) -> Result<Self, ImageError> {
        let header =
            FileHeader64::<LittleEndian>::parse(file).map_err(|_| ImageError::NotExecutable)?;
        let little = header.endian().map_err(|_| ImageError::NotExecutable)?;
        if header.e_machine(little) != elf::EM_X86_64 || header.e_type(little) != elf::ET_EXEC {
            return Err(ImageError::NotExecutable);
        }
        let headers = header
            .program_headers(little, file)
            .map_err(|_| ImageError::Truncated)?;

        let mut segments: Vec<Segment<'a>> = Vec::new();
        let loaded = |header: &&ProgramHeader64<LittleEndian>| {
            header.p_type(little) == elf::PT_LOAD && header.p_memsz(little) > 0
        };
        for header in headers.iter().filter(loaded) {
            if segments.len() == SEGMENTS_MAX {
                return Err(ImageError::SegmentCount);
            }
            let lowest = segments.last().map_or(PROGRAM_BASE, Segment::end);
            segments.push(segment(header, file, lowest)?);
        }
        if segments.is_empty() {
            return Err(ImageError::SegmentCount);
        }

        let entry = header.e_entry(little);
        let runs = |segment: &Segment<'_>| {
            segment.rights.contains(Rights::EXECUTE)
                && (segment.address..segment.end()).contains(&entry)
        };
        if !segments.iter().any(runs) {
            return Err(ImageError::Entry);
        }
        Ok(Self {
            entry,
            segments,
            build_id: build_id(headers, file),
        })
    }

    /// First address after the last segment.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.segments.last().map_or(PROGRAM_BASE, Segment::end)
    }
}

fn segment<'a>(
    header: &ProgramHeader64<LittleEndian>,
    file: &'a [u8],
    lowest: u64,
) -> Result<Segment<'a>, ImageError> {
    let little = LittleEndian;
    let (address, offset) = (header.p_vaddr(little), header.p_offset(little));
    let (in_file, in_memory) = (header.p_filesz(little), header.p_memsz(little));
    if !address.is_multiple_of(PAGE_SIZE) || !offset.is_multiple_of(PAGE_SIZE) {
        return Err(ImageError::Alignment);
    }
    let end = address.saturating_add(in_memory);
    if address < lowest || end > IMAGE_END {
        return Err(ImageError::Placement);
    }
    let bytes = header
        .data(little, file)
        .map_err(|()| ImageError::Truncated)?;
    let rights = rights(header.p_flags(little))?;
    let writable = rights.contains(Rights::WRITE);
    if in_file > in_memory || (!writable && in_file != in_memory) {
        return Err(ImageError::Tail);
    }
    Ok(Segment {
        address,
        pages: in_memory.div_ceil(PAGE_SIZE),
        rights,
        content: if writable {
            Content::Copy(bytes)
        } else {
            Content::InPlace {
                first: offset / PAGE_SIZE,
            }
        },
    })
}

fn rights(flags: u32) -> Result<Rights, ImageError> {
    let pairs = [
        (elf::PF_R, Rights::READ),
        (elf::PF_W, Rights::WRITE),
        (elf::PF_X, Rights::EXECUTE),
    ];
    let rights = pairs
        .into_iter()
        .filter(|(flag, _)| flags & flag != 0)
        .fold(Rights::empty(), |rights, (_, right)| rights | right);
    let both = Rights::WRITE | Rights::EXECUTE;
    if rights.contains(both) || !rights.contains(Rights::READ) {
        return Err(ImageError::Rights);
    }
    Ok(rights)
}

/// The build-id note. A damaged note is none: nothing but the naming of samples depends on it.
fn build_id(headers: &[ProgramHeader64<LittleEndian>], file: &[u8]) -> [u8; BUILD_ID_MAX] {
    let mut id = [0; BUILD_ID_MAX];
    let notes = headers
        .iter()
        .filter_map(|header| header.notes(LittleEndian, file).ok().flatten());
    for mut notes in notes {
        while let Ok(Some(note)) = notes.next() {
            if note.name() == elf::ELF_NOTE_GNU && note.n_type(LittleEndian) == elf::NT_GNU_BUILD_ID
            {
                for (to, from) in id.iter_mut().zip(note.desc()) {
                    *to = *from;
                }
                return id;
            }
        }
    }
    id
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::elf::{Load, file};
    use proptest::prelude::*;

    const TEXT: Load = Load {
        address: 0x40_0000,
        flags: 5,
        in_file: 0x1800,
        in_memory: 0x1800,
    };
    const DATA: Load = Load {
        address: 0x40_2000,
        flags: 6,
        in_file: 0x10,
        in_memory: 0x2001,
    };

    #[test]
    fn text_is_mapped_in_place_and_data_is_copied() {
        let bytes = file(0x40_0010, &[TEXT, DATA]);
        let image = Image::read(&bytes).unwrap();
        assert_eq!(image.entry, 0x40_0010);
        assert_eq!(image.end(), 0x40_5000);
        let [text, data] = image.segments[..] else {
            panic!("two segments")
        };
        assert_eq!((text.address, text.pages), (0x40_0000, 2));
        assert_eq!(text.rights, Rights::READ | Rights::EXECUTE);
        assert_eq!(text.content, Content::InPlace { first: 1 });
        assert_eq!((data.address, data.pages), (0x40_2000, 3));
        assert_eq!(data.rights, Rights::READ | Rights::WRITE);
        assert_eq!(data.content, Content::Copy(&bytes[0x3000..0x3010]));
        assert_eq!(image.build_id[..2], [0xb1, 0xb2]);
    }

    #[test]
    fn each_defect_is_named() {
        let read =
            |entry, loads: &[Load]| Image::read(&file(entry, loads)).map(|_| ()).unwrap_err();
        assert_eq!(read(0x40_2000, &[TEXT, DATA]), ImageError::Entry);
        assert_eq!(read(0x40_0000, &[]), ImageError::SegmentCount);
        assert_eq!(read(0x40_0000, &[TEXT; 9]), ImageError::Placement);
        let low = Load {
            address: 0x1000,
            ..TEXT
        };
        assert_eq!(read(0x1000, &[low]), ImageError::Placement);
        let overlapping = Load {
            address: 0x40_1000,
            ..DATA
        };
        assert_eq!(read(0x40_0000, &[TEXT, overlapping]), ImageError::Placement);
        let huge = Load {
            in_memory: u64::MAX,
            ..DATA
        };
        assert_eq!(read(0x40_0000, &[TEXT, huge]), ImageError::Placement);
        let odd = Load {
            address: 0x40_0800,
            ..TEXT
        };
        assert_eq!(read(0x40_0800, &[odd]), ImageError::Alignment);
        let writable_code = Load { flags: 7, ..TEXT };
        assert_eq!(read(0x40_0000, &[writable_code]), ImageError::Rights);
        let blind = Load { flags: 1, ..TEXT };
        assert_eq!(read(0x40_0000, &[blind]), ImageError::Rights);
        let tail = Load {
            in_memory: 0x1801,
            ..TEXT
        };
        assert_eq!(read(0x40_0000, &[tail]), ImageError::Tail);
        let reversed = Load {
            in_memory: 1,
            ..DATA
        };
        assert_eq!(read(0x40_0000, &[TEXT, reversed]), ImageError::Tail);
        let mut many = [DATA; 9];
        for (index, load) in many.iter_mut().enumerate() {
            load.address = 0x41_0000 + index as u64 * 0x4000;
        }
        many[0] = TEXT;
        assert_eq!(read(0x40_0000, &many), ImageError::SegmentCount);
    }

    #[test]
    fn other_files_are_refused() {
        assert_eq!(Image::read(b"").unwrap_err(), ImageError::NotExecutable);
        let good = file(0x40_0000, &[TEXT]);
        for (at, value) in [(4, 1), (5, 2), (16, 3), (18, 3)] {
            let mut other = good.clone();
            other[at] = value;
            assert_eq!(
                Image::read(&other).unwrap_err(),
                ImageError::NotExecutable,
                "byte {at}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn a_damaged_file_is_refused_or_gives_sound_segments(
            damage in prop::collection::vec((0..0x200_usize, any::<u8>()), 1..6),
            len in 0..0x4000_usize,
        ) {
            let mut bytes = file(0x40_0010, &[TEXT, DATA]);
            for (at, value) in damage {
                bytes[at] = value;
            }
            bytes.truncate(bytes.len().min(len + 0x1000));
            if let Ok(image) = Image::read(&bytes) {
                let mut lowest = PROGRAM_BASE;
                for segment in &image.segments {
                    prop_assert!(segment.address >= lowest && segment.pages > 0);
                    prop_assert!(segment.address.is_multiple_of(PAGE_SIZE));
                    prop_assert!(!segment.rights.contains(Rights::WRITE | Rights::EXECUTE));
                    if let Content::InPlace { first } = segment.content {
                        let end = (first + segment.pages) * PAGE_SIZE;
                        prop_assert!(end < (bytes.len() as u64).next_multiple_of(PAGE_SIZE) + PAGE_SIZE);
                        prop_assert!(!segment.rights.contains(Rights::WRITE));
                    }
                    lowest = segment.end();
                }
                prop_assert!(lowest <= IMAGE_END + PAGE_SIZE);
            }
        }
    }
}

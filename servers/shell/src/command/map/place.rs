//! What is where in an address space, and from what that is known.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use ipc::abi::inspect::{MappingInfo, MappingSource, ProcessInfo, ThreadInfo};
use ipc::abi::layout::PAGE_SIZE;
use ipc::abi::startup::STARTUP_PAGE;
use ipc::bootfs::{Bootfs, File};
use object::LittleEndian;
use object::elf::{FileHeader64, PF_X, PT_LOAD, ProgramHeader64};
use object::read::elf::{FileHeader, ProgramHeader};

use super::super::stacks::is_stack;

type Elf = FileHeader64<LittleEndian>;

/// A segment that is loaded, by its program header.
struct Segment {
    address: u64,
    pages: u64,
}

/// The image of a process: the file that its code is mapped from.
struct Image<'a> {
    name: &'a str,
    segments: Vec<Segment>,
}

/// All that a mapping's name is derived from.
pub(super) struct Places<'a> {
    archive: Option<Bootfs<'a>>,
    image: Option<Image<'a>>,
    /// Addresses of the heap.
    heap: core::ops::Range<u64>,
    threads: &'a [ThreadInfo],
}

impl<'a> Places<'a> {
    /// For a process. Its image is the file from whose executable part it has something mapped where the file's headers want it.
    pub(super) fn new(
        archive: Option<Bootfs<'a>>,
        process: &ProcessInfo,
        mappings: &[MappingInfo],
        threads: &'a [ThreadInfo],
    ) -> Self {
        let image = mappings.iter().find_map(|mapping| {
            let (file, page) = file_of(archive.as_ref()?, mapping)?;
            let headers = loaded(file.data)?;
            let is_text = |header: &&ProgramHeader64<LittleEndian>| {
                header.p_flags(LittleEndian) & PF_X != 0
                    && header.p_vaddr(LittleEndian) == mapping.address
                    && header.p_offset(LittleEndian) == page * PAGE_SIZE
            };
            headers.iter().copied().find(is_text)?;
            let segments = headers.iter().map(|header| Segment {
                address: header.p_vaddr(LittleEndian),
                pages: header.p_memsz(LittleEndian).div_ceil(PAGE_SIZE),
            });
            Some(Image {
                name: file.name,
                segments: segments.collect(),
            })
        });
        // The loader puts the heap behind the image and a page that stays unmapped, as long as the quota (`ipc::abi::startup`).
        let end = (image.iter().flat_map(|image| &image.segments))
            .map(|segment| {
                segment
                    .address
                    .saturating_add(segment.pages.saturating_mul(PAGE_SIZE))
            })
            .max();
        let start = end.map_or(0, |end| end.saturating_add(PAGE_SIZE));
        let bytes = match end {
            Some(_) => process.quota_pages.saturating_mul(PAGE_SIZE),
            None => 0,
        };
        Self {
            archive,
            image,
            heap: start..start.saturating_add(bytes),
            threads,
        }
    }

    /// What a mapping is.
    pub(super) fn name(&self, mapping: &MappingInfo) -> String {
        match MappingSource::from_raw(mapping.source) {
            Some(MappingSource::Archive) => self.in_archive(mapping),
            Some(MappingSource::Rings) => "sample rings".into(),
            Some(MappingSource::Device) => "device".into(),
            Some(MappingSource::Contiguous) => format!("contiguous {:#x}", mapping.object),
            Some(MappingSource::Memory) => self.in_memory(mapping),
            None => "?".into(),
        }
    }

    fn in_archive(&self, mapping: &MappingInfo) -> String {
        let Some((file, page)) = self
            .archive
            .as_ref()
            .and_then(|archive| file_of(archive, mapping))
        else {
            return "boot archive".into();
        };
        match page {
            0 => file.name.to_string(),
            _ => format!("{} from {:#x}", file.name, page * PAGE_SIZE),
        }
    }

    fn in_memory(&self, mapping: &MappingInfo) -> String {
        if let Some(thread) = self.threads.iter().find(|thread| is_stack(thread, mapping)) {
            return format!("stack of tid {}", thread.tid);
        }
        if mapping.pages == 1 && mapping.address == STARTUP_PAGE {
            return "startup page".into();
        }
        let buffered = |thread: &&ThreadInfo| thread.buffer == mapping.object;
        if let Some(thread) = self.threads.iter().find(buffered) {
            return format!("ipc buffer of tid {}", thread.tid);
        }
        if let Some(image) = &self.image
            && (image.segments.iter())
                .any(|segment| segment.address == mapping.address && segment.pages == mapping.pages)
        {
            return format!("data of {}", image.name);
        }
        let end = mapping
            .address
            .saturating_add(mapping.pages.saturating_mul(PAGE_SIZE));
        if self.heap.start <= mapping.address && end <= self.heap.end {
            return "heap".into();
        }
        format!("memory object {:#x}", mapping.object)
    }
}

/// The file that all of a mapping of the archive lies in, and the page of it that is mapped first.
fn file_of<'a>(archive: &Bootfs<'a>, mapping: &MappingInfo) -> Option<(File<'a>, u64)> {
    if mapping.source != MappingSource::Archive as u64 {
        return None;
    }
    let last = mapping.first.checked_add(mapping.pages)?.checked_sub(1)?;
    let file = archive.files().find(|file| {
        let first = file.offset as u64 / PAGE_SIZE;
        let pages = (file.data.len() as u64).div_ceil(PAGE_SIZE);
        first <= mapping.first && last < first + pages
    })?;
    Some((file, mapping.first - file.offset as u64 / PAGE_SIZE))
}

/// The program headers of an ELF file's segments that are loaded.
fn loaded(data: &[u8]) -> Option<Vec<&ProgramHeader64<LittleEndian>>> {
    let header = Elf::parse(data).ok()?;
    let headers = header.program_headers(LittleEndian, data).ok()?;
    let loaded = headers
        .iter()
        .filter(|header| header.p_type(LittleEndian) == PT_LOAD);
    Some(loaded.collect())
}

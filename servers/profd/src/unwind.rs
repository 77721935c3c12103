//! Where a function's return address is, at each of its instructions, as its unwind table says.
//!
//! The profiler walks frame pointers, which are right everywhere but in the first and the last instructions of a function:
//! there the frame is not built yet, or gone. The unwind table ("call frame information", DWARF 5, section 6.4;
//! `.eh_frame`, System V ABI for AMD64, section 3.7) says for every instruction how to find the frame. Of that language
//! the rules that compilers write for such code matter here: the frame's address as an offset from RSP or RBP, and the
//! return address at an offset from it.

use alloc::vec::Vec;
use core::ops::Range;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, EndianSlice, LittleEndian, RegisterRule,
    UnwindContext, UnwindSection, X86_64,
};

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// How the return address is found from the registers as interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// RBP points to this function's frame: the walk found the caller.
    FramePointer,
    /// RBP is still, or again, the caller's. The frame's address (the value that RSP had before the call) is `frame` bytes
    /// above RSP, the return address `slot` bytes above RSP.
    StackPointer {
        /// From RSP to the frame's address.
        frame: i64,
        /// From RSP to the word that holds the return address.
        slot: i64,
    },
    /// It has no caller.
    Outermost,
    /// The table does not say, or says it in a way that is not read here.
    Unknown,
}

/// The unwind table of an image.
#[derive(Debug)]
pub struct Unwind<'a> {
    section: Section<'a>,
    bases: BaseAddresses,
    /// Sorted by address.
    entries: Vec<Entry>,
}

/// Which section the table is in. A core library built without unwind tables brings only `.debug_frame`.
#[derive(Debug)]
enum Section<'a> {
    EhFrame(EhFrame<Bytes<'a>>),
    DebugFrame(DebugFrame<Bytes<'a>>),
}

/// The entry of one function.
#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u64,
    size: u64,
    offset: usize,
}

impl<'a> Unwind<'a> {
    /// The table in an image's `.eh_frame`, which is loaded at `address`; its code begins at `text`.
    #[must_use]
    pub fn eh_frame(data: &'a [u8], address: u64, text: u64) -> Self {
        let mut section = EhFrame::new(data, LittleEndian);
        section.set_address_size(8);
        let bases = BaseAddresses::default()
            .set_eh_frame(address)
            .set_text(text);
        let entries = index(&section, &bases);
        Self {
            section: Section::EhFrame(section),
            bases,
            entries,
        }
    }

    /// The table in an image's `.debug_frame`.
    #[must_use]
    pub fn debug_frame(data: &'a [u8]) -> Self {
        let mut section = DebugFrame::new(data, LittleEndian);
        section.set_address_size(8);
        let bases = BaseAddresses::default();
        let entries = index(&section, &bases);
        Self {
            section: Section::DebugFrame(section),
            bases,
            entries,
        }
    }

    /// How the return address is found when the instruction at this address of the file is the next to run, and at which addresses around
    /// it it is found in the same way. `None` if the table does not say.
    #[must_use]
    pub fn rule(&self, address: u64) -> Option<(Range<u64>, Rule)> {
        let after = self.entries.partition_point(|entry| entry.start <= address);
        let entry = self.entries[after.checked_sub(1)?];
        if address - entry.start >= entry.size {
            return None;
        }
        let found = match &self.section {
            Section::EhFrame(section) => rule(section, &self.bases, entry.offset.into(), address),
            Section::DebugFrame(section) => {
                rule(section, &self.bases, entry.offset.into(), address)
            }
        };
        found.ok().filter(|&(_, rule)| rule != Rule::Unknown)
    }
}

/// Every function's entry, sorted; what follows damage is left out.
fn index<'a, S: UnwindSection<Bytes<'a>>>(section: &S, bases: &BaseAddresses) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut all = section.entries(bases);
    while let Ok(Some(entry)) = all.next() {
        let CieOrFde::Fde(partial) = entry else {
            continue;
        };
        // The linker leaves entries of functions that it left out, at address 0.
        if let Ok(fde) = partial.parse(S::cie_from_offset)
            && fde.initial_address() != 0
        {
            entries.push(Entry {
                start: fde.initial_address(),
                size: fde.len(),
                offset: fde.offset(),
            });
        }
    }
    entries.sort_unstable_by_key(|entry| entry.start);
    entries
}

fn rule<'a, S: UnwindSection<Bytes<'a>>>(
    section: &S,
    bases: &BaseAddresses,
    offset: S::Offset,
    address: u64,
) -> Result<(Range<u64>, Rule), gimli::Error> {
    let entry = section.fde_from_offset(bases, offset, S::cie_from_offset)?;
    let mut context = UnwindContext::new();
    let row = entry.unwind_info_for_address(section, bases, &mut context, address)?;
    let rule = match (row.cfa(), row.register(X86_64::RA)) {
        (CfaRule::Expression(_), _) => Rule::Unknown,
        (_, Some(RegisterRule::Undefined)) => Rule::Outermost,
        (&CfaRule::RegisterAndOffset { register, offset }, slot) => match (register, slot) {
            (X86_64::RBP, _) => Rule::FramePointer,
            (X86_64::RSP, Some(RegisterRule::Offset(slot))) => Rule::StackPointer {
                frame: offset,
                slot: offset.saturating_add(slot),
            },
            _ => Rule::Unknown,
        },
    };
    Ok((row.start_address()..row.end_address(), rule))
}

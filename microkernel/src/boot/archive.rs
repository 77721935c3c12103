//! The boot module: is there one, is it whole, and what in it is the kernel's?

use crate::arch::direct::module_bytes;
use crate::fatal::{refuse, set_archive};
use ipc::bootfs::{ALIGNMENT, Bootfs, NEEDS, SIZE_MAX, SYSTEM};
use kcore::base::addr::{Frame, PhysAddr};
use kcore::boot::memory::{Range, RangeSet};

/// The boot module, as found in memory.
#[derive(Clone, Copy, Debug)]
pub struct Module {
    range: Range,
    /// Bytes of memory that the programs in it are promised together.
    pub needs: u64,
}

/// Checks the module that the loader gave, and lets panics use its symbols.
pub fn find(given: Option<Range>, mapped: &RangeSet) -> Module {
    let Some(range) = given else {
        refuse(format_args!("no bootfs was given (-initrd)"));
    };
    if !range.start.is_multiple_of(ALIGNMENT as u64) {
        refuse(format_args!("bootfs does not begin on a page"));
    }
    if range.bytes() > SIZE_MAX as u64 {
        let bytes = range.bytes();
        refuse(format_args!(
            "bootfs is too large: {bytes} bytes of at most {SIZE_MAX}"
        ));
    }
    if !mapped.contains(range.outer_pages()) {
        refuse(format_args!("bootfs lies out of reach"));
    }
    let archive = Bootfs::parse(module_bytes(range))
        .unwrap_or_else(|error| refuse(format_args!("bootfs: {error}")));
    set_archive(archive);
    for name in [SYSTEM, NEEDS] {
        match archive.find(name).map(|file| file.verify()) {
            Some(Ok(())) => {}
            Some(Err(error)) => refuse(format_args!("bootfs: {name}: {error}")),
            None => refuse(format_args!("bootfs: it has no file named {name}")),
        }
    }
    let kib = archive.find(NEEDS).and_then(|file| number(file.data));
    match kib {
        Some(kib) => Module {
            range,
            needs: u64::from(kib) << 10,
        },
        None => refuse(format_args!("bootfs: {NEEDS} holds no number")),
    }
}

/// A decimal number.
fn number(text: &[u8]) -> Option<u32> {
    core::str::from_utf8(text).ok()?.trim_ascii().parse().ok()
}

impl Module {
    /// Its first frame.
    pub const fn base(self) -> Frame {
        PhysAddr(self.range.start).frame()
    }

    /// Its bytes.
    pub fn bytes(self) -> &'static [u8] {
        module_bytes(self.range)
    }
}

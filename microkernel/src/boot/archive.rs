//! The boot module: is there one, is it whole, and where are the kernel's symbols in it?

use crate::arch::direct::module_bytes;
use crate::fatal::{refuse, set_symbols};
use ipc::bootfs::{ALIGNMENT, Bootfs, KERNEL_SYMBOLS, SIZE_MAX};
use kcore::base::addr::{Frame, PhysAddr};
use kcore::boot::memory::{Range, RangeSet};

/// The boot module, as found in memory.
#[derive(Clone, Copy, Debug)]
pub struct Module {
    range: Range,
}

/// Checks the module that the loader gave, and lets panics use its symbols.
pub fn find(given: Option<Range>, mapped: &RangeSet) -> Module {
    let Some(range) = given else {
        refuse(format_args!("no boot archive was given (-initrd)"));
    };
    if !range.start.is_multiple_of(ALIGNMENT as u64) {
        refuse(format_args!("the boot archive does not begin on a page"));
    }
    if range.bytes() > SIZE_MAX as u64 {
        refuse(format_args!(
            "the boot archive is too large: {} bytes of at most {SIZE_MAX}",
            range.bytes()
        ));
    }
    if !mapped.contains(range.outer_pages()) {
        refuse(format_args!("the boot archive lies out of reach"));
    }
    let module = Module { range };
    match Bootfs::parse(module.bytes()) {
        Ok(archive) => {
            if let Some(symbols) = archive.find(KERNEL_SYMBOLS) {
                set_symbols(symbols.data);
            }
        }
        Err(error) => refuse(format_args!("boot archive: {error}")),
    }
    module
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

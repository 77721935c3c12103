//! Where the kernel image lies, as the linker script says.

use super::layout::KERNEL_BASE;
use kcore::boot::memory::Range;
use kcore::profile::{KernelMap, Span};

unsafe extern "C" {
    static __boot_start: u8;
    static __boot_end: u8;
    static __text_start: u8;
    static __text_end: u8;
    static __rodata_end: u8;
    static __kernel_end: u8;
    static __build_id_start: u8;
    static __build_id_end: u8;
    static stubs_start: u8;
    static stubs_end: u8;
    static syscall_switched: u8;
    static syscall_saved: u8;
    static vector_stubs: u8;
    static interrupt_saved: u8;
    static idle_end: u8;
    fn syscall_entry();
    fn idle() -> !;
}

/// The parts of the image, by virtual address; all but `boot` are linked at [`KERNEL_BASE`].
#[derive(Clone, Copy, Debug)]
pub struct Image {
    /// Needed by the start alone, at its physical address.
    pub boot: Range,
    /// Code.
    pub text: Range,
    /// Constants.
    pub rodata: Range,
    /// Variables.
    pub data: Range,
}

/// The image's parts.
#[must_use]
pub fn image() -> Image {
    let range = |start: *const u8, end: *const u8| Range {
        start: start as u64,
        end: end as u64,
    };
    Image {
        boot: range(&raw const __boot_start, &raw const __boot_end),
        text: range(&raw const __text_start, &raw const __text_end),
        rodata: range(&raw const __text_end, &raw const __rodata_end),
        data: range(&raw const __rodata_end, &raw const __kernel_end),
    }
}

/// The physical place of a part.
#[must_use]
pub const fn physical(part: Range) -> Range {
    Range {
        start: part.start - KERNEL_BASE,
        end: part.end - KERNEL_BASE,
    }
}

/// The entry and exit stubs, in which RSP, RBP and GS may be the user's.
#[must_use]
pub fn stubs() -> Range {
    Range {
        start: &raw const stubs_start as u64,
        end: &raw const stubs_end as u64,
    }
}

/// The kernel's code as a sample sees it; `stubs` has [`stubs`] in it.
#[must_use]
pub fn kernel_map(stubs: &'static [Span]) -> KernelMap {
    let span = |start, end: *const u8| Span {
        start,
        end: end as u64,
    };
    let text = image().text;
    KernelMap {
        text: Span {
            start: text.start,
            end: text.end,
        },
        stubs,
        syscall: span(syscall_entry as *const () as u64, &raw const syscall_saved),
        syscall_switched: &raw const syscall_switched as u64,
        interrupts: span(&raw const vector_stubs as u64, &raw const interrupt_saved),
    }
}

/// Whether an address is in the idle loop.
#[must_use]
pub fn is_idle(rip: u64) -> bool {
    (idle as *const () as u64..&raw const idle_end as u64).contains(&rip)
}

/// Whether an address is in the kernel's code.
#[must_use]
pub fn is_text(address: u64) -> bool {
    let text = image().text;
    (text.start..text.end).contains(&address)
}

/// The note that tells this build from every other.
#[must_use]
pub fn build_id() -> &'static [u8] {
    let start = &raw const __build_id_start;
    let bytes = &raw const __build_id_end as usize - start as usize;
    // SAFETY: the linker put the note between these two labels, among the constants.
    unsafe { core::slice::from_raw_parts(start, bytes) }
}

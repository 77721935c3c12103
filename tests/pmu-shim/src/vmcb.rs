//! The control block of a guest (AMD64 manual volume 2, appendix B), without the fields that are not used.

/// A segment register.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Segment {
    pub selector: u16,
    pub attributes: u16,
    pub limit: u32,
    pub base: u64,
}

/// Intercepts of [`Vmcb::intercepts`].
pub mod intercept {
    pub const INTERRUPT: u32 = 1 << 0;
    pub const NMI: u32 = 1 << 1;
    pub const CPUID: u32 = 1 << 18;
    pub const IRET: u32 = 1 << 20;
    pub const HLT: u32 = 1 << 24;
    pub const MSR: u32 = 1 << 28;
    pub const SHUTDOWN: u32 = 1 << 31;
    /// Of [`super::Vmcb::svm_intercepts`]: all of SVM's instructions.
    pub const SVM: u32 = 0x7f;
    /// Of [`super::Vmcb::exceptions`].
    pub const DEBUG: u32 = 1 << 1;
}

/// What ended the guest's turn: [`Vmcb::exit_code`] (appendix C).
pub mod code {
    pub const DEBUG: u64 = 0x41;
    pub const INTERRUPT: u64 = 0x60;
    pub const NMI: u64 = 0x61;
    pub const CPUID: u64 = 0x72;
    pub const IRET: u64 = 0x74;
    pub const HLT: u64 = 0x78;
    pub const MSR: u64 = 0x7c;
    pub const SHUTDOWN: u64 = 0x7f;
    pub const SVM_FIRST: u64 = 0x80;
    pub const SVM_LAST: u64 = 0x86;
}

/// Values of [`Vmcb::event`] (AMD64 manual volume 2, "Event Injection").
pub mod event {
    pub const NMI: u64 = 1 << 31 | 2 << 8 | 2;
    /// With an error code of 0.
    pub const GENERAL_PROTECTION: u64 = 1 << 31 | 1 << 11 | 3 << 8 | 13;
    pub const INVALID_OPCODE: u64 = 1 << 31 | 3 << 8 | 6;
}

/// The control block.
#[repr(C, align(4096))]
#[derive(Debug)]
pub struct Vmcb {
    _registers: [u32; 2],
    pub exceptions: u32,
    pub intercepts: u32,
    pub svm_intercepts: u32,
    _014: [u8; 0x2c],
    _040: u64,
    pub msr_map: u64,
    /// Added to the time-stamp counter that the guest reads.
    pub tsc_offset: u64,
    pub address_space: u32,
    _05c: [u8; 0x14],
    pub exit_code: u64,
    /// Of an access to an MSR: 1 if it writes.
    pub exit_info: u64,
    _080: [u8; 0x28],
    pub event: u64,
    _0b0: [u8; 0x350],
    pub es: Segment,
    pub cs: Segment,
    pub ss: Segment,
    pub ds: Segment,
    _440: [u8; 0x20],
    pub gdtr: Segment,
    _470: [u8; 0x10],
    pub idtr: Segment,
    _490: [u8; 0x40],
    pub efer: u64,
    _4d8: [u8; 0x70],
    pub cr4: u64,
    pub cr3: u64,
    pub cr0: u64,
    pub dr7: u64,
    pub dr6: u64,
    pub rflags: u64,
    pub rip: u64,
    _580: [u8; 0x58],
    pub rsp: u64,
    _5e0: [u8; 0x18],
    pub rax: u64,
    _600: [u8; 0xa00],
}

const _: () = {
    use core::mem::offset_of;
    assert!(offset_of!(Vmcb, intercepts) == 0xc);
    assert!(offset_of!(Vmcb, msr_map) == 0x48);
    assert!(offset_of!(Vmcb, tsc_offset) == 0x50);
    assert!(offset_of!(Vmcb, address_space) == 0x58);
    assert!(offset_of!(Vmcb, exit_code) == 0x70);
    assert!(offset_of!(Vmcb, event) == 0xa8);
    assert!(offset_of!(Vmcb, es) == 0x400);
    assert!(offset_of!(Vmcb, gdtr) == 0x460);
    assert!(offset_of!(Vmcb, idtr) == 0x480);
    assert!(offset_of!(Vmcb, efer) == 0x4d0);
    assert!(offset_of!(Vmcb, cr4) == 0x548);
    assert!(offset_of!(Vmcb, rip) == 0x578);
    assert!(offset_of!(Vmcb, rsp) == 0x5d8);
    assert!(offset_of!(Vmcb, rax) == 0x5f8);
    assert!(size_of::<Vmcb>() == 4096);
};

/// EFER's bit that SVM needs set in host and guest.
pub const SVME: u64 = 1 << 12;
/// Of DR6: an instruction was stepped. The bits that are always set.
pub const DR6_STEP: u64 = 1 << 14;
const DR6_FIXED: u64 = 0xffff_0ff0;
const DR7_FIXED: u64 = 0x400;
/// Of RFLAGS: step.
pub const TRAP: u64 = 1 << 8;
const RFLAGS_FIXED: u64 = 2;

const CODE_32: u16 = 0xc9b;
const DATA_32: u16 = 0xc93;
const CODE_16: u16 = 0x9b;
const DATA_16: u16 = 0x93;

impl Vmcb {
    /// A CPU after its reset, in what a loader or a start-up interrupt then changes.
    const fn reset() -> Self {
        const NONE: Segment = Segment {
            selector: 0,
            attributes: 0,
            limit: 0xffff,
            base: 0,
        };
        const DATA: Segment = Segment {
            attributes: DATA_16,
            ..NONE
        };
        Self {
            _registers: [0; 2],
            exceptions: 0,
            intercepts: 0,
            svm_intercepts: intercept::SVM,
            _014: [0; _],
            _040: 0,
            msr_map: 0,
            tsc_offset: 0,
            address_space: 1,
            _05c: [0; _],
            exit_code: 0,
            exit_info: 0,
            _080: [0; _],
            event: 0,
            _0b0: [0; _],
            es: DATA,
            cs: Segment {
                attributes: CODE_16,
                ..NONE
            },
            ss: DATA,
            ds: DATA,
            _440: [0; _],
            gdtr: NONE,
            _470: [0; _],
            idtr: NONE,
            _490: [0; _],
            efer: SVME,
            _4d8: [0; _],
            cr4: 0,
            cr3: 0,
            cr0: 0x10,
            dr7: DR7_FIXED,
            dr6: DR6_FIXED,
            rflags: RFLAGS_FIXED,
            rip: 0,
            _580: [0; _],
            rsp: 0,
            _5e0: [0; _],
            rax: 0,
            _600: [0; _],
        }
    }

    /// As a start-up interrupt leaves it: in real mode at the beginning of a page (SDM volume 3A, "MP Initialization
    /// Example").
    pub const fn at_page(page: u8) -> Self {
        let mut vmcb = Self::reset();
        vmcb.cs.selector = (page as u16) << 8;
        vmcb.cs.base = (page as u64) << 12;
        vmcb
    }

    /// As a loader leaves it by the PVH protocol: in 32-bit protected mode at `entry`.
    pub const fn at_entry(entry: u64) -> Self {
        let mut vmcb = Self::reset();
        let data = Segment {
            selector: 0x10,
            attributes: DATA_32,
            limit: u32::MAX,
            base: 0,
        };
        vmcb.cs = Segment {
            selector: 0x08,
            attributes: CODE_32,
            ..data
        };
        (vmcb.ds, vmcb.es, vmcb.ss) = (data, data, data);
        vmcb.cr0 = 0x11;
        vmcb.rip = entry;
        vmcb
    }
}

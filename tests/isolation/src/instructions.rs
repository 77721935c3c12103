//! Instructions that are the kernel's alone, or of registers that programs do not have.

use core::arch::{asm, global_asm};

use ipc::abi::exit::FaultKind::{self, Breakpoint, Debug, InvalidOpcode, NoFpu, Protection};

use crate::attack::Attack;
use crate::attack::Wants::{Fault, Segment, Umip};

const PROTECTED: &[FaultKind] = &[Protection];
/// Where the processor does not know the instruction, or has it turned off.
const INVALID: &[FaultKind] = &[InvalidOpcode];
/// Where it depends on the processor which of the two.
const EITHER: &[FaultKind] = &[InvalidOpcode, Protection];
const NO_FPU: &[FaultKind] = &[NoFpu];

/// The vector that programs may raise, with which one that panicked ends itself.
const BREAKPOINT: u64 = 3;
/// Every other.
const VECTORS: &[u64] = &{
    let mut vectors = [0; 255];
    let mut at = 0;
    while at < vectors.len() {
        vectors[at] = at as u64 + (at as u64 >= BREAKPOINT) as u64;
        at += 1;
    }
    vectors
};

/// DMA, interrupt controllers, timer, keyboard, clock, the network card's and PCI's, the serial line, and the one that ends QEMU.
const PORTS: &[u64] = &[
    0x0, 0x20, 0x21, 0x40, 0x60, 0x64, 0x70, 0x71, 0x80, 0xa1, 0xf4, 0x3f8, 0xcf8, 0xcfc, 0xc000,
    0xffff,
];
/// IA32_TIME_STAMP_COUNTER, IA32_APIC_BASE, IA32_SYSENTER_EIP, IA32_PERFEVTSEL0, IA32_DEBUGCTL, IA32_FIXED_CTR1, IA32_PERF_GLOBAL_CTRL, an
/// x2APIC register, IA32_EFER, IA32_STAR, IA32_LSTAR, IA32_FMASK, the three bases, and one that is not there (Intel SDM volume 4, 2.1).
const MSRS: &[u64] = &[
    0x10,
    0x1b,
    0x176,
    0x186,
    0x1d9,
    0x30a,
    0x38f,
    0x830,
    0xc000_0080,
    0xc000_0081,
    0xc000_0082,
    0xc000_0084,
    0xc000_0100,
    0xc000_0101,
    0xc000_0102,
    0xdead_beef,
];

global_asm!(
    // `int N; ret`, four bytes each.
    ".text",
    ".balign 4",
    ".globl isolation_vectors",
    "isolation_vectors:",
    ".set vector, 0",
    ".rept 256",
    ".byte 0xcd, vector",
    "ret",
    "nop",
    ".set vector, vector + 1",
    ".endr",
);

unsafe extern "C" {
    static isolation_vectors: u8;
}

/// Raises an interrupt.
fn raise(vector: u64) -> u64 {
    let at = &raw const isolation_vectors as u64 + 4 * vector;
    // SAFETY: the instruction there faults; where the system is broken and it does not, RET comes back.
    unsafe { asm!("call rax", inout("rax") at => _, clobber_abi("sysv64")) }
    0
}

/// An attack of instructions that must fault. RAX, RCX and RDX have the value.
macro_rules! instruction {
    ($promise:literal, $name:literal, $wants:expr, $($code:literal),+ $(,)?) => {
        Attack::new($promise, $name, $wants, |value| {
            // SAFETY: it faults and so ends the process; where the system is broken and it does not, the judge sees that this
            // program went on, or that the machine did not.
            unsafe {
                asm!($($code),+, inout("rax") value => _, inout("rcx") value => _, inout("rdx") value => _)
            }
            0
        })
    };
}

/// The attacks.
pub const ATTACKS: &[Attack] = &[
    instruction!("ports", "in, a byte", Fault(PROTECTED), "in al, dx").with(PORTS),
    instruction!("ports", "in, two bytes", Fault(PROTECTED), "in ax, dx").with(PORTS),
    instruction!("ports", "in, four bytes", Fault(PROTECTED), "in eax, dx").with(PORTS),
    instruction!("ports", "out, a byte", Fault(PROTECTED), "out dx, al").with(PORTS),
    instruction!("ports", "out, two bytes", Fault(PROTECTED), "out dx, ax").with(PORTS),
    instruction!("ports", "out, four bytes", Fault(PROTECTED), "out dx, eax").with(PORTS),
    instruction!("ports", "ins", Fault(PROTECTED), "insb").with(PORTS),
    instruction!("ports", "outs", Fault(PROTECTED), "outsb").with(PORTS),
    instruction!("MSRs", "rdmsr", Fault(PROTECTED), "rdmsr").with(MSRS),
    instruction!("MSRs", "wrmsr", Fault(PROTECTED), "wrmsr").with(MSRS),
    instruction!("MSRs", "rdfsbase", Fault(INVALID), "rdfsbase rax"),
    instruction!("MSRs", "wrgsbase", Fault(INVALID), "wrgsbase rax"),
    instruction!("MSRs", "swapgs", Fault(PROTECTED), "swapgs"),
    instruction!("counters", "rdpmc", Fault(PROTECTED), "rdpmc").with(&[
        0,
        1,
        1 << 30,
        (1 << 30) + 1,
    ]),
    instruction!("privileged instructions", "hlt", Fault(PROTECTED), "hlt"),
    instruction!("privileged instructions", "cli", Fault(PROTECTED), "cli"),
    instruction!("privileged instructions", "sti", Fault(PROTECTED), "sti"),
    instruction!("privileged instructions", "mwait", Fault(EITHER), "mwait"),
    instruction!(
        "privileged instructions",
        "read cr0",
        Fault(PROTECTED),
        "mov rax, cr0"
    ),
    instruction!(
        "privileged instructions",
        "read cr3",
        Fault(PROTECTED),
        "mov rax, cr3"
    ),
    instruction!(
        "privileged instructions",
        "write cr0",
        Fault(PROTECTED),
        "mov cr0, rax"
    ),
    instruction!(
        "privileged instructions",
        "write cr3",
        Fault(PROTECTED),
        "mov cr3, rax"
    ),
    instruction!(
        "privileged instructions",
        "write cr4",
        Fault(PROTECTED),
        "mov cr4, rax"
    ),
    instruction!(
        "privileged instructions",
        "write cr8",
        Fault(PROTECTED),
        "mov cr8, rax"
    ),
    instruction!("privileged instructions", "clts", Fault(PROTECTED), "clts"),
    instruction!(
        "privileged instructions",
        "lmsw",
        Fault(PROTECTED),
        "lmsw ax"
    ),
    instruction!(
        "privileged instructions",
        "read dr7",
        Fault(PROTECTED),
        "mov rax, dr7"
    ),
    instruction!(
        "privileged instructions",
        "write dr7",
        Fault(PROTECTED),
        "mov dr7, rax"
    ),
    instruction!(
        "privileged instructions",
        "lgdt",
        Fault(PROTECTED),
        "lgdt [rsp]"
    ),
    instruction!(
        "privileged instructions",
        "lidt",
        Fault(PROTECTED),
        "lidt [rsp]"
    ),
    instruction!(
        "privileged instructions",
        "lldt",
        Fault(PROTECTED),
        "lldt ax"
    ),
    instruction!("privileged instructions", "ltr", Fault(PROTECTED), "ltr ax"),
    instruction!(
        "privileged instructions",
        "invlpg",
        Fault(PROTECTED),
        "invlpg [rsp]"
    ),
    instruction!("privileged instructions", "invd", Fault(PROTECTED), "invd"),
    instruction!(
        "privileged instructions",
        "wbinvd",
        Fault(PROTECTED),
        "wbinvd"
    ),
    instruction!("privileged instructions", "xsetbv", Fault(EITHER), "xsetbv"),
    instruction!("privileged instructions", "stac", Fault(INVALID), "stac"),
    instruction!("privileged instructions", "vmrun", Fault(EITHER), "vmrun"),
    instruction!("privileged instructions", "vmcall", Fault(EITHER), "vmcall"),
    instruction!("privileged instructions", "rsm", Fault(INVALID), "rsm"),
    instruction!(
        "ways into the kernel",
        "sysret",
        Fault(PROTECTED),
        "sysretq"
    ),
    instruction!(
        "ways into the kernel",
        "sysenter",
        Fault(EITHER),
        "sysenter"
    ),
    instruction!("ways into the kernel", "sysexit", Fault(EITHER), "sysexit"),
    instruction!(
        "ways into the kernel",
        "kernel code segment, by ret",
        Segment,
        "lea rax, [rip + 2f]",
        "push 0x8",
        "push rax",
        "retfq",
        "2:"
    ),
    instruction!(
        "ways into the kernel",
        "kernel code segment, by iret",
        Segment,
        "mov rcx, rsp",
        "lea rax, [rip + 2f]",
        "push 0x10",
        "push rcx",
        "pushfq",
        "push 0x8",
        "push rax",
        "iretq",
        "2:"
    ),
    instruction!(
        "ways into the kernel",
        "kernel stack segment",
        Fault(PROTECTED),
        "mov eax, 0x10",
        "mov ss, ax"
    ),
    instruction!(
        "ways into the kernel",
        "kernel data segment",
        Fault(PROTECTED),
        "mov eax, 0x10",
        "mov ds, ax"
    ),
    instruction!(
        "ways into the kernel",
        "task segment",
        Fault(PROTECTED),
        "mov eax, 0x28",
        "mov fs, ax"
    ),
    Attack::new(
        "ways into the kernel",
        "each vector but a breakpoint",
        Fault(PROTECTED),
        raise,
    )
    .with(VECTORS),
    Attack::new(
        "ways into the kernel",
        "a breakpoint",
        Fault(&[Breakpoint]),
        raise,
    )
    .with(&[BREAKPOINT]),
    instruction!(
        "ways into the kernel",
        "icebp",
        Fault(&[Debug, InvalidOpcode]),
        ".byte 0xf1"
    ),
    instruction!(
        "ways into the kernel",
        "a step",
        Fault(&[Debug]),
        "pushfq",
        "or qword ptr [rsp], 0x100",
        "popfq",
        "nop",
        "nop"
    ),
    // The system call `null`, as the next instruction.
    instruction!(
        "ways into the kernel",
        "a step over SYSCALL",
        Fault(&[Debug]),
        "push r11",
        "pushfq",
        "or qword ptr [rsp], 0x100",
        "popfq",
        "syscall",
        "nop",
        "pop r11"
    ),
    instruction!(
        "UMIP",
        "sgdt",
        Umip,
        "sub rsp, 16",
        "sgdt [rsp]",
        "add rsp, 16"
    ),
    instruction!(
        "UMIP",
        "sidt",
        Umip,
        "sub rsp, 16",
        "sidt [rsp]",
        "add rsp, 16"
    ),
    instruction!("UMIP", "sldt", Umip, "sldt eax"),
    instruction!("UMIP", "str", Umip, "str eax"),
    instruction!("UMIP", "smsw", Umip, "smsw eax"),
    instruction!(
        "x87, MMX, SSE",
        "an x87 instruction",
        Fault(NO_FPU),
        "fninit"
    ),
    instruction!(
        "x87, MMX, SSE",
        "an MMX register",
        Fault(NO_FPU),
        "movq mm0, rax"
    ),
    instruction!(
        "x87, MMX, SSE",
        "an SSE register",
        Fault(NO_FPU),
        "xorps xmm0, xmm0"
    ),
    instruction!(
        "x87, MMX, SSE",
        "SSE's control",
        Fault(NO_FPU),
        "ldmxcsr [rsp]"
    ),
    instruction!(
        "x87, MMX, SSE",
        "all of them",
        Fault(NO_FPU),
        "mov rcx, rsp",
        "sub rsp, 0x400",
        "and rsp, -16",
        "fxsave [rsp]",
        "mov rsp, rcx"
    ),
    instruction!(
        "x87, MMX, SSE",
        "an AVX register",
        Fault(INVALID),
        "vxorps ymm0, ymm0, ymm0"
    ),
    instruction!("x87, MMX, SSE", "XSAVE's control", Fault(INVALID), "xgetbv"),
];

//! `crash KIND`: does what a program must not do, to see that it harms itself only.
//!
//! Each kind is said in instructions, so that no compiler can find it undefined and do something else.
#![no_std]
#![no_main]

use core::arch::asm;
use core::hint::black_box;

use sysroot::{ExitCode, println};

sysroot::entry!(main);

/// Every kind, and what it does.
const KINDS: [&str; 10] = [
    "null", "wild", "stack", "ud2", "divide", "hlt", "port", "sse", "exec", "panic",
];

fn main() -> Result<(), ExitCode> {
    let kind = programs::parse("crash KIND", 1, |arguments| {
        arguments.choice(0, "KIND", &KINDS)
    })?;
    crash(KINDS[kind]);
    println!("crash: still here after {}", KINDS[kind]);
    Err(ExitCode::FAILURE)
}

/// One instruction that must fault, and why it does.
macro_rules! fault {
    ($($instruction:literal),+) => {
        // SAFETY: the last instruction faults and so ends the process; where the system is broken and it does not, it
        // writes nothing but the registers listed.
        unsafe {
            asm!($($instruction),+, out("rax") _, out("rcx") _, out("rdx") _, options(nostack))
        }
    };
}

#[inline(never)]
fn crash(kind: &str) {
    match kind {
        "null" => fault!("xor eax, eax", "mov rax, [rax]"),
        // A canonical address of the user half, where nothing is mapped.
        "wild" => fault!("mov rax, 0x5eadbeef0000", "mov rax, [rax]"),
        "stack" => _ = black_box(descend(0)),
        "ud2" => fault!("ud2"),
        "divide" => fault!("xor ecx, ecx", "xor edx, edx", "mov eax, 1", "div ecx"),
        "hlt" => fault!("hlt"),
        // The keyboard controller's port.
        "port" => fault!("in al, 0x60"),
        "sse" => fault!("xorps xmm0, xmm0"),
        // The stack is not executable.
        "exec" => fault!("jmp rsp"),
        _ => panic!("asked to"),
    }
}

/// Calls itself until the stack is used up.
#[inline(never)]
#[expect(unconditional_recursion, reason = "the stack is to overflow")]
fn descend(depth: u64) -> u64 {
    black_box(descend(black_box(depth + 1))) + 1
}

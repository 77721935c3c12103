//! Flags that a program may set, and the kernel's code must not run with; and those that it may not set.

use core::arch::asm;

use ipc::abi::Handle;
use sysroot::{record, startup};

use crate::attack::Attack;
use crate::attack::Wants::Refused;

/// RFLAGS (Intel SDM volume 1, 3.4.3).
const TRAP_FREE: [u64; 3] = [DIRECTION, NESTED_TASK, ALIGNMENT];
const INTERRUPTS: u64 = 1 << 9;
const DIRECTION: u64 = 1 << 10;
const IO_PRIVILEGE: u64 = 3 << 12;
const NESTED_TASK: u64 = 1 << 14;
const ALIGNMENT: u64 = 1 << 18;
const VIRTUAL_INTERRUPTS: u64 = 3 << 19;
/// Turns of a loop that lasts for several ticks.
const TURNS: u64 = 20_000_000;

/// The attacks.
pub const ATTACKS: &[Attack] = &[
    Attack::new("flags", "mask interrupts, take ports", Refused, take),
    Attack::new(
        "flags",
        "enter the kernel with its flags wrong",
        Refused,
        enter,
    ),
    Attack::new(
        "flags",
        "be interrupted with its flags wrong",
        Refused,
        interrupted,
    ),
];

/// Puts a value into the flags, and gives what they then are.
fn put(flags: u64) -> u64 {
    let now;
    // SAFETY: the flags asked for change nothing that compiled code relies on but the direction, which is put back.
    unsafe {
        asm!(
            "pushfq", "mov rcx, [rsp]", "push rax", "popfq", "pushfq", "pop rax", "popfq",
            inout("rax") flags => now, out("rcx") _
        );
    }
    now
}

/// POPF changes neither IF nor IOPL in a program, and says nothing.
fn take(_: u64) -> u64 {
    let flags = put(0);
    assert_eq!(
        flags & (INTERRUPTS | IO_PRIVILEGE),
        INTERRUPTS,
        "interrupts are masked"
    );
    let flags = put(INTERRUPTS | IO_PRIVILEGE | VIRTUAL_INTERRUPTS);
    assert_eq!(flags & IO_PRIVILEGE, 0, "it has the ports");
    2
}

/// Asks for its own state with each flag set: the kernel copies a record, which would go wrong backwards.
fn enter(_: u64) -> u64 {
    for flag in TRAP_FREE {
        let status: u64;
        // SAFETY: process_status of the caller writes to the IPC buffer alone; the flags are put back.
        unsafe {
            asm!(
                "pushfq", "push rdi", "popfq", "xor edi, edi", "syscall", "popfq",
                inout("rax") ipc::abi::Syscall::process_status as u64 => status,
                inout("rdi") flag | INTERRUPTS => _,
                out("rsi") _, out("rdx") _, out("rcx") _, out("r11") _,
            );
        }
        assert_eq!(status, 0, "flag {flag:#x}");
        let pid = u64::from(startup::page().pid);
        let wrong = record::process_status(Handle::NONE).map(|status| status.pid != pid);
        assert_eq!(wrong, Ok(false), "flag {flag:#x}");
    }
    TRAP_FREE.len() as u64
}

/// Goes on through ticks with each flag set.
fn interrupted(_: u64) -> u64 {
    for flag in TRAP_FREE {
        // SAFETY: the loop uses no memory, and the flags are put back.
        unsafe {
            asm!(
                "pushfq", "push rdi", "popfq", "2: dec rcx", "jnz 2b", "popfq",
                in("rdi") flag | INTERRUPTS,
                inout("rcx") TURNS => _,
            );
        }
    }
    TRAP_FREE.len() as u64
}

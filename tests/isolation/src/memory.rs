//! Memory that a program must not reach, and what it must not do with its own.

use alloc::boxed::Box;
use core::sync::atomic::AtomicU64;

use ipc::abi::exit::{FAULT_FETCH, FAULT_PRESENT, FAULT_USER, FAULT_WRITE, FaultKind};
use ipc::abi::layout::{INFO_PAGE, PAGE_SIZE, USER_END, USER_START};
use ipc::abi::startup::{IPC_BUFFER, STACK_GUARD, STARTUP_PAGE};
use ipc::abi::{Error, Handle, Rights};
use sysroot::{Mapping, handle, syscall, thread};

use crate::access::{execute, overflow, read, write};
use crate::attack::Attack;
use crate::attack::Wants::{Fault, Guard, Kernel, Page, Refused};

/// Where [`crate::judge`] has a page of its own, and this program nothing.
pub const SECRET: u64 = 0x4000_0000_0000;

/// The kernel's memory, as the memory map in `docs/boot.md` has it: first bytes of the direct map, of RAM from 1 MiB on there, of the
/// first CPU's stack, of devices' registers, of the kernel's image; and both ends of the upper half.
const KERNEL: &[u64] = &[
    0xffff_8000_0000_0000,
    0xffff_8000_0010_0000,
    0xffff_c000_0000_1000,
    0xffff_d000_0010_0000,
    0xffff_ffff_8010_0000,
    0xffff_ffff_ffff_fff8,
];
/// Some that are there: RAM at 2 MiB, and the middle of the kernel's code.
const KERNEL_PAGES: &[u64] = &[0xffff_8000_0020_0000, 0xffff_ffff_8012_0000];
/// Nobody's: page zero, what is below the first page of programs, a hole, and the last page of the lower half.
const UNMAPPED: &[u64] = &[
    0,
    8,
    USER_START - 8,
    STACK_GUARD,
    0x5ead_beef_0000,
    USER_END,
];
/// Addresses that are none.
const NOT_CANONICAL: &[u64] = &[0x0000_8000_0000_0000, 0xffff_7fff_ffff_fff8, 1 << 62];
/// Pages that the loader and the kernel have given for reading.
const GIVEN: &[u64] = &[STARTUP_PAGE, INFO_PAGE];
/// The same, and one for writing, too.
const NO_CODE: &[u64] = &[STARTUP_PAGE, IPC_BUFFER, INFO_PAGE];

const READ: u64 = FAULT_USER;
const WRITE: u64 = FAULT_USER | FAULT_WRITE;
const EXECUTE: u64 = FAULT_USER | FAULT_FETCH;
const PROTECTED: &[FaultKind] = &[FaultKind::Protection];

/// The attacks.
pub const ATTACKS: &[Attack] = &[
    Attack::new("kernel memory", "read", Kernel(READ), read).with(KERNEL),
    Attack::new("kernel memory", "write", Kernel(WRITE), write).with(KERNEL),
    Attack::new("kernel memory", "execute", Kernel(EXECUTE), execute).with(KERNEL),
    Attack::new(
        "kernel memory",
        "read a page that is there",
        Page(READ | FAULT_PRESENT),
        read,
    )
    .with(KERNEL_PAGES),
    Attack::new(
        "kernel memory",
        "write a page that is there",
        Page(WRITE | FAULT_PRESENT),
        write,
    )
    .with(KERNEL_PAGES),
    Attack::new(
        "kernel memory",
        "execute a page that is there",
        Page(EXECUTE | FAULT_PRESENT),
        execute,
    )
    .with(KERNEL_PAGES),
    Attack::new("another process's memory", "read", Page(READ), read).with(&[SECRET]),
    Attack::new("another process's memory", "write", Page(WRITE), write).with(&[SECRET]),
    Attack::new(
        "another process's memory",
        "execute",
        Page(EXECUTE),
        execute,
    )
    .with(&[SECRET]),
    Attack::new(
        "another process's memory",
        "find some in fresh pages",
        Refused,
        fresh,
    ),
    Attack::new("unmapped memory", "read", Page(READ), read).with(UNMAPPED),
    Attack::new("unmapped memory", "write", Page(WRITE), write).with(UNMAPPED),
    Attack::new("unmapped memory", "execute", Page(EXECUTE), execute).with(UNMAPPED),
    Attack::new(
        "unmapped memory",
        "read what is not canonical",
        Fault(PROTECTED),
        read,
    )
    .with(NOT_CANONICAL),
    Attack::new(
        "unmapped memory",
        "write what is not canonical",
        Fault(PROTECTED),
        write,
    )
    .with(NOT_CANONICAL),
    Attack::new(
        "executing data",
        "given pages",
        Page(EXECUTE | FAULT_PRESENT),
        execute,
    )
    .with(NO_CODE),
    Attack::new(
        "executing data",
        "stack",
        Page(EXECUTE | FAULT_PRESENT),
        |_| {
            let word = 0_u64;
            execute(&raw const word as u64)
        },
    ),
    Attack::new(
        "executing data",
        "heap",
        Page(EXECUTE | FAULT_PRESENT),
        |_| execute(&raw const *Box::new(0_u64) as u64),
    ),
    Attack::new(
        "executing data",
        "variables",
        Page(EXECUTE | FAULT_PRESENT),
        |_| execute(&raw const VARIABLE as u64),
    ),
    Attack::new(
        "executing data",
        "constants",
        Page(EXECUTE | FAULT_PRESENT),
        |_| execute(&raw const CONSTANT as u64),
    ),
    Attack::new("writing code", "code", Page(WRITE | FAULT_PRESENT), |_| {
        write(fresh as fn(u64) -> u64 as usize as u64)
    }),
    Attack::new(
        "writing code",
        "constants",
        Page(WRITE | FAULT_PRESENT),
        |_| write(&raw const CONSTANT as u64),
    ),
    Attack::new(
        "writing code",
        "given pages",
        Page(WRITE | FAULT_PRESENT),
        write,
    )
    .with(GIVEN),
    Attack::new("W^X", "make memory writable and executable", Refused, both),
    Attack::new("guard pages", "stack of the first thread", Guard, |_| {
        overflow()
    }),
    Attack::new("guard pages", "stack of another thread", Guard, |_| {
        // Its end is the process's, so nobody comes back from waiting for it.
        let other = thread::spawn(|| -> () { overflow() });
        u64::from(other.and_then(thread::JoinHandle::join).is_ok())
    }),
];

static VARIABLE: AtomicU64 = AtomicU64::new(0);
static CONSTANT: [u64; 4] = [0x90; 4];

/// Looks for what somebody has left, in as many pages as there are.
fn fresh(_: u64) -> u64 {
    let mut pages = 0;
    for contiguous in [0, 1] {
        for count in [64, 32, 16, 8, 4, 2, 1] {
            let Ok(memory) = syscall::memory_create(Handle::NONE, count, contiguous) else {
                continue;
            };
            // It stays, so the next has other pages.
            let Ok(mapping) = Mapping::whole(memory) else {
                continue;
            };
            let mut bytes = [1; PAGE_SIZE as usize];
            for at in (0..mapping.len()).step_by(bytes.len()) {
                mapping.read(at, &mut bytes);
                assert!(bytes.iter().all(|byte| *byte == 0), "it is somebody else's");
            }
            pages += count;
            let _ = mapping.leak();
        }
    }
    assert!(pages >= 16, "there are hardly any pages");
    pages
}

/// Asks for memory that can be written and executed, at once or in turn.
fn both(_: u64) -> u64 {
    let memory = syscall::memory_create(Handle::NONE, 1, 0)
        .unwrap_or_else(|error| panic!("no memory: {error}"));
    let wanted = Rights::READ | Rights::WRITE | Rights::EXECUTE;
    let rights = handle::duplicate(memory, wanted).and_then(|copy| copy.info());
    assert!(
        !rights.is_ok_and(|info| info.1.contains(Rights::EXECUTE)),
        "its handle allows it"
    );
    let bad = [
        (wanted, Error::BadArgument),
        (Rights::WRITE | Rights::EXECUTE, Error::BadArgument),
        (Rights::READ | Rights::EXECUTE, Error::MissingRight),
        (Rights::EXECUTE, Error::MissingRight),
    ];
    for (rights, error) in bad {
        // SAFETY: nothing of this program is there.
        let mapped = unsafe { syscall::map(Handle::NONE, memory, SECRET, 0, 1, rights) };
        assert_eq!(mapped, Err(error), "mapped with {rights:?}");
    }
    // SAFETY: as above.
    let mapped = unsafe {
        syscall::map(
            Handle::NONE,
            memory,
            SECRET,
            0,
            1,
            Rights::READ | Rights::WRITE,
        )
    };
    assert_eq!(mapped, Ok(()), "what is allowed");
    for (rights, error) in bad {
        // SAFETY: nothing of this program relies on the page.
        let changed = unsafe { syscall::protect(Handle::NONE, SECRET, 1, rights) };
        assert_eq!(changed, Err(error), "changed to {rights:?}");
    }
    // The pages of its own code and stack, too.
    for at in [ipc::abi::layout::PROGRAM_BASE, IPC_BUFFER] {
        // SAFETY: the mapping has more rights than one page of it, or the call is refused for them: nothing changes.
        let changed = unsafe { syscall::protect(Handle::NONE, at, 1, wanted) };
        assert!(changed.is_err(), "changed its own at {at:#x}");
    }
    2 * bad.len() as u64 + 2
}

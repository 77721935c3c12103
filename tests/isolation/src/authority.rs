//! The profiler and what it shows: who has no handle for it, and who has one and wants more than that.

use ipc::abi::exit::{FAULT_PRESENT, FAULT_USER, FAULT_WRITE};
use ipc::abi::layout::{INFO_PAGE, PAGE_SIZE};
use ipc::abi::startup::{IPC_BUFFER, STARTUP_PAGE, names};
use ipc::abi::{Error, Handle, Rights, Syscall};
use ipc::proto::profd::{Client, Request, SessionName, Start};
use sysroot::{Connection, Mapping, OwnedHandle, handle, startup, syscall};

use crate::access::write;
use crate::attack::Attack;
use crate::attack::Wants::{Page, Refused};
use crate::memory::SECRET;
use crate::raw;

const PROTECTED_WRITE: u64 = FAULT_USER | FAULT_WRITE | FAULT_PRESENT;
/// First address of the kernel's half.
const KERNEL: u64 = 0xffff_8000_0000_0000;
/// Window of the profile that is asked for.
const WINDOW_MS: u16 = 20;

/// Of a program without any of it.
pub const WITHOUT: &[Attack] = &[
    Attack::new("profiler", "find a handle by name", Refused, names_nothing),
    Attack::new("profiler", "each call, with other handles", Refused, |_| {
        let own = made(syscall::memory_create(Handle::NONE, 1, 0));
        let other = made(syscall::notification_create());
        let endpoint = made(syscall::endpoint_create());
        drives(&[own.raw(), other.raw(), endpoint.raw()])
    }),
    Attack::new(
        "kernel addresses",
        "in registers after each call",
        Refused,
        registers,
    ),
    Attack::new(
        "kernel addresses",
        "in pages that it is given",
        Refused,
        pages,
    ),
];

/// Of one that has the driver, the boot archive, and profd.
pub const WITH: &[Attack] = &[
    Attack::new("sample rings", "write", Page(PROTECTED_WRITE), |offset| {
        let rings = rings();
        let mapping =
            Mapping::whole(rings.raw()).unwrap_or_else(|error| panic!("no rings: {error}"));
        write(mapping.leak().cast::<u8>().as_ptr() as u64 + offset)
    })
    .with(&[0, 8, 64, 4096, 65536]),
    Attack::new("sample rings", "map for writing", Refused, |_| {
        writable(rings())
    }),
    Attack::new("sample rings", "pass on", Refused, |_| stays(&rings())),
    Attack::new("profiler", "pass the driver on", Refused, |_| {
        let driver = given(names::PROFILER);
        passes(driver)
    }),
    Attack::new("profiler", "drive it by profd's endpoint", Refused, |_| {
        drives(&[given("profd")])
    }),
    Attack::new("profiler", "write to a report", Refused, |_| {
        writable(report())
    }),
    Attack::new("W^X", "write to the boot archive", Refused, |_| {
        let archive = given(names::BOOTFS);
        let mapped = map(archive, Rights::READ | Rights::WRITE);
        assert_eq!(mapped, Err(Error::MissingRight), "it is mapped for writing");
        let mapped = map(archive, Rights::WRITE | Rights::EXECUTE);
        assert_eq!(mapped, Err(Error::BadArgument), "it is mapped for both");
        assert_eq!(
            map(archive, Rights::READ | Rights::EXECUTE),
            Ok(()),
            "its code"
        );
        for (rights, error) in [
            (Rights::READ | Rights::WRITE, Error::MissingRight),
            (Rights::WRITE | Rights::EXECUTE, Error::BadArgument),
        ] {
            // SAFETY: nothing of this program relies on the page.
            let changed = unsafe { syscall::protect(Handle::NONE, SECRET, 1, rights) };
            assert_eq!(changed, Err(error), "it is changed to {rights:?}");
        }
        4
    }),
    Attack::new(
        "writing code",
        "in the boot archive",
        Page(PROTECTED_WRITE),
        |_| {
            let mapped = map(given(names::BOOTFS), Rights::READ | Rights::EXECUTE);
            assert_eq!(mapped, Ok(()), "its code");
            write(SECRET)
        },
    ),
];

fn made(what: Result<Handle, Error>) -> OwnedHandle {
    OwnedHandle::new(what.unwrap_or_else(|error| panic!("no object: {error}")))
}

fn given(name: &str) -> Handle {
    startup::handle(name).unwrap_or_else(|| panic!("was not given {name}"))
}

fn rings() -> OwnedHandle {
    made(syscall::profiler_rings(given(names::PROFILER)).map(|(rings, _)| rings))
}

fn map(memory: Handle, rights: Rights) -> Result<(), Error> {
    // SAFETY: nothing of this program is there.
    unsafe { syscall::map(Handle::NONE, memory, SECRET, 0, 1, rights) }
}

/// No name of the startup page leads to what this program was not given.
fn names_nothing(_: u64) -> u64 {
    let wanted = [
        names::PROFILER,
        "profd",
        names::SYSTEM,
        names::LOG,
        names::BOOTFS,
        "init",
        names::PROCESS,
    ];
    for name in wanted {
        assert_eq!(startup::handle(name), None, "{name}");
    }
    wanted.len() as u64
}

/// Each call about the driver, through handles to something else.
fn drives(handles: &[Handle]) -> u64 {
    let calls = Syscall::ALL
        .iter()
        .filter(|what| what.arguments().first() == Some(&"profiler"));
    let mut tries = 0;
    for what in calls {
        for handle in handles {
            // SAFETY: a call about the driver takes no memory from this program, and starts no thread.
            let [status, ..] =
                unsafe { raw::enter(*what as u64, [handle.raw().into(), 0, 0, 0, 0, 0]) };
            assert_eq!(status, Error::WrongType as u64, "{}", what.name());
            tries += 1;
        }
    }
    assert!(tries > 0, "there are no such calls");
    tries
}

/// Looks for addresses of the kernel's in what each call leaves in registers.
fn registers(_: u64) -> u64 {
    let mut tries = 0;
    for what in Syscall::ALL {
        if matches!(what, Syscall::process_exit | Syscall::thread_exit) {
            continue;
        }
        // SAFETY: without a handle and a length, none of them takes memory away or starts a thread.
        let left = unsafe { raw::enter(*what as u64, [0; 6]) };
        assert!(
            left.iter().all(|word| *word < KERNEL),
            "{}: {left:x?}",
            what.name()
        );
        tries += 1;
    }
    tries
}

/// The same in each word of the pages that kernel and loader write to.
fn pages(_: u64) -> u64 {
    let mut words = 0;
    assert_eq!(syscall::process_status(Handle::NONE), Ok(()));
    for page in [STARTUP_PAGE, IPC_BUFFER, INFO_PAGE] {
        for at in (page..page + PAGE_SIZE).step_by(8) {
            // SAFETY: the pages are mapped for reading for as long as the program runs, and at is aligned.
            let word = unsafe { (at as *const u64).read_volatile() };
            // All ones are how records say "none".
            assert!(word < KERNEL || word == u64::MAX, "{word:#x} at {at:#x}");
            words += 1;
        }
    }
    words
}

/// Memory that came for reading is not mapped for writing, by no handle that can be made of it.
fn writable(memory: OwnedHandle) -> u64 {
    let write = Rights::READ | Rights::WRITE;
    assert_eq!(
        map(memory.raw(), write),
        Err(Error::MissingRight),
        "it is mapped"
    );
    let wider = memory.duplicate(Rights::all()).ok();
    let wider = wider.map(|wider| map(wider.raw(), write));
    assert!(
        matches!(wider, None | Some(Err(Error::MissingRight))),
        "a copy is mapped"
    );
    assert_eq!(map(memory.raw(), Rights::READ), Ok(()), "what is allowed");
    // SAFETY: nothing of this program relies on the page.
    let changed = unsafe { syscall::protect(Handle::NONE, SECRET, 1, write) };
    assert_eq!(changed, Err(Error::MissingRight), "it is changed");
    3
}

/// A handle that its process cannot give away, nor anything that can be made of it.
fn passes(handle: Handle) -> u64 {
    let give = |handle| syscall::handle_give(Handle::NONE, handle, Rights::all()).err();
    assert_eq!(give(handle), Some(Error::MissingRight), "it is given away");
    let copy = handle::duplicate(handle, Rights::all());
    let copy = copy.map(|copy| give(copy.raw()));
    assert!(
        matches!(copy, Err(_) | Ok(Some(Error::MissingRight))),
        "a copy is given away"
    );
    2
}

fn stays(handle: &OwnedHandle) -> u64 {
    passes(handle.raw())
}

/// A profile that profd took for this program.
fn report() -> OwnedHandle {
    let mut profd = Client::new(Connection::new(given("profd")));
    let start = Start {
        request: Request {
            window_ms: WINDOW_MS,
            ..Request::default()
        },
        number: 1,
        session: SessionName::cut("isolation"),
    };
    let answer = profd.measure(&start);
    let (_, [memory]) = answer.unwrap_or_else(|error| panic!("no profile: {error}"));
    memory
}

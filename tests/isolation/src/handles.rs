//! Handles that were never given, that were closed, and that ask for more than they had.

use alloc::vec::Vec;

use ipc::abi::message::{HANDLES_OFFSET, SLOT_MOVE};
use ipc::abi::startup::IPC_BUFFER;
use ipc::abi::{Error, Handle, NEVER, Rights, Syscall, Tag};
use ipc::proto::Message;
use sysroot::syscall::message::{self, NO_WORDS};
use sysroot::{Event, OwnedHandle, Port, handle, startup, syscall, thread};

use crate::attack::Attack;
use crate::attack::Wants::Refused;
use crate::raw;
use crate::words::Words;

/// The attacks.
pub const ATTACKS: &[Attack] = &[
    Attack::new("handles", "forge, for each call", Refused, forge),
    Attack::new("handles", "use what was closed", Refused, stale),
    Attack::new("handles", "widen by a copy", Refused, |_| widen(copied)),
    Attack::new("handles", "widen by giving", Refused, |_| widen(given)),
    Attack::new("handles", "widen by a message that copies", Refused, |_| {
        widen(|had, asked| sent(had, asked, 0))
    }),
    Attack::new("handles", "widen by a message that moves", Refused, |_| {
        widen(|had, asked| sent(had, asked, SLOT_MOVE))
    }),
    Attack::new("handles", "widen by a badge", Refused, |_| badge()),
    Attack::new("handles", "widen by a part", Refused, |_| part()),
];

/// Handles guessed for each call.
const GUESSES: u64 = 200;
/// Times that a place in the table is used again.
const REUSES: usize = 500;

/// The arguments of a call that are handles, by what the table calls them.
fn is_handle(name: &str) -> bool {
    const NAMES: [&str; 12] = [
        "endpoint",
        "notification",
        "thread",
        "handle",
        "process",
        "system",
        "memory",
        "buffer",
        "interrupt",
        "ports",
        "profiler",
        "reply",
    ];
    NAMES.contains(&name)
}

/// Calls everything that takes a handle, with handles that this program has not: of any place and generation, and of the places
/// that are used with another generation.
fn forge(_: u64) -> u64 {
    let own: Vec<Handle> = startup::page()
        .handles()
        .map(|(_, handle)| handle)
        .collect();
    let mut words = Words::default();
    let mut tries = 0;
    for what in Syscall::ALL {
        if !what.arguments().first().is_some_and(|name| is_handle(name)) {
            continue;
        }
        for guess in 0..GUESSES {
            let word = words.next();
            let forged = match own.get(guess as usize) {
                Some(other) => {
                    Handle::new(other.index() as u32, other.generation() ^ 1 << (word % 20))
                }
                None => Handle::from_raw(word as u32),
            };
            // 0 stands for the caller in some.
            if own.contains(&forged) || forged == Handle::NONE {
                continue;
            }
            let mut arguments = [0; 6];
            for (argument, name) in arguments.iter_mut().zip(what.arguments()) {
                if is_handle(name) {
                    *argument = forged.raw().into();
                }
            }
            // SAFETY: a call that names nothing changes nothing; where the system is broken and it does, the next line says so.
            let [status, ..] = unsafe { raw::enter(*what as u64, arguments) };
            assert_eq!(
                status,
                Error::BadHandle as u64,
                "{} of {forged:?}",
                what.name()
            );
            tries += 1;
        }
    }
    tries
}

/// Keeps handles that it closed, while their place is used again and again.
fn stale(_: u64) -> u64 {
    let mut closed: Vec<Handle> = Vec::new();
    for _ in 0..REUSES {
        let new = syscall::notification_create()
            .unwrap_or_else(|error| panic!("no notification: {error}"));
        assert!(!closed.contains(&new), "{new:?} comes back");
        let last = closed.last().copied();
        for old in last.into_iter().chain(closed.first().copied()) {
            assert_eq!(syscall::signal(old, 1), Err(Error::BadHandle), "{old:?}");
        }
        assert_eq!(syscall::handle_close(new), Ok(()));
        closed.push(new);
    }
    for old in &closed {
        assert_eq!(
            syscall::handle_info(*old).err(),
            Some(Error::BadHandle),
            "{old:?}"
        );
    }
    closed.len() as u64
}

fn made(what: Result<Handle, Error>) -> OwnedHandle {
    OwnedHandle::new(what.unwrap_or_else(|error| panic!("no object: {error}")))
}

/// One object of each kind that any program can make.
fn objects() -> [OwnedHandle; 3] {
    [
        made(syscall::endpoint_create()),
        made(syscall::notification_create()),
        made(syscall::memory_create(Handle::NONE, 1, 0)),
    ]
}

/// The rights of a handle.
fn rights(handle: &OwnedHandle) -> Rights {
    handle.info().map_or(Rights::all(), |info| info.1)
}

/// Every choice of rights that a handle has.
fn choices(all: Rights) -> impl Iterator<Item = Rights> {
    (0..=all.bits())
        .filter_map(Rights::from_bits)
        .filter(move |some| all.contains(*some))
}

/// For each choice of rights of each object, passes a handle with those on, asking for all and for each that it has not: what comes has
/// no more.
fn widen(pass: fn(OwnedHandle, Rights) -> Option<OwnedHandle>) -> u64 {
    let mut tries = 0;
    for object in objects() {
        let all = rights(&object);
        for some in choices(all) {
            let more = Rights::all().iter().filter(|right| !some.contains(*right));
            for asked in more.map(|right| some | right).chain([Rights::all()]) {
                let narrow = made(syscall::handle_duplicate(object.raw(), some));
                assert_eq!(rights(&narrow), some);
                if let Some(wide) = pass(narrow, asked) {
                    let has = rights(&wide);
                    assert!(some.contains(has), "{has:?} of {some:?}");
                }
                tries += 1;
            }
        }
    }
    tries
}

fn copied(narrow: OwnedHandle, asked: Rights) -> Option<OwnedHandle> {
    narrow.duplicate(asked).ok()
}

/// To itself, which needs no right to another process.
fn given(narrow: OwnedHandle, asked: Rights) -> Option<OwnedHandle> {
    let there = syscall::handle_give(Handle::NONE, narrow.raw(), asked).ok()?;
    Some(OwnedHandle::new(there))
}

/// To another thread.
fn sent(narrow: OwnedHandle, asked: Rights, flags: u32) -> Option<OwnedHandle> {
    let endpoint = made(syscall::endpoint_create());
    let receiving = endpoint.raw();
    let receiver = thread::spawn(move || {
        let mut message = Message::new();
        match Port::new(receiving).receive(NEVER, &mut message) {
            Event::Call { .. } => message.handles.pop(),
            _ => None,
        }
    });
    let receiver = receiver.unwrap_or_else(|error| panic!("no thread: {error}"));
    let slot = [narrow.raw().raw(), asked.bits() | flags];
    let place = (IPC_BUFFER as usize + HANDLES_OFFSET) as *mut [u32; 2];
    // SAFETY: the page is this thread's for as long as it runs, the slot is in it and aligned, and no reference to it exists.
    unsafe { place.write(slot) };
    // Nobody answers: the receiver ends. Where the message was refused it still waits, until nobody can call any more.
    let _ = message::call(endpoint.raw(), Tag::new(1, 0, 1), NO_WORDS, NEVER);
    drop(endpoint);
    receiver.join().ok().flatten()
}

/// A handle with a badge: who may make them may make them to be called, and nothing else.
fn badge() -> u64 {
    let all = rights(&made(syscall::endpoint_create()));
    let allowed = Rights::CALL | Rights::DUPLICATE | Rights::TRANSFER;
    let mut tries = 0;
    for some in choices(all) {
        // One for each: it is never told of badges that are no more, so it keeps them.
        let endpoint = made(syscall::endpoint_create());
        let narrow = made(syscall::handle_duplicate(endpoint.raw(), some));
        for asked in choices(all).chain([Rights::all()]) {
            let may = some.contains(Rights::MINT) && allowed.contains(asked);
            let minted = handle::mint(narrow.raw(), 7, asked);
            assert_eq!(minted.is_ok(), may, "{asked:?} of {some:?}");
            tries += u64::from(!may);
        }
    }
    tries
}

/// A part of memory, through a handle with each choice of rights.
fn part() -> u64 {
    let memory = made(syscall::memory_create(Handle::NONE, 2, 1));
    let mut tries = 0;
    for some in choices(rights(&memory)) {
        let narrow = made(syscall::handle_duplicate(memory.raw(), some));
        if let Ok(part) = syscall::memory_part(narrow.raw(), 1, 1) {
            let has = rights(&OwnedHandle::new(part));
            assert!(some.contains(has), "{has:?} of {some:?}");
        }
        tries += 1;
    }
    tries
}

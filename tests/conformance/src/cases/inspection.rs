//! The records of what comes and goes, read by one thread while another makes it and ends it: each is whole, or there is none.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use ipc::abi::info::ThreadState;
use ipc::abi::inspect::StackKind;
use ipc::abi::layout::{MAPPINGS_MAX, PAGE_SIZE, PRIORITY_MAX, USER_END};
use ipc::abi::startup::names;
use ipc::abi::trace::{TRACE_READ_MAX, TraceRecord};
use ipc::abi::{Error, Handle, NEVER, Rights, Syscall};
use sysroot::{OwnedHandle, record, syscall};

use super::{joined, on};
use crate::suite::Suite;
use crate::world::{QUOTA, SCRATCH, given, held_thread, made, process};

/// Processes that come and go.
const ROUNDS: u64 = 400;
/// Pages that each maps.
const PAGES: u64 = 3;

/// Whether there is still something to look at.
static CHANGES: AtomicBool = AtomicBool::new(false);

pub fn run(suite: &mut Suite, cpu: u64) {
    CHANGES.store(true, Relaxed);
    let looker = on(cpu, || {
        let system = given(names::SYSTEM);
        let mut wrong = None;
        while CHANGES.load(Relaxed) {
            wrong = wrong.or(objects(system)).or(cpus(system));
        }
        wrong
    });
    let notification = OwnedHandle::new(made("a notification", syscall::notification_create()));
    let memory = OwnedHandle::new(made(
        "memory",
        syscall::memory_create(Handle::NONE, PAGES, 0),
    ));
    for round in 0..ROUNDS {
        let child = process(QUOTA, notification.raw(), 1);
        let place = SCRATCH + round % 64 * PAGE_SIZE;
        let (there, pages) = (child.raw(), memory.raw());
        // SAFETY: the process is not this one.
        let mapped = unsafe { syscall::map(there, pages, place, 0, PAGES, Rights::READ) };
        made("a mapping", mapped);
        let thread = held_thread(&child, &memory);
        if round % 2 == 0 {
            // It faults at once: what is mapped has no code.
            made("a start", syscall::thread_start(thread.raw()));
        } else {
            // SAFETY: as above.
            made("a hole", unsafe { syscall::unmap(there, place, PAGES) });
            made("an end", syscall::process_kill(there, 0));
        }
        made("an end", syscall::wait(notification.raw(), NEVER));
    }
    CHANGES.store(false, Relaxed);
    suite.equal(
        Syscall::system_info,
        "a record of what comes and goes that is not whole",
        joined(looker),
        None,
    );
    made("no trace", syscall::trace_control(given(names::SYSTEM), 0));
}

/// A record of a process, a mapping, a page or a thread that cannot be.
fn objects(system: Handle) -> Option<&'static str> {
    let mut slot = 0;
    while let Ok(seen) = record::process_info(system, slot) {
        if seen.is_some_and(|seen| seen.pid == 0 || seen.pages > seen.quota_pages) {
            return Some("process");
        }
        for n in 0..MAPPINGS_MAX {
            let Ok(Some(seen)) = record::mapping_info(system, slot, n) else {
                break;
            };
            let last = seen.pages.checked_mul(PAGE_SIZE);
            let end = last.and_then(|bytes| seen.address.checked_add(bytes));
            let in_space = end.is_some_and(|end| end > seen.address && end <= USER_END);
            let both = u64::from((Rights::WRITE | Rights::EXECUTE).bits());
            if seen.pid == 0 || !in_space || seen.rights & both == both {
                return Some("mapping");
            }
            let page = record::page_info(system, slot, n, PAGES as u32 - 1);
            let is_whole = match page {
                Ok(None) => true,
                Ok(Some(page)) => {
                    page.pid != 0 && page.address < USER_END && page.zeroes <= PAGE_SIZE
                }
                Err(_) => false,
            };
            if !is_whole {
                return Some("page");
            }
        }
        slot += 1;
    }
    slot = 0;
    while let Ok(seen) = record::thread_info(system, slot) {
        let is_whole = seen.is_none_or(|seen| {
            let lives = ThreadState::from_raw(seen.state).is_some_and(|it| it != ThreadState::Dead);
            let ids = [seen.tid, seen.pid].iter().all(|&id| id != 0);
            ids && lives && seen.priority <= u64::from(PRIORITY_MAX)
        });
        if !is_whole {
            return Some("thread");
        }
        slot += 1;
    }
    None
}

/// A record of a CPU or its trace that cannot be, while tracing goes on and off.
fn cpus(system: Handle) -> Option<&'static str> {
    let mut records = [TraceRecord::default(); TRACE_READ_MAX];
    for cpu in 0.. {
        let on = syscall::trace_control(system, cpu & 1);
        match record::stack_info(system, cpu, StackKind::Kernel) {
            Err(Error::NotFound) => break,
            Ok(stack) if stack.used <= stack.bytes => {}
            _ => return Some("stack"),
        }
        let mut position = 0;
        loop {
            let Ok((next, count, lost)) = record::trace_read(system, cpu, position, &mut records)
            else {
                return Some("trace");
            };
            if on.is_err() || next != position + lost + count as u64 {
                return Some("position");
            }
            if count == 0 {
                break;
            }
            position = next;
        }
    }
    None
}

//! `map`: the address space of a process.

mod place;

#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::fmt;

use ipc::abi::Rights;
use ipc::abi::inspect::{MappingInfo, ThreadInfo};
use ipc::abi::layout::{INFO_PAGE, PAGE_SIZE};
use ipc::bootfs::Bootfs;

use super::subject::{NoSubject, Subject};
use super::{Argument, Command, Context, Group, Role};
use crate::format::PAGE_KIB;
use crate::inspect::{LOOKS, in_use, mappings};
use crate::system::System;
use place::Places;

pub(super) const MAP: Command = Command {
    name: "map",
    group: Group::Programs,
    role: Role::Observe,
    usage: "map PID",
    summary: "the memory of a process",
    arguments: &[Argument::Pid],
    details: "\
Where names come from: files, with an offset, are mapped from the boot archive.
The ELF headers of the file with the code tell its data, and the heap behind it.
The stack pointer that a thread was made with tells its stack. Startup page and
information page are at the same address in every program. The kernel tells IPC
buffers, devices and sample rings. The rest are memory objects, of pages or
contiguous: mappings with the same number show the same memory.
",
    facts: None,
    examples: &[("map 4", "one line for each mapping of pid 4")],
    run,
};

fn run(context: Context<'_>) -> fmt::Result {
    context.with_subject(show)
}

fn show(context: Context<'_>, subject: Subject) -> fmt::Result {
    let found = read(context.system, subject);
    let (subject, mappings, threads) = match found {
        Ok(Some(found)) => found,
        Ok(None) => return context.fail("it changes faster than it can be read"),
        Err(error) => return context.fail(error),
    };
    let bytes = context.system.archive();
    let archive = bytes.ok().and_then(|bytes| Bootfs::parse(bytes).ok());
    let places = Places::new(archive, &subject.info, &mappings, &threads);
    let session = context.session;
    writeln!(
        session,
        "{:<14} {:<14} {:>8} RIGHTS WHAT",
        "START", "END", "KIB"
    )?;
    for mapping in &mappings {
        let end = mapping.address + mapping.pages * PAGE_SIZE;
        let rights = Rights::from_bits_truncate(mapping.rights as u32);
        let name = places.name(mapping);
        row(session, mapping.address, end, rights, &name)?;
    }
    // Every process has it, and it is no mapping (`ipc::abi::layout`).
    row(
        session,
        INFO_PAGE,
        INFO_PAGE + PAGE_SIZE,
        Rights::READ,
        "information page",
    )
}

fn row(
    out: &mut (impl fmt::Write + ?Sized),
    start: u64,
    end: u64,
    rights: Rights,
    name: &str,
) -> fmt::Result {
    let kib = (end - start) / PAGE_SIZE * PAGE_KIB;
    let letter = |right, letter| if rights.contains(right) { letter } else { '-' };
    let [r, w, x] = [
        (Rights::READ, 'r'),
        (Rights::WRITE, 'w'),
        (Rights::EXECUTE, 'x'),
    ]
    .map(|(right, shown)| letter(right, shown));
    writeln!(
        out,
        "{start:<#14x} {end:<#14x} {kib:>8} {r}{w}{x}    {name}"
    )
}

type Found = (Subject, Vec<MappingInfo>, Vec<ThreadInfo>);

/// The mappings of a process by address, and its threads. `None` if it changed its mappings each time they were read.
fn read(system: &mut dyn System, subject: Subject) -> Result<Option<Found>, NoSubject<'static>> {
    let read = |system: &mut dyn System| mappings(system, subject.slot).map_err(NoSubject::Kernel);
    let mut before = read(system)?;
    for _ in 0..LOOKS {
        let slots = in_use(|slot| system.thread_slot(slot)).map_err(NoSubject::Kernel)?;
        let threads = slots.into_iter().map(|(_, thread)| thread);
        let threads = threads
            .filter(|thread| thread.pid == subject.info.pid)
            .collect();
        let after = read(system)?;
        let subject = subject.again(system)?;
        if before == after {
            let mut mappings: Vec<_> = after.into_iter().map(|(_, mapping)| mapping).collect();
            mappings.sort_by_key(|mapping| mapping.address);
            return Ok(Some((subject, mappings, threads)));
        }
        before = after;
    }
    Ok(None)
}

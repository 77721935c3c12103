//! `stacks`: how deep each stack was ever used.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::fmt;

use ipc::abi::Error;
use ipc::abi::inspect::{MappingInfo, StackKind, ThreadInfo};
use ipc::abi::layout::PAGE_SIZE;

use super::{Command, Context, Group, Role};
use crate::format::{Name, Percent};
use crate::inspect::{LOOKS, in_use, mappings};
use crate::system::System;

#[cfg(test)]
mod tests;

pub(super) const STACKS: Command = Command {
    name: "stacks",
    group: Group::Machine,
    role: Role::Observe,
    usage: "stacks",
    summary: "how deep stacks were used",
    arguments: &[],
    details: "\
The fullest first, in bytes. The kernel's are filled with a pattern at boot, and
used down to the lowest word that shows another. A program's is made of zeroes,
and used down to the lowest word that is not zero: from the top that its thread
was made with to the beginning of the mapping. `-`: there is no such mapping.
",
    facts: None,
    examples: &[("stacks", "one line for each stack")],
    run,
};

/// A stack that was looked at.
struct Row {
    /// Bytes used, of how many. Nothing if the thread has no mapping below its first stack pointer.
    depth: Option<[u64; 2]>,
    name: String,
}

fn run(context: Context<'_>) -> fmt::Result {
    if let [first, ..] = *context.args {
        return context.too_many(first);
    }
    let rows = kernel(context.system).and_then(|mut rows| {
        rows.extend(programs(context.system)?);
        Ok(rows)
    });
    let mut rows = match rows {
        Ok(rows) => rows,
        Err(error) => return context.fail(error),
    };
    // By the fraction, which is not rounded here.
    rows.sort_by_key(|row| Reverse(row.depth.map(|[used, size]| (used << 32) / size.max(1))));
    let session = context.session;
    writeln!(session, "{:>8} {:>8} {:>6} STACK", "USED", "SIZE", "PART")?;
    for Row { depth, name } in &rows {
        match *depth {
            Some([used, size]) => {
                writeln!(
                    session,
                    "{used:>8} {size:>8} {:>6} {name}",
                    Percent(used, size)
                )?;
            }
            None => writeln!(session, "{:>8} {:>8} {:>6} {name}", "-", "-", "-")?,
        }
    }
    Ok(())
}

/// The kernel's stacks.
fn kernel(system: &mut dyn System) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for cpu in 0..system.cpus() {
        for which in StackKind::ALL {
            let stack = system.stack(cpu, which)?;
            let which = match which {
                StackKind::Kernel => "kernel",
                StackKind::Nmi => "nmi",
                StackKind::DoubleFault => "double fault",
                StackKind::MachineCheck => "machine check",
            };
            rows.push(Row {
                depth: Some([stack.used, stack.bytes]),
                name: format!("cpu {cpu} {which}"),
            });
        }
    }
    Ok(rows)
}

/// The stacks of all threads that still live when they were looked at.
fn programs(system: &mut dyn System) -> Result<Vec<Row>, Error> {
    let processes = in_use(|slot| system.process_slot(slot))?;
    let mut rows = Vec::new();
    for (slot, thread) in in_use(|slot| system.thread_slot(slot))? {
        let depth = depth(system, &thread)?;
        let now = system.thread_slot(slot)?;
        if now.is_none_or(|now| now.tid != thread.tid) {
            continue;
        }
        let owner = processes
            .iter()
            .find(|(_, process)| process.pid == thread.pid);
        let name = owner.map(|(_, process)| process.name).unwrap_or_default();
        rows.push(Row {
            depth,
            name: format!("pid {} {} tid {}", thread.pid, Name(&name), thread.tid),
        });
    }
    Ok(rows)
}

/// Whether the thread's stack is in the mapping: the word below its first stack pointer is.
pub(super) fn is_stack(thread: &ThreadInfo, mapping: &MappingInfo) -> bool {
    thread.pid == mapping.pid
        && thread.stack > mapping.address
        && thread.stack - mapping.address <= mapping.pages.saturating_mul(PAGE_SIZE)
}

/// Bytes used of a thread's stack, and its size.
fn depth(system: &mut dyn System, thread: &ThreadInfo) -> Result<Option<[u64; 2]>, Error> {
    // A mapping's number changes when another one goes: then its pages are looked for anew. The process makes the change, so it can
    // always be made to look again; a stack that never stays put is none that can be told of.
    for _ in 0..LOOKS {
        let found = mappings(system, thread.process)?
            .into_iter()
            .find(|(_, mapping)| is_stack(thread, mapping));
        let Some((n, mapping)) = found else {
            return Ok(None);
        };
        let size = thread.stack - mapping.address;
        if let Some(zeroes) = zeroes(system, thread, n, mapping.address)? {
            return Ok(Some([size - zeroes.min(size), size]));
        }
    }
    Ok(None)
}

/// Bytes that are zero at the beginning of a mapping, up to a thread's first stack pointer; `None` if it is no longer there.
fn zeroes(
    system: &mut dyn System,
    thread: &ThreadInfo,
    n: u64,
    address: u64,
) -> Result<Option<u64>, Error> {
    let pages = (thread.stack - address).div_ceil(PAGE_SIZE);
    for page in 0..pages {
        let at = page * PAGE_SIZE;
        let Some(info) = system.page(thread.process, n, page as u32)? else {
            return Ok(None);
        };
        if info.pid != thread.pid || info.address != address + at {
            return Ok(None);
        }
        if info.zeroes < PAGE_SIZE {
            return Ok(Some(at + info.zeroes));
        }
    }
    Ok(Some(pages * PAGE_SIZE))
}

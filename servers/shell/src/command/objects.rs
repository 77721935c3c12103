//! `objects`: what there is in the kernel's pools, and on whose account.

use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use ipc::abi::Error;
use ipc::abi::exit::ExitReason;
use ipc::abi::info::Pool;
use ipc::abi::inspect::ProcessInfo;

use super::{Command, Context, Group, Role};
use crate::format::Name;
use crate::inspect::{LOOKS, in_use};
use crate::system::System;

#[cfg(test)]
mod tests;

/// Kinds of objects: each has a pool.
const KINDS: usize = Pool::ALL.len();

pub(super) const OBJECTS: Command = Command {
    name: "objects",
    group: Group::Machine,
    role: Role::Observe,
    usage: "objects",
    summary: "kernel objects by owner",
    arguments: &[],
    details: "\
PROC, threads, endpoints, notifications, memory objects, handle chunks, badges:
as many as `mem` has in its pools. An object is on the account of who made it
until it is freed. HANDLES name objects, one's own or others'. A process that
has ended, marked `*`, is kept as long as something names it. `changing` is on
no account yet, or no longer, or was changed while it was read.
",
    facts: None,
    examples: &[("objects", "one line for each process, and the totals")],
    run,
};

fn run(context: Context<'_>) -> fmt::Result {
    if let [first, ..] = *context.args {
        return context.too_many(first);
    }
    let objects = match Objects::read(context.system) {
        Ok(objects) => objects,
        Err(error) => return context.fail(error),
    };
    let session = context.session;
    writeln!(
        session,
        "{:<5} {:<17} {:>4} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>7}",
        "PID", "NAME", "PROC", "THREAD", "ENDPT", "NOTIF", "MEMORY", "CHUNK", "BADGE", "HANDLES"
    )?;
    for process in &objects.processes {
        let mark = if process.reason == ExitReason::Running as u64 {
            ""
        } else {
            "*"
        };
        let name = format!("{}{mark}", Name(&process.name));
        write!(session, "{:<5} {name:<17}", process.pid)?;
        row(session, counts(process).map(i128::from))?;
        writeln!(session, " {:>7}", process.handles)?;
    }
    let rest = objects.rest();
    if rest != [0; KINDS] {
        write!(session, "{:<5} {:<17}", "-", "changing")?;
        row(session, rest)?;
        writeln!(session, " {:>7}", "-")?;
    }
    let handles: u64 = objects
        .processes
        .iter()
        .map(|process| process.handles)
        .sum();
    write!(session, "{:<5} {:<17}", "-", "total")?;
    row(session, objects.used.map(i128::from))?;
    writeln!(session, " {handles:>7}")
}

fn row(out: &mut (impl fmt::Write + ?Sized), counts: [i128; KINDS]) -> fmt::Result {
    let [processes, others @ ..] = counts;
    write!(out, " {processes:>4}")?;
    (others.iter()).try_for_each(|count| write!(out, " {count:>6}"))
}

/// What a process accounts for, by pool.
fn counts(process: &ProcessInfo) -> [u64; KINDS] {
    let [threads, endpoints, notifications, memory, chunks, badges] = process.objects;
    [1, threads, endpoints, notifications, memory, chunks, badges]
}

/// The pools, and who has what of them.
struct Objects {
    processes: Vec<ProcessInfo>,
    /// Slots in use, by pool.
    used: [u64; KINDS],
}

impl Objects {
    /// Reads them, a few times if they change meanwhile.
    fn read(system: &mut dyn System) -> Result<Self, Error> {
        let mut looks = 1;
        loop {
            let slots = in_use(|slot| system.process_slot(slot))?;
            let mut processes: Vec<_> = slots.into_iter().map(|(_, process)| process).collect();
            processes.sort_by_key(|process| process.pid);
            let used = system.memory()?.pools.map(|[used, _]| used);
            let objects = Self { processes, used };
            if looks == LOOKS || objects.rest() == [0; KINDS] {
                return Ok(objects);
            }
            looks += 1;
        }
    }

    /// What is in the pools and on no account: a process that is just made or freed, and what changed while it was read. That can be
    /// less than nothing.
    fn rest(&self) -> [i128; KINDS] {
        let mut rest = self.used.map(i128::from);
        for process in &self.processes {
            for (rest, count) in rest.iter_mut().zip(counts(process)) {
                *rest -= i128::from(count);
            }
        }
        rest
    }
}

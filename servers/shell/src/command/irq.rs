//! `irq`: what interrupted which CPU, and the interrupt lines.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use ipc::abi::Error;
use ipc::abi::inspect::{InterruptInfo, LineInfo};
use ipc::abi::layout::NAME_MAX;

use super::{Command, Context, Group, Role};
use crate::format::Name;
use crate::inspect::in_use;
use crate::system::System;
use crate::text;

#[cfg(test)]
mod tests;

/// CPUs in a block of rows: 9 columns for a name, 11 for each.
const CPUS_IN_BLOCK: usize = 6;

pub(super) const IRQ: Command = Command {
    name: "irq",
    group: Group::Machine,
    role: Role::Observe,
    usage: "irq",
    summary: "interrupts by kind and CPU",
    arguments: &[],
    details: "\
timer       ticks, and deadlines of threads
kick        sent by another CPU, or by the CPU to itself
line        of devices: those of the lines below
error       errors of the local APIC, vectors that nothing should use
spurious    of the local APIC or the old controllers
nmi         NMIs
total       all of these
exception   of programs: no interrupts, and not in the total

A line is free, or taken by a process; driver is who acknowledged it last.
",
    facts: None,
    examples: &[("irq", "a column for each CPU, since boot")],
    run,
};

/// A row's name, and its count.
type Kind = (&'static str, fn(&InterruptInfo) -> u64);

/// The rows.
const KINDS: [Kind; 8] = [
    ("timer", |cpu| cpu.timer),
    ("kick", |cpu| cpu.kicks),
    ("line", |cpu| cpu.lines),
    ("error", |cpu| cpu.errors),
    ("spurious", |cpu| cpu.spurious),
    ("nmi", |cpu| cpu.nmis),
    ("total", InterruptInfo::interrupts),
    ("exception", |cpu| cpu.exceptions),
];

fn run(context: Context<'_>) -> fmt::Result {
    if let [first, ..] = *context.args {
        return context.too_many(first);
    }
    let read = read(context.system);
    let (cpus, lines) = match read {
        Ok(read) => read,
        Err(error) => return context.fail(error),
    };
    let session = context.session;
    for (block, cpus) in cpus.chunks(CPUS_IN_BLOCK).enumerate() {
        write!(session, "{:<9}", "cpu")?;
        for number in 0..cpus.len() {
            write!(session, " {:>10}", block * CPUS_IN_BLOCK + number)?;
        }
        writeln!(session)?;
        for (name, count) in KINDS {
            write!(session, "{name:<9}")?;
            for cpu in cpus {
                write!(session, " {:>10}", count(cpu))?;
            }
            writeln!(session)?;
        }
    }
    writeln!(
        session,
        "{:<9} {:>10} {:<8} {:<22} driver",
        "line", "count", "by", "taken by"
    )?;
    for Line {
        number,
        info,
        names,
    } in &lines
    {
        let by = if info.by_message == 0 {
            "pin"
        } else {
            "message"
        };
        let process = |pid: u64, name| match pid {
            0 => String::from("-"),
            _ => format!("{pid:<5} {}", Name(name)),
        };
        let taken_by = process(info.taken_by, &names[0]);
        let driver = process(info.driver, &names[1]);
        let count = info.count;
        let row = format!("{number:<9} {count:>10} {by:<8} {taken_by:<22} {driver}");
        session.write_str(&text::wrapped(&row))?;
    }
    Ok(())
}

/// An interrupt line.
struct Line {
    number: u64,
    info: LineInfo,
    /// Of who took it and of its driver.
    names: [[u8; NAME_MAX]; 2],
}

fn read(system: &mut dyn System) -> Result<(Vec<InterruptInfo>, Vec<Line>), Error> {
    let cpus = (0..system.cpus()).map(|cpu| system.interrupts(cpu));
    let cpus = cpus.collect::<Result<Vec<_>, _>>()?;
    let lines = in_use(|line| system.line(line))?;
    let processes = in_use(|slot| system.process_slot(slot))?;
    let name = |pid| {
        let named = processes.iter().find(|(_, process)| process.pid == pid);
        named.map(|(_, process)| process.name).unwrap_or_default()
    };
    let lines = lines.into_iter().map(|(number, info)| Line {
        number,
        info,
        names: [name(info.taken_by), name(info.driver)],
    });
    Ok((cpus, lines.collect()))
}

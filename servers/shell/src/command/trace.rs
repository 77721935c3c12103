//! `trace`: what each CPU did, event by event.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use ipc::abi::Error;
use ipc::abi::trace::{TRACE_NEWEST, TRACE_RECORDS, TraceKind, TraceRecord};
use profd::request::number;
use profd::text::counted;

use super::subject::name_of_ended;
use super::{Argument, Command, Context, Group, Quoted, Role};
use crate::format::{Name, Timestamp};
use crate::inspect::in_use;
use crate::system::System;
use crate::text;
use event::details;

mod event;

#[cfg(test)]
mod tests;

/// Events that are shown if nothing is said: they fit a screen.
pub(super) const EVENTS: usize = 20;

pub(super) const TRACE: Command = Command {
    name: "trace",
    group: Group::Measure,
    role: Role::Observe,
    usage: "trace [on|off|n]",
    summary: "what each CPU did, in order",
    arguments: &[Argument::OneOf(&["on", "off"])],
    details: "\
on   from now on, each CPU keeps its newest 1024 events
off  what was kept stays, to be looked at
n    show the newest n events of all CPUs, 1 to 1024; 20 if not said

TIME is in seconds since boot, by the CPU's own clock. WHO is pid/tid and name.
Events that are not shown are counted: older ones that are still kept, and those
that newer ones have overwritten, also while they were read.
",
    facts: None,
    examples: &[
        ("trace on", "begin"),
        ("trace 100", "the newest hundred events"),
    ],
    run,
};

fn run(context: Context<'_>) -> fmt::Result {
    let word = match *context.args {
        [] => return show(context, EVENTS),
        [word] => word,
        [_, second, ..] => return context.too_many(second),
    };
    let on = match word {
        "on" => true,
        "off" => false,
        _ => {
            return match number(word, 1..=TRACE_RECORDS) {
                Some(count) => show(context, count),
                None => {
                    let word = Quoted(word);
                    context.fail(format_args!(
                        "{word}: on, off, or 1 to {TRACE_RECORDS} events"
                    ))
                }
            };
        }
    };
    // Who only looks must not take away what others look at.
    if let Some(refusal) = context.needs(Role::Control) {
        return context.fail(refusal);
    }
    match context.system.set_trace(on) {
        Ok(()) => Ok(()),
        Err(error) => context.fail(error),
    }
}

/// The newest events of all CPUs.
struct Newest {
    /// By time, with their CPUs.
    events: Vec<(u64, TraceRecord)>,
    /// Events since boot.
    all: u64,
    /// Those that are no longer kept.
    overwritten: u64,
}

impl Newest {
    /// Reads them. What happens from then on is not among them.
    fn read(system: &mut dyn System, count: usize) -> Result<Self, Error> {
        let ends: Vec<u64> = (0..system.cpus())
            .map(|cpu| Ok(system.trace(cpu, TRACE_NEWEST)?.next))
            .collect::<Result<_, Error>>()?;
        let mut newest = Self {
            events: Vec::new(),
            all: ends.iter().sum(),
            overwritten: 0,
        };
        for (cpu, &end) in (0..).zip(&ends) {
            // No more than `count` are wanted of any CPU; what the ring cannot have any more is not asked for.
            let oldest = end.saturating_sub(TRACE_RECORDS as u64);
            let mut position = end.saturating_sub(count as u64);
            newest.overwritten += oldest;
            while position < end {
                let part = system.trace(cpu, position)?;
                // Positions are numbers of records: the last of a part may be newer than the end.
                let lost = part.lost.min(end - position);
                newest.overwritten += lost;
                let wanted = part
                    .records
                    .into_iter()
                    .filter(|record| record.sequence <= end);
                newest.events.extend(wanted.map(|record| (cpu, record)));
                if part.next <= position {
                    break;
                }
                position = part.next;
            }
            newest
                .events
                .sort_by_key(|(cpu, record)| (record.tsc, *cpu, record.sequence));
            let surplus = newest.events.len().saturating_sub(count);
            newest.events.drain(..surplus);
        }
        Ok(newest)
    }
}

fn show(context: Context<'_>, count: usize) -> fmt::Result {
    let tracing = context.system.is_traced();
    let newest = Newest::read(context.system, count);
    let names = in_use(|slot| context.system.process_slot(slot));
    let (tracing, newest, names) = match (tracing, newest, names) {
        (Ok(tracing), Ok(newest), Ok(names)) => (tracing, newest, names),
        (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => {
            return context.fail(error);
        }
    };
    let Context {
        session, system, ..
    } = context;
    if !tracing {
        writeln!(session, "tracing is off; `trace on` turns it on")?;
    }
    if newest.all == 0 && !tracing {
        return Ok(());
    }
    let mut names: BTreeMap<u64, String> = (names.into_iter())
        .map(|(_, process)| (process.pid, Name(&process.name).to_string()))
        .collect();
    let shown = newest.events.len() as u64;
    let all = counted(newest.all, "event");
    let overwritten = newest.overwritten;
    writeln!(session, "{shown} of {all}, {overwritten} overwritten")?;
    if newest.events.is_empty() {
        return Ok(());
    }
    writeln!(
        session,
        "{:>12} {:>3} {:<8} {:<20} WHAT",
        "TIME", "CPU", "EVENT", "WHO"
    )?;
    for (cpu, record) in &newest.events {
        let time = Timestamp(system.time_at(record.tsc));
        let name = record.kind().map_or("?", TraceKind::name);
        let who = who(system, &mut names, record);
        let details = details(record);
        let line = format!("{time:>12} {cpu:>3} {name:<8} {who:<20} {details}");
        session.write_str(&text::wrapped(line.trim_end()))?;
    }
    Ok(())
}

/// Whose event it is.
fn who(system: &mut dyn System, names: &mut BTreeMap<u64, String>, record: &TraceRecord) -> String {
    let (pid, tid) = (record.pid(), record.tid());
    if pid == 0 {
        return "-".into();
    }
    let name = names.entry(pid.into()).or_insert_with(|| {
        let ended = name_of_ended(system, pid);
        ended.map_or("?".into(), |name| name.as_str().into())
    });
    match tid {
        0 => format!("{pid} {name}"),
        _ => format!("{pid}/{tid} {name}"),
    }
}

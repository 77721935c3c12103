//! `ps`, `run` and `kill`.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use ipc::abi::Error;
use ipc::abi::info::ThreadState;
use ipc::proto::CallError;
use ipc::proto::init::{Args, Ending, ExitReport, InitError, Name, ProcessInfo};

use super::argument::{self, Argument};
use super::subject::NoSubject;
use super::{Command, Context, Group, Outcome, Quoted, Role};
use crate::ending;
use crate::format::{PAGE_KIB, SECOND, Seconds};
use crate::protocol::Stop;
use crate::session::Session;
use crate::system::System;

pub(super) const PS: Command = Command {
    name: "ps",
    group: Group::Programs,
    role: Role::Observe,
    usage: "ps",
    summary: "the processes",
    arguments: &[],
    details: "\
STATE  what its most active thread does: run, ready, recv (waits for calls),
       call (waits for an answer), wait, sleep, unmap, held, dead
CPU    where that thread runs now
TIME   time that its threads ran, all together
MEM    memory that it uses; all together it is `processes` of `mem`
",
    facts: None,
    examples: &[("ps", "one line for each process")],
    run: ps,
};

pub(super) const RUN: Command = Command {
    name: "run",
    group: Group::Programs,
    role: Role::Control,
    usage: "run PROGRAM [ARGS] [&]",
    summary: "run a program",
    arguments: &[Argument::Program],
    details: "\
Without &, its output appears, Ctrl-C kills it, and you are told how it ended
unless it exited with 0. With &, the prompt is back at once and such an end is
told at a later prompt.
",
    facts: Some(programs),
    examples: &[
        (
            "run shares 60 30 10 &",
            "load to measure, in the background",
        ),
        ("run crash null", "what is said of a program that faults"),
    ],
    run,
};

pub(super) const KILL: Command = Command {
    name: "kill",
    group: Group::Programs,
    role: Role::Control,
    usage: "kill PID",
    summary: "end a process",
    arguments: &[Argument::Pid],
    details: "\
init and the shell of this session are not killed. init starts the other
servers again.
",
    facts: None,
    examples: &[("kill 7", "ends the process that `ps` shows as 7")],
    run: kill,
};

/// How long the end of a process that was killed is waited for, in nanoseconds. Nothing else could end that wait.
const END_NS: u64 = 2 * SECOND;
/// The commands that make no sense before a program in the background.
const WANT_THE_END: [&str; 2] = ["time", "more"];

fn ps(context: Context<'_>) -> fmt::Result {
    if let [first, ..] = *context.args {
        return context.too_many(first);
    }
    // Ids are never reused and so can get long; 5 digits line up.
    writeln!(
        context.session,
        "{:<5} {:<16} {:<5} {:>3} {:>11} {:>8}",
        "PID", "NAME", "STATE", "CPU", "TIME", "MEM"
    )?;
    let mut from = 0;
    loop {
        let process = match context.system.process(from) {
            Ok(Some(process)) => process,
            Ok(None) => return Ok(()),
            Err(error) => return context.fail(error),
        };
        row(context.session, &process)?;
        match process.pid.checked_add(1) {
            Some(next) if next > from => from = next,
            _ => return Ok(()),
        }
    }
}

fn row(out: &mut (impl fmt::Write + ?Sized), process: &ProcessInfo) -> fmt::Result {
    let state = ThreadState::from_raw(process.state.into()).map_or("?", ThreadState::name);
    let name = process.name.as_str();
    write!(out, "{:<5} {name:<16} {state:<5} ", process.pid)?;
    match process.cpu {
        Some(cpu) => write!(out, "{cpu:>3}")?,
        None => write!(out, "{:>3}", "-")?,
    }
    let kib = u64::from(process.pages) * PAGE_KIB;
    writeln!(out, " {:>11} {kib:>7}K", Seconds(process.cpu_ns))
}

fn run(context: Context<'_>) -> fmt::Result {
    let (words, background) = match context.args {
        [words @ .., "&"] => (words, true),
        words => (words, false),
    };
    if background
        && let Some(prefix) = context
            .prefixes
            .iter()
            .find(|prefix| WANT_THE_END.contains(prefix))
    {
        return context.fail(format_args!(
            "no & with `{prefix}`: it would not wait for the end of the program"
        ));
    }
    let Some((&program, arguments)) = words.split_first() else {
        let there = list(context.system);
        return context.fail(format_args!(
            "a program's name is missing; there are: {there}"
        ));
    };
    let Ok(name) = Name::try_from(program) else {
        return no_such_program(context, program);
    };
    let mut args = Args::new();
    for argument in arguments {
        if args.push(argument).is_err() {
            return context.fail("too many or too long arguments");
        }
    }
    if background && context.jobs.room() == 0 {
        return context.fail("too many programs of this session are in the background");
    }
    let pid = match context.system.spawn(name.clone(), args) {
        Ok(pid) => pid,
        Err(CallError::Service(InitError::NoSuchProgram)) => {
            return no_such_program(context, program);
        }
        Err(error) => return context.fail(format_args!("{}: {error}", Quoted(program))),
    };
    if background {
        let told = writeln!(context.session, "started {pid} {name}");
        if told.is_ok() {
            context.jobs.add(pid, name);
        } else {
            // Ctrl-C: nothing is left running of which nobody was told. If this fails it has ended by itself.
            let _ = context.system.kill(pid);
        }
        return told;
    }
    foreground(context, pid)
}

fn no_such_program(context: Context<'_>, program: &str) -> fmt::Result {
    let there = list(context.system);
    context.fail(format_args!(
        "{}: no such program; there are: {there}",
        Quoted(program)
    ))
}

/// What `help run` says of the programs.
fn programs(system: &mut dyn System) -> String {
    format!("programs: {}", list(system))
}

/// The programs that can be run.
fn list(system: &mut dyn System) -> String {
    match system.programs() {
        Ok(programs) if programs.is_empty() => "none".into(),
        Ok(programs) => {
            let names: Vec<&str> = programs.iter().map(Name::as_str).collect();
            names.join(", ")
        }
        Err(error) => format!("unknown, {error}"),
    }
}

fn foreground(context: Context<'_>, pid: u32) -> fmt::Result {
    if context.session.guard(Stop::Process(pid)) {
        // Ctrl-C came before there was something to kill. If this fails the process has ended, and the wait says how.
        let _ = context.system.kill(pid);
    }
    let ended = context.system.wait(pid);
    context.session.guard(Stop::Nothing);
    match ended {
        Ok(report) => self::ended(&report, context.outcome, context.system, context.session),
        Err(error) => context.fail(format_args!("pid {pid}: {error}")),
    }
}

/// Takes the end of a program into what came of the command, and tells of it unless it exited with 0.
pub(super) fn ended(
    report: &ExitReport,
    outcome: &mut Outcome,
    system: &mut dyn System,
    session: &mut dyn Session,
) -> fmt::Result {
    outcome.programs += 1;
    outcome.cpu_ns += report.cpu_ns;
    outcome.ended_badly |= (report.ending, report.code) != (Ending::Exited, 0);
    ending::describe(report, system, session)
}

/// Waits for the end of a process that was killed, for as long as a user would: until then `ps` still shows it. Answers whether
/// it came.
pub(super) fn is_gone(pid: u32, system: &mut dyn System) -> bool {
    let deadline = system.now().saturating_add(END_NS);
    // One that was gone first has nothing to wait for.
    !matches!(
        system.wait_until(pid, deadline),
        Err(CallError::Transport(Error::TimedOut))
    )
}

fn kill(context: Context<'_>) -> fmt::Result {
    let Some((word, rest)) = context.args.split_first() else {
        return context.missing("a pid");
    };
    let pid = match argument::pid(word) {
        Ok(pid) => pid,
        Err(error) => return context.fail(error),
    };
    if let [second, ..] = *rest {
        return context.too_many(second);
    }
    if pid == context.system.own_pid() {
        return context.fail(format_args!(
            "pid {pid} is this shell: the session would end with it"
        ));
    }
    match context.system.kill(pid) {
        Ok(()) => {
            context.jobs.forget(pid);
            match is_gone(pid, context.system) {
                true => writeln!(context.session, "killed {pid}"),
                false => context.fail(format_args!(
                    "pid {pid} has been told to end, and is not gone yet"
                )),
            }
        }
        Err(CallError::Service(InitError::NoSuchProcess)) => {
            context.fail(NoSubject::Unknown { pid: pid.into() })
        }
        Err(CallError::Service(error @ InitError::Refused)) => {
            context.fail(format_args!("pid {pid} is init: {error}"))
        }
        Err(error) => context.fail(format_args!("pid {pid}: {error}")),
    }
}

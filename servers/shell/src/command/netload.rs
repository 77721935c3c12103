//! `netload`: starts the program of that name, says what it does, and ends it. What went through its socket is known to the net server.

use core::fmt;

use alloc::vec::Vec;

use ipc::abi::Error;
use ipc::abi::info::CpuInfo;
use ipc::proto::CallError;
use ipc::proto::init::{Args, ExitReport, InitError, Name};
use ipc::proto::net::{NetError, SocketInfo, SocketStatistics};

use super::process::{self, is_gone};
use super::top::share::Share;
use super::{Argument, Command, Context, Group, Quoted, Role};
use crate::format::{MILLISECOND, SECOND};
use crate::pause::pause;
use crate::system::System;

/// The program.
const PROGRAM: &str = "netload";
/// How long it is waited for until it has a port, and how long until it is looked at again, in nanoseconds.
const BEGIN_NS: u64 = 2 * SECOND;
const LOOK_NS: u64 = 5 * MILLISECOND;

pub(super) const NETLOAD: Command = Command {
    name: PROGRAM,
    group: Group::Measure,
    role: Role::Observe,
    usage: "netload [start|send|stop ...]",
    summary: "UDP load, and its rates",
    arguments: &[Argument::OneOf(&["start", "send", "stop"])],
    details: "\
start [PORT] [sink]   answer each datagram with itself, or only take it; port 7
send IP PORT [size=64] [pps=0] [secs=0] [count=0]
                      send; 0 is as fast, as long, or as many as it goes
stop                  end it
Without an argument it says what the load did, and in a second of it each CPU.

lost      came while the socket was full
failed    could not be sent, or nobody on the link answered for the address
refused   other hosts said that the port is not there
start, send and stop take the role control.
",
    facts: None,
    examples: &[
        ("netload start", "answer at port 7"),
        ("netload send 10.0.2.2 9 pps=1000 secs=5", "5000 datagrams"),
        ("netload", "what comes, goes, and what it costs"),
    ],
    run,
};

fn run(context: Context<'_>) -> fmt::Result {
    let role = match context.args {
        [] => Role::Observe,
        _ => Role::Control,
    };
    if let Some(refusal) = context.needs(role) {
        return context.fail(refusal);
    }
    match *context.args {
        [] => watch(context),
        ["stop"] => stop(context),
        ["stop", more, ..] => context.too_many(more),
        ["start" | "send", ..] => start(context),
        [word, ..] => context.fail(format_args!(
            "{}: start, send, stop, or nothing",
            Quoted(word)
        )),
    }
}

/// The processes of the program.
fn loads(system: &mut dyn System) -> Result<Vec<u32>, CallError<InitError>> {
    let mut pids = Vec::new();
    let mut from = 0;
    while let Some(process) = system.process(from)? {
        from = process.pid.saturating_add(1);
        if process.name.as_str() == PROGRAM {
            pids.push(process.pid);
        }
    }
    Ok(pids)
}

fn start(context: Context<'_>) -> fmt::Result {
    let mut args = Args::new();
    for word in context.args {
        if args.push(word).is_err() {
            return context.fail("too many or too long arguments");
        }
    }
    if context.jobs.room() == 0 {
        return context.fail("too many programs of this session are in the background");
    }
    let name = Name::cut(PROGRAM);
    let pid = match context.system.spawn(name.clone(), args) {
        Ok(pid) => pid,
        Err(error) => return context.fail(error),
    };
    if let Some(report) = end_before_port(pid, context.system) {
        return process::ended(&report, context.outcome, context.system, context.session);
    }
    let told = writeln!(
        context.session,
        "started {pid}; `netload` says what it does, `netload stop` ends it"
    );
    if told.is_ok() {
        context.jobs.add(pid, name);
    } else {
        // Ctrl-C: nothing is left running of which nobody was told. If this fails it has ended by itself.
        let _ = context.system.kill(pid);
    }
    told
}

/// Waits until a load has its port: a session of one command ends with the command, and what keeps the load from a port would be told to
/// nobody. Answers how it ended, if it has before.
fn end_before_port(pid: u32, system: &mut dyn System) -> Option<ExitReport> {
    for _ in 0..BEGIN_NS / LOOK_NS {
        let sockets = match system.sockets() {
            Ok(sockets) => sockets,
            // The load hears the same, and says so.
            Err(CallError::Service(_)) => Vec::new(),
            Err(_) => return None,
        };
        if (sockets.iter()).any(|socket| socket.owner == pid && socket.port.is_some()) {
            return None;
        }
        match system.wait_until(pid, system.now().saturating_add(LOOK_NS)) {
            Ok(report) => return Some(report),
            Err(CallError::Transport(Error::TimedOut)) => {}
            Err(_) => return None,
        }
    }
    None
}

fn stop(context: Context<'_>) -> fmt::Result {
    let pids = match loads(context.system) {
        Ok(pids) => pids,
        Err(error) => return context.fail(error),
    };
    if pids.is_empty() {
        return context.fail(NONE);
    }
    for pid in pids {
        match context.system.kill(pid) {
            Ok(()) | Err(CallError::Service(InitError::NoSuchProcess | InitError::Ended)) => {}
            Err(error) => return context.fail(format_args!("pid {pid}: {error}")),
        }
        context.jobs.forget(pid);
        if !is_gone(pid, context.system) {
            return context.fail(format_args!(
                "pid {pid} has been told to end, and is not gone yet"
            ));
        }
        writeln!(context.session, "ended {pid}")?;
    }
    Ok(())
}

/// What is said if there is no load.
const NONE: &str = "none runs; `netload start` or `netload send` begins one";

/// All that is read at one time.
struct Reading {
    at: u64,
    sockets: Vec<SocketInfo>,
    cpus: Vec<CpuInfo>,
}

/// Why nothing can be read.
enum Trouble {
    Net(CallError<NetError>),
    Kernel(Error),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Net(error) => error.fmt(f),
            Self::Kernel(error) => f.write_str(error.text()),
        }
    }
}

fn read(system: &mut dyn System, pids: &[u32]) -> Result<Reading, Trouble> {
    let mut sockets = system.sockets().map_err(Trouble::Net)?;
    sockets.retain(|socket| pids.contains(&socket.owner));
    let cpus = (0..system.cpus()).map(|cpu| system.cpu(cpu));
    let cpus = cpus.collect::<Result<_, _>>().map_err(Trouble::Kernel)?;
    let at = system.now();
    Ok(Reading { at, sockets, cpus })
}

fn watch(context: Context<'_>) -> fmt::Result {
    let pids = match loads(context.system) {
        Ok(pids) => pids,
        Err(error) => return context.fail(error),
    };
    if pids.is_empty() {
        return context.fail(NONE);
    }
    let before = match read(context.system, &pids) {
        Ok(reading) => reading,
        Err(trouble) => return context.fail(trouble),
    };
    pause(
        context.session,
        context.system,
        before.at.saturating_add(SECOND),
    );
    let after = match read(context.system, &pids) {
        Ok(reading) => reading,
        Err(trouble) => return context.fail(trouble),
    };
    show(context.session, &before, &after)
}

fn show(out: &mut dyn fmt::Write, before: &Reading, after: &Reading) -> fmt::Result {
    let ns = after.at.saturating_sub(before.at);
    let rate = |count: u64| {
        let whole = u128::from(count) * u128::from(SECOND);
        u64::try_from(whole / u128::from(ns.max(1))).unwrap_or(u64::MAX)
    };
    for socket in &after.sockets {
        let mut earlier = before.sockets.iter();
        let earlier =
            earlier.find(|other| (other.owner, other.port) == (socket.owner, socket.port));
        let earlier = earlier.map_or_else(SocketStatistics::default, |socket| socket.statistics);
        let now = &socket.statistics;
        write!(out, "pid {}", socket.owner)?;
        if let Some(port) = socket.port {
            write!(out, ", port {port}")?;
        }
        writeln!(out, ", {} ms", ns / MILLISECOND)?;
        let [received, sent] = [
            (
                now.received,
                earlier.received,
                now.received_bytes,
                earlier.received_bytes,
            ),
            (now.sent, earlier.sent, now.sent_bytes, earlier.sent_bytes),
        ];
        for (name, (packets, packets_before, bytes, bytes_before)) in
            [("received", received), ("sent", sent)]
        {
            let packets_rate = rate(packets.saturating_sub(packets_before));
            let bytes_rate = rate(bytes.saturating_sub(bytes_before));
            writeln!(
                out,
                "{name:<9} {packets:>12} packets {packets_rate:>9} /s {bytes:>15} bytes {bytes_rate:>11} /s"
            )?;
        }
        let lost_here = now.unanswered.saturating_add(now.dropped);
        let failed = now.failed.saturating_add(lost_here);
        for (name, count) in [
            ("lost", now.queue_full),
            ("failed", failed),
            ("refused", now.refused),
        ] {
            writeln!(out, "{name:<9} {count:>12}")?;
        }
    }
    if after.sockets.is_empty() {
        writeln!(out, "it has no socket yet")?;
    }
    for (number, (cpu, earlier)) in after.cpus.iter().zip(&before.cpus).enumerate() {
        let whole = cpu.at_ns.saturating_sub(earlier.at_ns);
        let busy = Share::new(cpu.busy_ns.saturating_sub(earlier.busy_ns), whole);
        let interrupts = rate(cpu.interrupts.saturating_sub(earlier.interrupts));
        let calls = rate(cpu.syscalls.saturating_sub(earlier.syscalls));
        writeln!(
            out,
            "cpu {number:<5} {busy:>11}% busy {interrupts:>12} interrupts /s {calls:>9} calls /s"
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;

//! `threads`: the threads of a process.

use core::fmt;

use ipc::abi::info::ThreadState;
use ipc::abi::inspect::ThreadInfo;

use super::subject::{NoSubject, Subject};
use super::{Argument, Command, Context, Group, Role};
use crate::format::Seconds;
use crate::inspect::in_use;

#[cfg(test)]
mod tests;

pub(super) const THREADS: Command = Command {
    name: "threads",
    group: Group::Programs,
    role: Role::Observe,
    usage: "threads PID",
    summary: "the threads of a process",
    arguments: &[Argument::Pid],
    details: "\
CPU   where it runs, or ran last
PIN   the only CPU where it may run, if there is one
PRI   its priority; more than BASE while it serves one who has more
TIME  how long it ran
",
    facts: None,
    examples: &[("threads 4", "one line for each thread of pid 4")],
    run,
};

fn run(context: Context<'_>) -> fmt::Result {
    context.with_subject(show)
}

fn show(context: Context<'_>, subject: Subject) -> fmt::Result {
    let threads = in_use(|slot| context.system.thread_slot(slot)).map_err(NoSubject::Kernel);
    let still = threads.and_then(|threads| {
        subject.again(context.system)?;
        Ok(threads)
    });
    let mut threads = match still {
        Ok(threads) => threads,
        Err(error) => return context.fail(error),
    };
    threads.retain(|(_, thread)| thread.pid == subject.info.pid);
    threads.sort_by_key(|(_, thread)| thread.tid);
    writeln!(
        context.session,
        "{:>5} {:<5} {:>3} {:>3} {:>3} {:>4} {:>11} IT",
        "TID", "STATE", "CPU", "PIN", "PRI", "BASE", "TIME"
    )?;
    for (_, thread) in &threads {
        row(context.session, thread)?;
    }
    Ok(())
}

fn row(out: &mut (impl fmt::Write + ?Sized), thread: &ThreadInfo) -> fmt::Result {
    let state = ThreadState::from_raw(thread.state);
    let word = state.map_or("?", ThreadState::name);
    write!(out, "{:>5} {word:<5} {:>3} ", thread.tid, thread.cpu)?;
    match thread.pinned {
        u64::MAX => write!(out, "{:>3}", "-")?,
        cpu => write!(out, "{cpu:>3}")?,
    }
    let (priority, base) = (thread.priority, thread.base_priority);
    let (time, doing) = (Seconds(thread.cpu_ns), state.map_or("?", doing));
    writeln!(out, " {priority:>3} {base:>4} {time:>11} {doing}")
}

/// What a thread in this state does, or waits for.
const fn doing(state: ThreadState) -> &'static str {
    match state {
        ThreadState::Held => "was never started",
        ThreadState::Ready => "waits for a cpu",
        ThreadState::Running => "runs",
        ThreadState::Receiving => "waits for calls",
        ThreadState::Calling => "waits for an answer",
        ThreadState::Waiting => "waits for a signal",
        ThreadState::Sleeping => "waits for a time",
        ThreadState::Unmapping => "waits for memory to be unmapped",
        ThreadState::Dead => "has ended",
    }
}

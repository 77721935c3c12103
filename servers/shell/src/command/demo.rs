//! `demo`: starts programs that are worth a look, for who has none of their own yet.
//!
//! They are background programs of the session like any other. The session remembers which ones belong together, so that
//! `demo stop` ends them, and nothing that the user has started.

use alloc::format;
use alloc::string::String;
use core::fmt;

use ipc::proto::CallError;
use ipc::proto::init::{Args, InitError, Name};
use profd::text::counted;

use super::process::is_gone;
use super::{Argument, Command, Context, Group, Quoted, Role};
use crate::jobs::Jobs;
use crate::protocol::Stop;
use crate::system::{InitResult, System};

pub(super) const DEMO: Command = Command {
    name: "demo",
    group: Group::Programs,
    role: Role::Control,
    usage: "demo [stop]",
    summary: "programs to look at",
    arguments: &[Argument::OneOf(&["stop"])],
    details: "\
Starts, in the background:
front     a client of relay, which is one of back: a report shows the frames of
          all three, each client's behind `<=`
shares    three loops that take 60, 30 and 10 % of its time
spinlock  two threads that spin for one lock
syscalls  calls the kernel all the time
`demo stop` ends what is left of them. `run` starts each by itself, but front
needs relay, which needs back. Servers do not end, so `&` gives the prompt back:
`run back &`, `run relay &`, then `run front`.
",
    facts: None,
    examples: &[
        ("demo", "starts them, and says what to look with"),
        ("demo stop", "ends them"),
    ],
    run,
};

/// A program of the demo.
struct Part {
    name: &'static str,
    args: &'static [&'static str],
    /// What there is to see.
    shows: &'static str,
}

/// All of it. A client reaches only a server that runs when it starts, so servers are first.
const PARTS: &[Part] = &[
    Part {
        name: "back",
        args: &[],
        shows: "a server, busy with each call",
    },
    Part {
        name: "relay",
        args: &[],
        shows: "a server that calls back for each call",
    },
    Part {
        name: "front",
        args: &[],
        shows: "a client of relay",
    },
    Part {
        name: "shares",
        args: &["60", "30", "10"],
        shows: "three loops, in these shares of its time",
    },
    Part {
        name: "spinlock",
        args: &["2"],
        shows: "two threads that spin for one lock",
    },
    Part {
        name: "syscalls",
        args: &[],
        shows: "calls the kernel all the time",
    },
];

fn run(context: Context<'_>) -> fmt::Result {
    match *context.args {
        [] => start(context),
        ["stop"] => stop(context),
        ["stop", second, ..] => context.too_many(second),
        [word, ..] => context.fail(format_args!("{}: it is `stop`, or nothing", Quoted(word))),
    }
}

fn start(context: Context<'_>) -> fmt::Result {
    let (all, left) = (PARTS.len(), context.jobs.demo().len());
    if left == all {
        return context.fail("it runs already; `demo stop` ends it");
    }
    if left > 0 {
        return context.fail(format_args!(
            "{left} of its {all} programs still run; `demo stop` ends them"
        ));
    }
    if context.jobs.room() < all {
        return context.fail(format_args!(
            "too many programs of this session are in the background for {all} more"
        ));
    }
    for part in PARTS {
        let started = start_part(part, context.system, context.jobs);
        let why = match started {
            Ok(pid) => {
                let Part { name, args, shows } = part;
                let args = args.iter().map(|arg| format!(" {arg}"));
                let args: String = args.collect();
                let told = writeln!(context.session, "started {pid} {name}{args}: {shows}");
                if told.is_ok() {
                    continue;
                }
                // Ctrl-C, which is not to end what is said of it.
                context.session.guard(Stop::Nothing);
                "interrupted".into()
            }
            Err(error) => format!("{}: {error}", Quoted(part.name)),
        };
        return match end(context.system, context.jobs) {
            Ok(_) => context.fail(format_args!("{why}; nothing of it is left")),
            Err(error) => context.fail(format_args!("{why}; and it cannot be ended: {error}")),
        };
    }
    writeln!(
        context.session,
        "look with `profile`, `profile 1000 PID` or `top`; `demo stop` ends all of it"
    )
}

fn start_part(part: &Part, system: &mut dyn System, jobs: &mut Jobs) -> InitResult<u32> {
    let mut args = Args::new();
    for arg in part.args {
        args.push(arg)
            .map_err(|_| CallError::Service(InitError::ArgsTooLong))?;
    }
    let name = Name::cut(part.name);
    let pid = system.spawn(name.clone(), args)?;
    jobs.add_demo(pid, name);
    Ok(pid)
}

fn stop(context: Context<'_>) -> fmt::Result {
    if context.jobs.demo().is_empty() {
        return context.fail("it does not run; `demo` starts it");
    }
    match end(context.system, context.jobs) {
        Ok(count) => writeln!(context.session, "ended {}", counted(count, "program")),
        Err(error) => context.fail(format_args!("it cannot be ended: {error}")),
    }
}

/// Ends what is left of it, clients before their servers: one whose server is gone would complain. Answers how many.
fn end(system: &mut dyn System, jobs: &mut Jobs) -> InitResult<u64> {
    let mut count = 0;
    for pid in jobs.demo().into_iter().rev() {
        match system.kill(pid) {
            Ok(()) => {
                count += 1;
                // One that is still not gone then will be.
                let _ = is_gone(pid, system);
            }
            Err(CallError::Service(InitError::Ended | InitError::NoSuchProcess)) => {}
            Err(error) => return Err(error),
        }
        jobs.forget(pid);
    }
    Ok(count)
}

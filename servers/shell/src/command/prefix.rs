//! `repeat`, `time` and `more`: what can stand before another command. Each can do so once, so a line is never deeper than there
//! are of them.

use alloc::vec::Vec;
use core::fmt;

use profd::request::number;
use profd::text::counted;

use super::{Argument, Command, Context, Group, NoCommand, Quoted, Role, find};
use crate::format::Seconds;
use crate::protocol::Stop;

/// Most rounds of `repeat`.
const ROUNDS_MAX: u32 = 1_000_000;

pub(super) const REPEAT: Command = Command {
    name: "repeat",
    group: Group::Session,
    role: Role::Observe,
    usage: "repeat N COMMAND",
    summary: "run a command N times",
    arguments: &[Argument::Other, Argument::Line],
    details: "Ctrl-C ends the whole repetition, and so does a command that cannot be done.\n",
    facts: None,
    examples: &[
        ("repeat 3 profile 500", "three reports, one after the other"),
        ("repeat 5 run sleep 200", "the same program five times"),
    ],
    run: repeat,
};

pub(super) const TIME: Command = Command {
    name: "time",
    group: Group::Measure,
    role: Role::Observe,
    usage: "time COMMAND",
    summary: "how long a command takes",
    arguments: &[Argument::Line],
    details: "\
CPU time is that of the programs that it runs to their end, with that of all
their threads; what servers do for them is not in it.
",
    facts: None,
    examples: &[
        (
            "time run chain 100 -t 500",
            "time on the wall, and on the CPUs",
        ),
        ("time repeat 3 run sleep 10", "of three runs together"),
    ],
    run: time,
};

pub(super) const MORE: Command = Command {
    name: "more",
    group: Group::Session,
    role: Role::Observe,
    usage: "more COMMAND",
    summary: "output page by page",
    arguments: &[Argument::Line],
    details: "\
Output stops after 23 rows of 80 columns. Enter or Space shows the next page, q
or Ctrl-C ends the command. Ctrl-S holds output without it, and any key goes on.
",
    facts: None,
    examples: &[
        ("more dmesg", "the kernel log"),
        ("more profile 500 all 100", "a long report"),
    ],
    run: more,
};

/// Why there is no command behind a prefix.
enum Refusal<'a> {
    Missing { usage: &'static str },
    Unknown(NoCommand<'a>),
    Twice(&'static str),
}

impl fmt::Display for Refusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { usage } => write!(f, "a command is missing; usage: {usage}"),
            Self::Unknown(unknown) => unknown.fmt(f),
            Self::Twice(name) => write!(f, "`{name}` can stand before a command once"),
        }
    }
}

/// The command that stands behind a prefix, as often as it is to be run.
struct Inner<'a> {
    command: &'static Command,
    args: &'a [&'a str],
    /// The prefixes before it.
    prefixes: Vec<&'static str>,
}

impl<'a> Inner<'a> {
    fn of(context: &Context<'_>, words: &'a [&'a str]) -> Result<Self, Refusal<'a>> {
        let Some((&name, args)) = words.split_first() else {
            let usage = context.command.usage;
            return Err(Refusal::Missing { usage });
        };
        let command = find(name).ok_or(Refusal::Unknown(NoCommand(name)))?;
        let prefixes = [context.prefixes, &[context.command.name]].concat();
        if prefixes.contains(&command.name) {
            return Err(Refusal::Twice(command.name));
        }
        Ok(Self {
            command,
            args,
            prefixes,
        })
    }

    fn run(&self, context: &mut Context<'_>) -> fmt::Result {
        let inner = Context {
            session: context.session,
            system: context.system,
            jobs: context.jobs,
            outcome: context.outcome,
            command: self.command,
            args: self.args,
            prefixes: &self.prefixes,
        };
        inner.run()
    }
}

fn repeat(mut context: Context<'_>) -> fmt::Result {
    let Some((&word, words)) = context.args.split_first() else {
        return context.missing("a number");
    };
    let Some(rounds) = number(word, 1..=ROUNDS_MAX) else {
        let word = Quoted(word);
        return context.fail(format_args!("rounds {word}: 1 to {ROUNDS_MAX}"));
    };
    let inner = match Inner::of(&context, words) {
        Ok(inner) => inner,
        Err(refusal) => return context.fail(refusal),
    };
    for _ in 0..rounds {
        inner.run(&mut context)?;
        if context.outcome.failed {
            break;
        }
        // Also between two rounds, and where the command has used the Ctrl-C up to end what it waited for.
        if context.session.interrupted() || context.session.guard(Stop::Nothing) {
            break;
        }
    }
    Ok(())
}

fn time(mut context: Context<'_>) -> fmt::Result {
    let inner = match Inner::of(&context, context.args) {
        Ok(inner) => inner,
        Err(refusal) => return context.fail(refusal),
    };
    let (begun, before) = (context.system.now(), *context.outcome);
    inner.run(&mut context)?;
    if context.outcome.failed {
        return Ok(());
    }
    let elapsed = Seconds(context.system.now().saturating_sub(begun));
    write!(context.session, "{elapsed} elapsed")?;
    let programs = context.outcome.programs - before.programs;
    if programs > 0 {
        let cpu = Seconds(context.outcome.cpu_ns.saturating_sub(before.cpu_ns));
        let programs = counted(programs, "program");
        write!(context.session, ", {cpu} of CPU time in {programs}")?;
    }
    writeln!(context.session)
}

fn more(mut context: Context<'_>) -> fmt::Result {
    let inner = match Inner::of(&context, context.args) {
        Ok(inner) => inner,
        Err(refusal) => return context.fail(refusal),
    };
    context.session.page(true)?;
    inner.run(&mut context)?;
    context.session.page(false)
}

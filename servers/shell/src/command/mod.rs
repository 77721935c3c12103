//! The commands. Each is a [`Command`] and one function, side by side in the file of its kind, and an entry of [`COMMANDS`].
//! The function writes to a session and acts through the system.

mod argument;
mod demo;
mod dmesg;
mod help;
mod irq;
mod lscpu;
mod machine;
mod map;
mod netload;
mod network;
mod objects;
mod prefix;
mod process;
mod profile;
mod reboot;
mod session;
mod stacks;
mod subject;
#[cfg(test)]
mod tests;
mod threads;
mod top;
mod trace;

use core::fmt;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use ipc::proto::remote::{Role, Status};
use unicode_width::UnicodeWidthChar;

use crate::jobs::Jobs;
use crate::line::view::PROMPT;
use crate::session::Session;
use crate::system::System;
use crate::words::OpenQuote;
use crate::{text, words};

pub use argument::Argument;

/// What a command is about, and the heading under which `help` lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Where time and memory go.
    Measure,
    /// What runs.
    Programs,
    /// What it runs on.
    Machine,
    /// The shell itself.
    Session,
}

/// A command.
pub struct Command {
    /// What is typed.
    pub name: &'static str,
    /// Where `help` lists it.
    pub group: Group,
    /// What a session must at least be to use it.
    pub role: Role,
    /// How it is written, arguments and all.
    pub usage: &'static str,
    /// What it does, in so few words that `help` can list two commands in a row.
    pub summary: &'static str,
    /// What each argument is, for who presses Tab in it; those that follow cannot be completed.
    pub arguments: &'static [Argument],
    /// What its arguments mean; whole lines, or nothing.
    pub details: &'static str,
    /// What only the system knows of them; a line, or nothing.
    facts: Option<fn(&mut dyn System) -> String>,
    /// Lines to try, and what each does.
    pub examples: &'static [(&'static str, &'static str)],
    run: fn(Context<'_>) -> fmt::Result,
}

/// What a command works with.
struct Context<'a> {
    session: &'a mut dyn Session,
    system: &'a mut dyn System,
    jobs: &'a mut Jobs,
    outcome: &'a mut Outcome,
    command: &'static Command,
    args: &'a [&'a str],
    /// The commands before this one that run it.
    prefixes: &'a [&'static str],
}

/// What came of a line so far.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    /// A command could not do what was asked for.
    failed: bool,
    /// A program that was waited for did not end well.
    ended_badly: bool,
    /// Programs that ran to their end.
    programs: u64,
    /// CPU time of theirs, in nanoseconds.
    cpu_ns: u64,
}

impl Context<'_> {
    /// Runs the command, if the session may use it.
    fn run(self) -> fmt::Result {
        match self.needs(self.command.role) {
            None => (self.command.run)(self),
            Some(refusal) => self.fail(refusal),
        }
    }

    /// Why the session may not do what takes this role, if it may not.
    fn needs(&self, role: Role) -> Option<WrongRole> {
        let has = self.session.role();
        (has < role).then_some(WrongRole { has, needs: role })
    }

    /// Says what went wrong, in a line if it fits one.
    fn fail(self, error: impl fmt::Display) -> fmt::Result {
        self.outcome.failed = true;
        let line = format!("{}: {error}", self.command.name);
        self.session.write_str(&text::wrapped(&line))
    }

    /// Names the first argument that the command has no use for.
    fn too_many(self, argument: &str) -> fmt::Result {
        let usage = self.command.usage;
        self.fail(format_args!(
            "{} is too much; usage: {usage}",
            Quoted(argument)
        ))
    }

    /// Says which argument is missing.
    fn missing(self, what: &str) -> fmt::Result {
        let usage = self.command.usage;
        self.fail(format_args!("{what} is missing; usage: {usage}"))
    }
}

/// Every command; `help` lists each group in this order.
pub const COMMANDS: &[Command] = &[
    profile::PROFILE,
    top::TOP,
    prefix::TIME,
    trace::TRACE,
    process::PS,
    process::RUN,
    demo::DEMO,
    netload::NETLOAD,
    process::KILL,
    threads::THREADS,
    map::MAP,
    machine::MEM,
    machine::UPTIME,
    lscpu::LSCPU,
    network::NET,
    network::PING,
    irq::IRQ,
    stacks::STACKS,
    objects::OBJECTS,
    dmesg::DMESG,
    machine::VERSION,
    machine::POWEROFF,
    reboot::REBOOT,
    help::HELP,
    session::ECHO,
    session::CLEAR,
    session::EXIT,
    prefix::REPEAT,
    prefix::MORE,
];

/// Runs a line, and says what came of it. Of a session that is gone nobody wants to know.
pub fn execute(
    line: &str,
    session: &mut dyn Session,
    system: &mut dyn System,
    jobs: &mut Jobs,
) -> Status {
    let mut outcome = Outcome::default();
    match run(line, session, system, jobs, &mut outcome) {
        Err(fmt::Error) => Status::Interrupted,
        Ok(()) if session.interrupted() => Status::Interrupted,
        Ok(()) if outcome.failed || outcome.ended_badly => Status::Failed,
        Ok(()) => Status::Success,
    }
}

fn run(
    line: &str,
    session: &mut dyn Session,
    system: &mut dyn System,
    jobs: &mut Jobs,
    outcome: &mut Outcome,
) -> fmt::Result {
    if line.contains(char::is_control) {
        outcome.failed = true;
        return writeln!(session, "no command: a line has no control characters");
    }
    let (words, is_whole) = match words::split(line) {
        Ok(words) => (words, true),
        Err(OpenQuote { before }) => (before, false),
    };
    let words: Vec<&str> = words.iter().map(|word| word.as_str()).collect();
    let Some((&name, args)) = without_prompt(&words).split_first() else {
        return match is_whole {
            true => Ok(()),
            false => {
                outcome.failed = true;
                writeln!(session, "no command: {OPEN_QUOTE}")
            }
        };
    };
    let Some(command) = find(name) else {
        outcome.failed = true;
        return writeln!(session, "{}", NoCommand(name));
    };
    let context = Context {
        session,
        system,
        jobs,
        outcome,
        command,
        args,
        prefixes: &[],
    };
    match is_whole {
        true => context.run(),
        false => context.fail(OPEN_QUOTE),
    }
}

/// What is said of a quote that never ends.
const OPEN_QUOTE: &str = "a quote has no end";

/// The words of a line without the prompt that it was copied with, from `help` or from a page.
pub fn without_prompt<'a, 'w>(words: &'a [&'w str]) -> &'a [&'w str] {
    match words {
        [first, rest @ ..] if *first == PROMPT.trim_end() => rest,
        _ => words,
    }
}

/// The command of this name.
pub fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// The commands that a session with this role may use.
pub fn allowed(role: Role) -> impl Iterator<Item = &'static Command> {
    COMMANDS.iter().filter(move |command| command.role <= role)
}

/// A session may not do something.
struct WrongRole {
    has: Role,
    needs: Role,
}

impl fmt::Display for WrongRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { has, needs } = self;
        write!(
            f,
            "refused: it takes the role {needs}, this session has {has}"
        )
    }
}

/// There is no command of this name.
struct NoCommand<'a>(&'a str);

impl fmt::Display for NoCommand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Quoted(self.0);
        write!(f, "no command {name}; `help` lists what there is")
    }
}

/// A word of the user's, in quotes and cut to fit a line.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const COLUMNS: usize = 20;
        let mut columns = 0;
        let cut = self.0.char_indices().find(|(_, character)| {
            columns += character.width().unwrap_or(0);
            columns > COLUMNS
        });
        match cut {
            Some((end, _)) => write!(f, "`{}..`", &self.0[..end]),
            None => write!(f, "`{}`", self.0),
        }
    }
}

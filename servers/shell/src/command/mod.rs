//! The commands. Each is one row of [`COMMANDS`] and one function that writes to a session and acts through the system.

mod dmesg;
mod help;
mod machine;
mod process;
mod profile;
#[cfg(test)]
mod tests;

use core::fmt;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use unicode_width::UnicodeWidthChar;

use crate::jobs::Jobs;
use crate::session::Session;
use crate::system::System;
use crate::{text, words};

/// A command.
pub struct Command {
    /// What is typed.
    pub name: &'static str,
    /// How it is written, arguments and all.
    pub usage: &'static str,
    /// What it does, in a few words.
    pub summary: &'static str,
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
    command: &'static Command,
    args: &'a [&'a str],
}

impl Context<'_> {
    /// Says what went wrong, in a line if it fits one.
    fn fail(self, error: impl fmt::Display) -> fmt::Result {
        let line = format!("{}: {error}", self.command.name);
        self.session.write_str(&text::wrapped(&line))
    }
    /// Names the first argument that the command has no use for.
    fn too_many(self, argument: &str) -> fmt::Result {
        self.fail(format_args!(
            "too many arguments from {} on",
            Quoted(argument)
        ))
    }
}

/// Every command, in the order of `help`.
pub const COMMANDS: &[Command] = &[
    Command {
        name: "help",
        usage: "help [command]",
        summary: "this list, or how a command is used",
        details: "",
        facts: None,
        examples: &[("help profile", "what `profile` can do")],
        run: help::run,
    },
    Command {
        name: "profile",
        usage: profd::request::USAGE,
        summary: "where the machine spends its time",
        details: profile::DETAILS,
        facts: None,
        examples: &[
            ("profile", "1000 ms, every process, the 8 hottest chains"),
            (
                "profile 2000 all 3",
                "2 s, every process, 3 chains: fits one screen",
            ),
            ("profile 500 12", "500 ms, only pid 12"),
            (
                "profile 100 all 8 source tick",
                "from the timer tick, whatever else there is",
            ),
        ],
        run: profile::run,
    },
    Command {
        name: "ps",
        usage: "ps",
        summary: "the processes, and what each has used",
        details: process::PS_DETAILS,
        facts: None,
        examples: &[("ps", "one line for each process")],
        run: process::ps,
    },
    Command {
        name: "run",
        usage: "run PROGRAM [ARGS] [&]",
        summary: "run a program; with & in the background",
        details: process::RUN_DETAILS,
        facts: Some(process::programs),
        examples: &[
            (
                "run shares 60 30 10 &",
                "load to measure, in the background",
            ),
            ("run crash null", "what is said of a program that faults"),
        ],
        run: process::run,
    },
    Command {
        name: "kill",
        usage: "kill PID",
        summary: "end a process",
        details: process::KILL_DETAILS,
        facts: None,
        examples: &[("kill 7", "ends the process that `ps` shows as 7")],
        run: process::kill,
    },
    Command {
        name: "mem",
        usage: "mem",
        summary: "where the memory is",
        details: machine::MEM_DETAILS,
        facts: None,
        examples: &[("mem", "all of it, in KiB")],
        run: machine::mem,
    },
    Command {
        name: "uptime",
        usage: "uptime",
        summary: "time since boot, and what each CPU did",
        details: machine::UPTIME_DETAILS,
        facts: None,
        examples: &[("uptime", "one line, and one for each CPU")],
        run: machine::uptime,
    },
    Command {
        name: "dmesg",
        usage: "dmesg [n] [filter]",
        summary: "the kernel log",
        details: "n       only the last n lines\nfilter  only lines that contain it\n",
        facts: None,
        examples: &[
            ("dmesg 10", "the last ten lines"),
            ("dmesg cpu", "the lines that contain `cpu`"),
            (
                "dmesg 1 \"page fault\"",
                "the last line that contains `page fault`",
            ),
        ],
        run: dmesg::run,
    },
    Command {
        name: "version",
        usage: "version",
        summary: "what this is",
        details: "",
        facts: None,
        examples: &[("version", "one line")],
        run: machine::version,
    },
    Command {
        name: "poweroff",
        usage: "poweroff",
        summary: "power the machine off",
        details: "",
        facts: None,
        examples: &[("poweroff", "at once, without a question")],
        run: machine::poweroff,
    },
];

/// Runs a line.
///
/// # Errors
/// The session is gone.
pub fn execute(
    line: &str,
    session: &mut dyn Session,
    system: &mut dyn System,
    jobs: &mut Jobs,
) -> fmt::Result {
    let Ok(words) = words::split(line) else {
        return writeln!(session, "a quote has no end");
    };
    let words: Vec<&str> = words.iter().map(|word| word.as_str()).collect();
    let Some((&name, args)) = words.split_first() else {
        return Ok(());
    };
    match find(name) {
        Some(command) => (command.run)(Context {
            session,
            system,
            jobs,
            command,
            args,
        }),
        None => unknown(name, session),
    }
}

fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.name == name)
}

fn unknown(name: &str, session: &mut dyn Session) -> fmt::Result {
    writeln!(
        session,
        "no command {}; `help` lists what there is",
        Quoted(name)
    )
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

//! `help`: every command by its group, or one of them with examples. It fits a screen of 24 rows and 80 columns.

use alloc::vec::Vec;
use core::fmt;

use super::{Argument, Command, Context, Group, NoCommand, Role, allowed, find};
use crate::line::view::PROMPT;
use crate::text;

/// Columns of a command's name in the list.
const NAME: usize = 9;
/// Columns of its summary: two commands fit a row.
pub(super) const SUMMARY: usize = 28;

/// The groups in order, with their headings.
const GROUPS: [(Group, &str); 4] = [
    (Group::Measure, "measure"),
    (Group::Programs, "programs"),
    (Group::Machine, "machine"),
    (Group::Session, "session"),
];

pub(super) const HELP: Command = Command {
    name: "help",
    group: Group::Session,
    role: Role::Observe,
    usage: "help [COMMAND]",
    summary: "this, or help of a command",
    arguments: &[Argument::Command],
    details: "",
    facts: None,
    examples: &[("help profile", "what `profile` can do")],
    run,
};

fn run(context: Context<'_>) -> fmt::Result {
    let name = match *context.args {
        [] => return list(context),
        [name] => name,
        [_, second, ..] => return context.too_many(second),
    };
    let Some(command) = find(name) else {
        return context.fail(NoCommand(name));
    };
    if let Some(refusal) = context.needs(command.role) {
        return context.fail(format_args!("{name}: {refusal}"));
    }
    let Context {
        session, system, ..
    } = context;
    writeln!(session, "{}\n{}\n", command.usage, command.summary)?;
    if !command.details.is_empty() {
        writeln!(session, "{}", command.details)?;
    }
    if let Some(facts) = command.facts {
        let line = text::wrapped(&facts(system));
        writeln!(session, "{line}")?;
    }
    let lines = command.examples.iter().map(|(line, _)| line.len());
    let width = lines.max().unwrap_or(0);
    for (line, text) in command.examples {
        writeln!(session, "{PROMPT}{line:width$}  # {text}")?;
    }
    Ok(())
}

fn list(context: Context<'_>) -> fmt::Result {
    let commands: Vec<_> = allowed(context.session.role()).collect();
    rows(&commands, context.session)?;
    context.session.write_str(
        "\n`help COMMAND` has examples. Tab completes, Ctrl-C ends, Ctrl-S holds output.\n",
    )
}

/// The commands of each group below its heading, two in a row.
pub(super) fn rows(commands: &[&Command], out: &mut (impl fmt::Write + ?Sized)) -> fmt::Result {
    for (group, heading) in GROUPS {
        writeln!(out, "{heading}")?;
        let mut members = commands.iter().filter(|command| command.group == group);
        while let Some(Command { name, summary, .. }) = members.next() {
            match members.next() {
                None => writeln!(out, "  {name:NAME$} {summary}")?,
                Some(second) => writeln!(
                    out,
                    "  {name:NAME$} {summary:SUMMARY$}  {:NAME$} {}",
                    second.name, second.summary
                )?,
            }
        }
    }
    Ok(())
}

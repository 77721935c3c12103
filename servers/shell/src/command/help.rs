//! `help`: the list of commands, or one of them with examples. It fits a screen of 24 rows and 80 columns.

use core::fmt;

use super::{COMMANDS, Context, find, unknown};
use crate::text;

pub(super) fn run(context: Context<'_>) -> fmt::Result {
    let name = match *context.args {
        [] => return list(context),
        [name] => name,
        [_, second, ..] => return context.too_many(second),
    };
    let Context {
        session, system, ..
    } = context;
    let Some(command) = find(name) else {
        return unknown(name, session);
    };
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
        writeln!(session, "> {line:width$}  # {text}")?;
    }
    Ok(())
}

fn list(context: Context<'_>) -> fmt::Result {
    let session = context.session;
    for command in COMMANDS {
        // The usage of `profile` alone fills a line; its own help has it.
        let usage = match command.usage.len() {
            0..=24 => command.usage,
            _ => command.name,
        };
        writeln!(session, "{usage:24}{}", command.summary)?;
    }
    session.write_str(
        "\n`help COMMAND` has examples. Ctrl-C ends what runs; cursor up recalls lines.\n",
    )
}

//! `echo` and `clear`: commands about nothing but the screen.

use core::fmt;

use super::{Command, Context, Group};
use crate::line::view::CLEAR_SCREEN;

pub(super) const ECHO: Command = Command {
    name: "echo",
    group: Group::Session,
    usage: "echo [WORDS]",
    summary: "print the words",
    arguments: &[],
    details: "\
Of any command, what is behind a `#` that begins a word is a comment.
",
    facts: None,
    examples: &[("echo \"before  the run\"", "quotes keep blanks, and a `#`")],
    run: echo,
};

pub(super) const CLEAR: Command = Command {
    name: "clear",
    group: Group::Session,
    usage: "clear",
    summary: "clear the screen, as Ctrl-L",
    arguments: &[],
    details: "",
    facts: None,
    examples: &[("clear", "the prompt is in the first row")],
    run: clear,
};

fn echo(context: Context<'_>) -> fmt::Result {
    let mut between = "";
    for word in context.args {
        write!(context.session, "{between}{word}")?;
        between = " ";
    }
    writeln!(context.session)
}

fn clear(context: Context<'_>) -> fmt::Result {
    if let [first, ..] = *context.args {
        return context.too_many(first);
    }
    context.session.write_str(CLEAR_SCREEN)
}

//! `echo`, `clear` and `exit`: commands about nothing but the session.

use core::fmt;

use super::{Command, Context, Group, Role};
use crate::line::view::CLEAR_SCREEN;
use crate::session::Leave;

pub(super) const ECHO: Command = Command {
    name: "echo",
    group: Group::Session,
    role: Role::Observe,
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
    role: Role::Observe,
    usage: "clear",
    summary: "clear the screen, as Ctrl-L",
    arguments: &[],
    details: "",
    facts: None,
    examples: &[("clear", "the prompt is in the first row")],
    run: clear,
};

pub(super) const EXIT: Command = Command {
    name: "exit",
    group: Group::Session,
    role: Role::Observe,
    usage: "exit",
    summary: "end a remote session",
    arguments: &[],
    details: "\
As Ctrl-D on an empty line. Programs in the background go on. The session on the
console does not end.
",
    facts: None,
    examples: &[("exit", "ends the session that it is typed in")],
    run: exit,
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

fn exit(context: Context<'_>) -> fmt::Result {
    if let [first, ..] = *context.args {
        return context.too_many(first);
    }
    match context.session.leave() {
        Leave { ends: true, .. } => Ok(()),
        Leave { how, .. } => context.fail(how),
    }
}

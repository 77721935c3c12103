//! `dmesg`: the kernel log, or its last lines, or those that contain something.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use ipc::abi::layout::LOG_LINE_MAX;
use profd::request::number;
use profd::text::counted;

use super::{Command, Context, Group, Quoted, Role};
use crate::text;

/// Most lines that can be asked for by number, as that many are kept until the end of the log is known.
const LINES_MAX: usize = 4095;

pub(super) const DMESG: Command = Command {
    name: "dmesg",
    group: Group::Machine,
    role: Role::Observe,
    usage: "dmesg [n] [filter]",
    summary: "the kernel log",
    arguments: &[],
    details: "\
n       only the last n lines
filter  only lines that contain it
",
    facts: None,
    examples: &[
        ("dmesg 10", "the last ten lines"),
        ("dmesg cpu", "the lines that contain `cpu`"),
        (
            "dmesg 1 \"page fault\"",
            "the last line that contains `page fault`",
        ),
    ],
    run,
};

fn run(context: Context<'_>) -> fmt::Result {
    let (count, filter) = match *context.args {
        [] => (None, ""),
        [filter] if !is_number(filter) => (None, filter),
        [count] => (Some(count), ""),
        [count, filter] => (Some(count), filter),
        [_, _, third, ..] => return context.too_many(third),
    };
    let lines = count.and_then(|word| number(word, 1..=LINES_MAX));
    match (count, lines) {
        (Some(word), None) => {
            let word = Quoted(word);
            context.fail(format_args!("lines {word}: 1 to {LINES_MAX}"))
        }
        (_, lines) => show(context, lines, filter),
    }
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn show(context: Context<'_>, count: Option<usize>, filter: &str) -> fmt::Result {
    let mut lines = Lines::default();
    let mut found = false;
    let mut last: VecDeque<String> = VecDeque::new();
    let mut position = 0;
    loop {
        let part = match context.system.log(position) {
            Ok(part) => part,
            Err(error) => return context.fail(error),
        };
        if part.lost > 0 {
            lines.forget();
            if position > 0 || count.is_none() {
                let lost = counted(part.lost, "byte");
                writeln!(context.session, "({lost} no longer kept)")?;
            }
        }
        let end = part.bytes.is_empty() || part.next <= position;
        for line in lines.split(&part.bytes, end) {
            if !line.contains(filter) {
                continue;
            }
            found = true;
            match count {
                None => context.session.write_str(&text::wrapped(&line))?,
                Some(count) => {
                    if last.len() == count {
                        last.pop_front();
                    }
                    last.push_back(line);
                }
            }
        }
        if end {
            break;
        }
        position = part.next;
    }
    if !found && !filter.is_empty() {
        return context.fail(format_args!("no line contains {}", Quoted(filter)));
    }
    for line in last {
        context.session.write_str(&text::wrapped(&line))?;
    }
    Ok(())
}

/// Puts parts of the log together to lines. None is longer than the kernel makes them, so what is kept is bounded.
#[derive(Default)]
struct Lines {
    begun: Vec<u8>,
}

impl Lines {
    /// Drops what was begun: its rest is lost.
    fn forget(&mut self) {
        self.begun.clear();
    }

    /// The lines that these bytes complete; at the end of the log, also one without its end.
    fn split(&mut self, bytes: &[u8], end: bool) -> Vec<String> {
        let mut lines = Vec::new();
        for &byte in bytes {
            if byte == b'\n' {
                lines.push(self.take());
            } else if self.begun.len() < LOG_LINE_MAX {
                self.begun.push(byte);
            }
        }
        if end && !self.begun.is_empty() {
            lines.push(self.take());
        }
        lines
    }

    fn take(&mut self) -> String {
        let text = String::from_utf8_lossy(&self.begun);
        let printable = |character: char| match character.is_control() {
            true => ' ',
            false => character,
        };
        let line = text.chars().map(printable).collect();
        self.begun.clear();
        line
    }
}

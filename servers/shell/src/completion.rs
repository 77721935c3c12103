//! How the word before the cursor goes on: a command, a program, or the id of a process, by what its place in the line takes.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use ipc::proto::Text;
use ipc::proto::remote::Role;
use profd::text::COLUMNS;

use crate::command::{Argument, allowed, find, without_prompt};
use crate::protocol::Completion;
use crate::session::Session;
use crate::system::System;
use crate::words::COMMENT;

/// Blanks between two columns of the choice.
const GAP: usize = 2;

/// What a word may become.
struct Candidate {
    text: String,
    /// What it is shown as.
    label: String,
}

/// Completes the last word of what stands before the cursor. With `again` a choice is shown. A system that does not answer
/// knows nothing that could be completed.
pub fn complete(
    before: &str,
    again: bool,
    system: &mut dyn System,
    session: &mut dyn Session,
) -> Completion {
    let is_comment = |word: &str| word.starts_with(COMMENT);
    if before.contains('"') || before.split(' ').any(is_comment) {
        return Completion::Nothing;
    }
    let (words, begun) = before.rsplit_once(' ').unwrap_or(("", before));
    let words: Vec<&str> = words.split(' ').filter(|word| !word.is_empty()).collect();
    let mut candidates = candidates(argument(without_prompt(&words)), session.role(), system);
    candidates.retain(|candidate| candidate.text.starts_with(begun));
    let text = match &candidates[..] {
        [] => return Completion::Nothing,
        [only] => format!("{} ", only.text),
        several => common(several).into(),
    };
    match &text[begun.len()..] {
        "" if again && show(&candidates, session).is_ok() => Completion::Shown,
        "" => Completion::Nothing,
        more => Text::try_from(more).map_or(Completion::Nothing, Completion::Insert),
    }
}

/// What the word behind these is.
fn argument(words: &[&str]) -> Argument {
    let mut words = words;
    while let Some((name, arguments)) = words.split_first() {
        let Some(command) = find(name) else {
            return Argument::Other;
        };
        let line = command
            .arguments
            .iter()
            .position(|&argument| argument == Argument::Line);
        match line.and_then(|line| arguments.get(line..)) {
            Some(line) => words = line,
            None => {
                let argument = command.arguments.get(arguments.len());
                return argument.copied().unwrap_or(Argument::Other);
            }
        }
    }
    Argument::Command
}

fn candidates(argument: Argument, role: Role, system: &mut dyn System) -> Vec<Candidate> {
    let same = |text: &str| Candidate {
        text: text.into(),
        label: text.into(),
    };
    match argument {
        Argument::Other => Vec::new(),
        Argument::OneOf(words) => words.iter().map(|word| same(word)).collect(),
        Argument::Command | Argument::Line => {
            let mut names: Vec<&str> = allowed(role).map(|command| command.name).collect();
            names.sort_unstable();
            names.into_iter().map(same).collect()
        }
        Argument::Program => {
            let programs = system.programs().unwrap_or_default();
            programs.iter().map(|name| same(name)).collect()
        }
        Argument::Pid => pids(system),
    }
}

fn pids(system: &mut dyn System) -> Vec<Candidate> {
    let mut pids = Vec::new();
    let mut from = 0;
    while let Ok(Some(process)) = system.process(from)
        && process.pid >= from
    {
        pids.push(Candidate {
            text: process.pid.to_string(),
            label: format!("{} {}", process.pid, process.name),
        });
        match process.pid.checked_add(1) {
            Some(next) => from = next,
            None => break,
        }
    }
    pids
}

/// The longest text that all begin with.
fn common(candidates: &[Candidate]) -> &str {
    let Some((first, others)) = candidates.split_first() else {
        return "";
    };
    let shared = |one: &str, other: &str| {
        let pairs = one.char_indices().zip(other.chars());
        let differs = pairs.into_iter().find(|&((_, a), b)| a != b);
        differs.map_or(one.len().min(other.len()), |((at, _), _)| at)
    };
    others.iter().fold(&*first.text, |common, other| {
        &common[..shared(common, &other.text)]
    })
}

/// Shows what there is, in columns of the same width, row by row.
fn show(candidates: &[Candidate], session: &mut dyn Session) -> fmt::Result {
    let widths = candidates.iter().map(|candidate| candidate.label.len());
    let width = widths.max().unwrap_or(0) + GAP;
    let columns = ((COLUMNS + GAP) / width).max(1);
    for row in candidates.chunks(columns) {
        let mut line = String::new();
        for Candidate { label, .. } in row {
            line.push_str(&format!("{label:width$}"));
        }
        writeln!(session, "{}", line.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::COMMANDS;
    use crate::fake::{FakeSession, FakeSystem};

    fn system() -> FakeSystem {
        let mut system = FakeSystem {
            programs: vec!["chain", "shares", "sleep", "spin"],
            ..FakeSystem::default()
        };
        for (pid, name) in [(1, "init"), (12, "spin"), (13, "spin"), (u32::MAX, "last")] {
            system.add(pid, name);
        }
        system
    }

    fn insert(text: &str) -> Completion {
        Completion::Insert(Text::cut(text))
    }

    #[test]
    fn a_word_is_completed_by_its_place_in_the_line() {
        for (before, expected) in [
            ("prof", insert("ile ")),
            ("  prof", insert("ile ")),
            ("help prof", insert("ile ")),
            ("repeat 3 prof", insert("ile ")),
            ("time repeat 3 more prof", insert("ile ")),
            ("more help prof", insert("ile ")),
            ("run ch", insert("ain ")),
            ("time run ch", insert("ain ")),
            ("run s", Completion::Nothing),
            ("run sl", insert("eep ")),
            ("kill 4", insert("294967295 ")),
            ("kill 1", Completion::Nothing),
            ("kill 12", insert(" ")),
            ("demo s", insert("top ")),
            ("trace of", insert("f ")),
            ("lsc", insert("pu ")),
            ("lscpu -", insert("v ")),
            ("top 100 a", insert("ll ")),
            ("profile 500 4", insert("294967295 ")),
            ("repeat 3 profile 500 4", insert("294967295 ")),
            // Nothing that could be known.
            ("profile 5", Completion::Nothing),
            ("repeat ", Completion::Nothing),
            ("run chain 1", Completion::Nothing),
            ("kill 12 1", Completion::Nothing),
            ("nonsense pro", Completion::Nothing),
            ("run \"ch", Completion::Nothing),
            ("repeat 3 # pro", Completion::Nothing),
            ("xyz", Completion::Nothing),
            // Behind a prompt that was copied.
            ("> prof", insert("ile ")),
            ("> run ch", insert("ain ")),
            ("run > ch", Completion::Nothing),
        ] {
            let mut session = FakeSession::default();
            let completion = complete(before, false, &mut system(), &mut session);
            assert_eq!(completion, expected, "{before:?}");
            assert_eq!(session.text, "", "{before:?}");
        }
    }

    #[test]
    fn what_all_have_in_common_is_inserted_first() {
        let mut system = FakeSystem {
            programs: vec!["shares-one", "shares-two"],
            ..FakeSystem::default()
        };
        let mut session = FakeSession::default();
        let completion = complete("run s", true, &mut system, &mut session);
        assert_eq!(completion, insert("hares-"));
        assert_eq!(session.text, "");
    }

    #[test]
    fn the_choice_is_shown_in_columns() {
        for (before, text) in [
            ("run s", "shares  sleep   spin\n"),
            ("kill 1", "1 init   12 spin  13 spin\n"),
        ] {
            let mut session = FakeSession::default();
            let completion = complete(before, true, &mut system(), &mut session);
            assert_eq!(completion, Completion::Shown);
            assert_eq!(session.text, text);
        }
        let mut session = FakeSession::default();
        complete("", true, &mut system(), &mut session);
        assert!(session.text.lines().all(|line| line.len() <= 80));
        for command in COMMANDS {
            assert!(
                session
                    .text
                    .split_whitespace()
                    .any(|name| name == command.name)
            );
        }
    }

    #[test]
    fn a_session_is_offered_what_it_may_use() {
        let mut session = FakeSession::default();
        session.observes = true;
        for before in ["kil", "help kil", "time kil"] {
            let completion = complete(before, false, &mut system(), &mut session);
            assert_eq!(completion, Completion::Nothing, "{before}");
        }
        let completion = complete("pow", false, &mut system(), &mut session);
        assert_eq!(completion, Completion::Nothing);
        let completion = complete("prof", false, &mut system(), &mut session);
        assert_eq!(completion, insert("ile "));
    }

    #[test]
    fn a_system_that_does_not_answer_completes_nothing() {
        let mut system = system();
        system.silent = true;
        for before in ["run ch", "kill 4"] {
            let mut session = FakeSession::default();
            let completion = complete(before, true, &mut system, &mut session);
            assert_eq!(completion, Completion::Nothing);
        }
    }
}

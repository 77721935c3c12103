//! How a word goes on, as far as it is known without asking the machine: commands, and words that stand for themselves.

use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use shell::command::{Argument, COMMANDS, find};

/// What the editor asks.
pub struct Commands;

impl Helper for Commands {}
impl Highlighter for Commands {}
impl Validator for Commands {}
impl Hinter for Commands {
    type Hint = String;
}

impl Completer for Commands {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(candidates(line.get(..position).unwrap_or(line)))
    }
}

/// Where the word before the cursor begins, and what it may become.
fn candidates(before: &str) -> (usize, Vec<String>) {
    let start = before.rfind(' ').map_or(0, |blank| blank + 1);
    let (words, begun) = before.split_at(start);
    let words: Vec<&str> = words.split(' ').filter(|word| !word.is_empty()).collect();
    let mut known: Vec<&str> = match argument(&words) {
        Argument::Command | Argument::Line => COMMANDS.iter().map(|it| it.name).collect(),
        Argument::OneOf(words) => words.to_vec(),
        Argument::Other | Argument::Program | Argument::Pid => Vec::new(),
    };
    known.retain(|word| word.starts_with(begun));
    known.sort_unstable();
    let whole = known.into_iter().map(|word| format!("{word} "));
    (start, whole.collect())
}

/// What the word behind these is.
fn argument(mut words: &[&str]) -> Argument {
    while let Some((name, arguments)) = words.split_first() {
        let Some(command) = find(name) else {
            return Argument::Other;
        };
        let takes = command.arguments;
        let line = takes.iter().position(|&takes| takes == Argument::Line);
        match line.and_then(|line| arguments.get(line..)) {
            Some(line) => words = line,
            None => {
                return takes
                    .get(arguments.len())
                    .copied()
                    .unwrap_or(Argument::Other);
            }
        }
    }
    Argument::Command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_goes_on_by_its_place() {
        assert_eq!(candidates("prof"), (0, vec!["profile ".into()]));
        assert_eq!(candidates("help prof"), (5, vec!["profile ".into()]));
        assert_eq!(
            candidates("time repeat 3 prof"),
            (14, vec!["profile ".into()])
        );
        assert_eq!(candidates("demo s"), (5, vec!["stop ".into()]));
        assert_eq!(candidates("kill 1"), (5, vec![]));
        assert_eq!(candidates("nosuch prof"), (7, vec![]));
        let (start, all) = candidates("");
        assert_eq!((start, all.len()), (0, COMMANDS.len()));
    }
}

//! The small programs, mistyped: each says what is wrong in one line that fits the screen.

use std::fs;

use anyhow::{Context as _, ensure};

use crate::test::{Case, Context, Verdict};

use super::session::Session;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![Case::new(
        "every_program_refuses_wrong_words_in_a_line_that_fits",
        || refusals(context),
    )]
}

/// Every small program.
const PROGRAMS: [&str; 10] = [
    "back", "chain", "crash", "front", "relay", "shares", "sleep", "spin", "spinlock", "syscalls",
];

/// Command lines that no program takes, each with the words that its line must have.
const WRONG: [(&str, &str); 4] = [
    ("a_word_that_is_longer_than_it_may_be", "`a_word_that_..`"),
    ("-x", "`-x`"),
    ("\"\"", "``"),
    ("-t", "-t"),
];
/// Columns of the screen.
const COLUMNS: usize = 80;

/// A program without what it needs calls that as its page does.
fn missing(context: &Context<'_>, session: &mut Session) -> Verdict {
    let page = fs::read_to_string(context.workspace.root.join("docs/programs.md"))?;
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let usages: Vec<_> = rows
        .filter_map(|row| Some(row.split_once('`')?.0))
        .collect();
    for program in PROGRAMS {
        let usage = usages
            .iter()
            .find(|usage| usage.split(' ').next() == Some(program));
        let usage = usage.with_context(|| format!("docs/programs.md has no {program}"))?;
        let needed = usage
            .split(' ')
            .nth(1)
            .filter(|word| !word.starts_with('['));
        if let Some(name) = needed.map(|word| word.trim_end_matches('.')) {
            let says = format!("{program}: {name} is missing: ");
            session.expect(&format!("run {program}"), &[&says])?;
        }
    }
    Ok(())
}

fn refusals(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    for program in PROGRAMS {
        for (words, named) in WRONG {
            let line = format!("run {program} {words}");
            let said = session.run(&line)?;
            let mut lines = said.lines();
            let refusal = lines.next().unwrap_or_default();
            let is_named = refusal.starts_with(&format!("{program}: ")) && refusal.contains(named);
            let columns = refusal.chars().count();
            ensure!(is_named && columns <= COLUMNS, "`{line}` printed:\n{said}");
            let end = format!("{program}: exited with code 2 (pid ");
            let is_refused = lines.next().is_some_and(|line| line.starts_with(&end));
            ensure!(
                is_refused && lines.next().is_none(),
                "`{line}` printed:\n{said}"
            );
        }
    }
    missing(context, &mut session)?;
    session.power_off()
}

//! The small programs, mistyped: each says what is wrong in one line that fits the screen.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use crate::test::{Case, Context, Verdict};

use super::session::Session;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![Case::new(
        "every_program_refuses_wrong_words_in_a_line_that_fits",
        || refusals(context),
    )]
}

/// Command lines that no program takes, each with the words that its line must have.
const WRONG: [(&str, &str); 4] = [
    ("a_word_that_is_longer_than_it_may_be", "`a_word_that_..`"),
    ("-x", "`-x`"),
    ("\"\"", "``"),
    ("-t", "-t"),
];
/// Columns of the screen.
const COLUMNS: usize = 80;

/// Every small program: those that the package builds.
fn programs(context: &Context<'_>) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Manifest {
        bin: Vec<Binary>,
    }
    #[derive(Deserialize)]
    struct Binary {
        name: String,
    }
    let path = context.workspace.root.join("programs/Cargo.toml");
    let manifest: Manifest = toml::from_str(&fs::read_to_string(path)?)?;
    Ok(manifest.bin.into_iter().map(|bin| bin.name).collect())
}

/// A program without what it needs calls that as its page does.
fn missing(context: &Context<'_>, session: &mut Session, programs: &[String]) -> Verdict {
    let page = fs::read_to_string(context.workspace.root.join("docs/programs.md"))?;
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let usages: Vec<_> = rows
        .filter_map(|row| Some(row.split_once('`')?.0))
        .collect();
    for program in programs {
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
    let programs = programs(context)?;
    for program in &programs {
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
    missing(context, &mut session, &programs)?;
    session.power_off()
}

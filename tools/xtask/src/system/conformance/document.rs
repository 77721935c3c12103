//! Reads the calls of `docs/abi.md`.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};

use super::errors;

/// A call as the document has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Number.
    pub number: u64,
    /// Name.
    pub name: String,
    /// Names of its arguments.
    pub arguments: Vec<String>,
    /// Names of its results.
    pub results: Vec<String>,
    /// Its errors.
    pub errors: BTreeSet<String>,
}

/// The names of a heading's arguments, and those of its results.
type Signature = (Vec<String>, Vec<String>);

/// Which table of a call a row is in.
#[derive(Clone, Copy)]
enum Table {
    None,
    Arguments,
    Results,
    Errors,
}

/// The calls of the document, in its order.
///
/// # Errors
/// If a heading or a table is not as they all are.
pub fn calls(document: &str) -> Result<Vec<Call>> {
    let (_, text) = document
        .split_once("\n## Calls\n")
        .context("the document has no section `Calls`")?;
    let mut calls = Vec::new();
    // As the heading has them, to compare with the tables.
    let mut heading = Signature::default();
    let mut table = Table::None;
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("### ") {
            finish(calls.last(), &heading)?;
            let (call, signature) = self::heading(title).with_context(|| format!("`{line}`"))?;
            calls.push(call);
            heading = signature;
        }
        let Some(call) = calls.last_mut() else {
            continue;
        };
        table = match line {
            "| argument | |" => Table::Arguments,
            "| result | |" => Table::Results,
            "| error | when |" => Table::Errors,
            line if line.starts_with('|') => {
                row(call, table, line).with_context(|| format!("{}: `{line}`", call.name))?;
                table
            }
            _ => Table::None,
        };
    }
    finish(calls.last(), &heading)?;
    Ok(calls)
}

/// Checks that a call's tables have the names of its heading.
fn finish(call: Option<&Call>, heading: &Signature) -> Result<()> {
    let Some(call) = call else { return Ok(()) };
    ensure!(
        (&call.arguments, &call.results) == (&heading.0, &heading.1),
        "{}: its tables say {:?} and {:?}, its heading {:?} and {:?}",
        call.name,
        call.arguments,
        call.results,
        heading.0,
        heading.1
    );
    Ok(())
}

/// From "7 `signal(notification, bits) -> ()`": the call, and the names of its arguments and results.
fn heading(title: &str) -> Result<(Call, Signature)> {
    let (number, signature) = title.split_once(' ').context("no number")?;
    let signature = signature.trim_matches('`');
    let (call, results) = signature.split_once(" -> ").context("no results")?;
    let (name, arguments) = call.split_once('(').context("no arguments")?;
    let names = |list: &str| {
        let names = list.trim_matches(['(', ')']).split(", ");
        names
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let call = Call {
        number: number.parse().context("no number")?,
        name: name.to_owned(),
        ..Call::default()
    };
    Ok((call, (names(arguments), names(results))))
}

fn row(call: &mut Call, table: Table, line: &str) -> Result<()> {
    let mut cells = line.trim_matches('|').splitn(2, '|').map(str::trim);
    let (first, text) = (
        cells.next().unwrap_or_default(),
        cells.next().unwrap_or_default(),
    );
    if first == "---" {
        return Ok(());
    }
    ensure!(!text.is_empty(), "it says nothing");
    let name = first.trim_matches('`').to_owned();
    match table {
        Table::Arguments => call.arguments.push(name),
        Table::Results => call.results.push(name),
        Table::Errors => {
            let known = errors();
            for error in first.split(", ") {
                ensure!(known.contains(error), "no such error: {error}");
                call.errors.insert(error.to_owned());
            }
        }
        Table::None => anyhow::bail!("a table without a heading"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\n## Calls\n\n### 3 `a(b, c) -> (d)`\n\nText.\n
| argument | |\n|---|---|\n| `b` | x |\n| `c` | y |\n
| result | |\n|---|---|\n| `d` | z |\n
| error | when |\n|---|---|\n| Busy, TimedOut | u |\n| Busy | v |\n";

    #[test]
    fn a_call_is_read() {
        let [call] = &calls(TEXT).unwrap()[..] else {
            panic!("one call");
        };
        assert_eq!((call.number, call.name.as_str()), (3, "a"));
        assert_eq!(
            (&call.arguments[..], &call.results[..]),
            (&["b".into(), "c".into()][..], &["d".into()][..])
        );
        assert_eq!(
            call.errors,
            BTreeSet::from(["Busy".into(), "TimedOut".into()])
        );
    }

    #[test]
    fn what_is_not_as_the_rest_is_refused() {
        for (old, new, says) in [
            ("| `c` | y |\n", "", "its tables say"),
            ("| `d` | z |", "| `e` | z |", "its tables say"),
            (
                "| Busy, TimedOut | u |",
                "| Busy, Timeout | u |",
                "no such error",
            ),
            ("| `d` | z |", "| `d` | |", "`d`"),
            ("### 3 ", "### ", "###"),
            ("| argument | |\n", "", "a:"),
        ] {
            let error = calls(&TEXT.replacen(old, new, 1)).expect_err(new);
            assert!(format!("{error:#}").contains(says), "{new}: {error:#}");
        }
    }
}

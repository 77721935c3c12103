//! The conformance suite: a program that makes every system call rightly and wrongly. What it saw is held to `docs/abi.md`: it must
//! have seen each error that the page lists, and no other.

mod document;
mod outcome;

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context as _, Result, bail, ensure};
use ipc::abi::Syscall;

use crate::cli::BootOptions;
use crate::test::{Case, Context, Verdict};

use super::calm::{Calm, until};
use super::session::Session;
use document::Call;
use outcome::Row;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("conformance_on_1_cpu", || conforms(context, 1)),
        Case::new("conformance_on_2_cpus", || conforms(context, 2)),
        Case::new("conformance_on_4_cpus", || conforms(context, 4)),
    ]
}

fn conforms(context: &Context<'_>, smp: u32) -> Verdict {
    let path = context.workspace.root.join("docs/abi.md");
    let document = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let calls = document::calls(&document)?;
    check_calls(&calls)?;
    let options = BootOptions {
        smp,
        ..BootOptions::default()
    };
    let mut session = Session::boot_image(context.test_image()?, options)?;
    restart_profd(&mut session)?;
    let before = Calm::of(&mut session)?;
    let text = session.run("run conformance")?;
    let cpus = if smp == 1 { "cpu" } else { "cpus" };
    let table = format!("conformance-{smp}-{cpus}.txt");
    fs::write(context.workspace.target.join(table), &text)?;
    let rows = outcome::rows(&text)?;
    let deviations = deviations(&calls, &rows);
    if !deviations.is_empty() {
        bail!("{}\n{text}", deviations.join("\n"));
    }
    // Nothing remains of it: what cases made, and what calls that failed may have begun to make.
    restart_profd(&mut session)?;
    before.again(&mut session)?;
    session.power_off()
}

/// The suite takes the driver's signals away from profd, which asks for them when it starts; until then the driver keeps a
/// notification of the suite's.
fn restart_profd(session: &mut Session) -> Verdict {
    let processes = session.processes()?;
    let profd = processes.iter().find(|process| process.name == "profd");
    let pid = profd.context("profd does not run")?.pid;
    session.run(&format!("kill {pid}"))?;
    until(session, |session| {
        let processes = session.processes()?;
        let mut others = processes.iter().filter(|process| process.pid != pid);
        ensure!(
            others.any(|process| process.name == "profd"),
            "no new profd"
        );
        Ok(())
    })
}

/// How what was seen differs from the document, one line each.
fn deviations(calls: &[Call], rows: &[Row]) -> Vec<String> {
    let mut found = Vec::new();
    for call in calls {
        let Some(row) = rows.iter().find(|row| row.name == call.name) else {
            found.push(format!("{} was not tried", call.name));
            continue;
        };
        for error in &row.errors {
            if !call.errors.contains(error) {
                found.push(format!(
                    "{} answered {error}, which docs/abi.md does not list",
                    call.name
                ));
            }
        }
        for error in &call.errors {
            if !row.errors.contains(error) {
                found.push(format!(
                    "no case saw {} answer {error}, which docs/abi.md lists",
                    call.name
                ));
            }
        }
    }
    found
}

/// Checks that the document has the calls of the table, with their arguments and results.
fn check_calls(calls: &[Call]) -> Result<()> {
    for (what, number) in Syscall::ALL.iter().zip(0..) {
        let name = what.name();
        let there = calls.get(number as usize);
        let there = there.with_context(|| format!("{number} {name} is missing"))?;
        ensure!(
            (there.number, there.name.as_str()) == (number, name),
            "{} {} stands where {number} {name} belongs",
            there.number,
            there.name
        );
        ensure!(
            there.arguments == what.arguments(),
            "arguments of {name}: {:?}",
            there.arguments
        );
        ensure!(
            there.results == what.results(),
            "results of {name}: {:?}",
            there.results
        );
    }
    ensure!(
        calls.len() == Syscall::ALL.len(),
        "there are calls that the table does not have"
    );
    Ok(())
}

/// The names of all errors.
fn errors() -> BTreeSet<String> {
    let all = ipc::abi::Error::ALL.into_iter();
    all.map(|error| format!("{error:?}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = include_str!("../../../../../docs/abi.md");

    #[test]
    fn the_document_has_every_call_as_the_table_has_it() {
        check_calls(&document::calls(DOCUMENT).unwrap()).unwrap();
    }

    #[test]
    fn a_call_that_is_missing_or_different_is_named() {
        for (old, new, says) in [
            ("### 7 `signal(", "### 7 `signals(", "7 signal"),
            ("### 7 `signal(", "### 8 `signal(", "7 signal"),
            (
                "### 7 `signal(notification, bits)",
                "### 7 `signal(notification)",
                "signal",
            ),
            (
                "### 50 `profiler_notify",
                "#### `profiler_notify",
                "profiler_rings: its tables",
            ),
            ("(pages, base)`", "(base, pages)`", "memory_info"),
        ] {
            assert!(DOCUMENT.contains(old), "{old}");
            let changed = DOCUMENT.replacen(old, new, 1);
            let refused = document::calls(&changed).and_then(|calls| check_calls(&calls));
            let error = refused.expect_err(new).to_string();
            assert!(error.contains(says), "{new}: {error}");
        }
    }

    #[test]
    fn every_error_is_explained_with_its_number() {
        for error in ipc::abi::Error::ALL {
            let row = format!("\n| {error:?} | {} |", error as u64);
            assert!(DOCUMENT.contains(&row), "{row}");
        }
    }

    #[test]
    fn what_differs_from_the_document_is_named() {
        let calls = document::calls(DOCUMENT).unwrap();
        let mut rows: Vec<_> = calls
            .iter()
            .map(|call| Row {
                name: call.name.clone(),
                errors: call.errors.clone(),
            })
            .collect();
        assert_eq!(deviations(&calls, &rows), Vec::<String>::new());
        rows[7].errors.insert("Busy".into());
        rows[8].errors.remove("TimedOut");
        rows.remove(50);
        let found = deviations(&calls, &rows).join("\n");
        assert_eq!(found.lines().count(), 3, "{found}");
        for part in [
            "signal answered Busy",
            "wait answer TimedOut",
            "profiler_notify was not",
        ] {
            assert!(found.contains(part), "{found}");
        }
    }
}

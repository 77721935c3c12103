//! `./run.sh bench`: the instructions of what the system does most, as a table and as `target/bench.json`, held to budgets.
//!
//! The guest measures itself (`guest`), also while the host sends to it (`echo`), but for the boots (`boot`); what takes seconds is the host's to measure
//! (`client`). `docs/benchmarks.md` says what each figure includes.

mod boot;
mod budget;
mod client;
mod echo;
mod figure;
mod guest;

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::build::{self, Image};
use crate::cli::Shim;
use crate::workspace::Workspace;

pub use budget::Budgets;
pub use figure::Figure;

/// The boots that are counted: their CPUs, and the figure's name and text.
const BOOTS: [(u32, &str, &str); 2] = [
    (1, "prompt-1-cpu", "boot to prompt, 1 CPU"),
    (4, "prompt-4-cpus", "boot to prompt, 4 CPUs"),
];

/// The samples by counters: in the shim's words, whose they are, and the figure's name and text.
const COUNTERS: [(&str, &str, &str); 3] = [
    (
        "intel:hidden",
        "pmu-intel-sample",
        "Intel counter, 8 frames",
    ),
    ("amd:hidden", "pmu-amd-sample", "AMD counter, 8 frames"),
    (
        "amd2:hidden",
        "pmu-amd-v2-sample",
        "AMD counter v2, 8 frames",
    ),
];

/// Every figure: what the guest measures in the test image, with the shim's counters and without any, and as it answers the host; and the boots of the
/// shipped one.
///
/// # Errors
/// If something cannot be measured.
pub fn measure(
    workspace: &Workspace,
    shipped: &Image,
    test: &Image,
    shim: &Path,
) -> Result<Vec<Figure>> {
    let mut figures = guest::measure(test)?;
    for (counters, name, what) in COUNTERS {
        let record = workspace.target.join(format!("{name}.record"));
        let shim = Shim {
            path: shim.to_owned(),
            counters: counters.to_owned(),
            record: record.clone(),
        };
        let figure = guest::measure_counter(test, shim).context(counters)?;
        figures.push(Figure {
            name,
            what,
            ..figure
        });
        fs::remove_file(record)?;
    }
    for (smp, name, what) in BOOTS {
        figures.push(Figure::once(name, what, boot::to_prompt(shipped, smp)?));
    }
    figures.push(echo::answer(test)?);
    Ok(figures)
}

/// Measures everything, prints the table and writes the file. With `check`, the status is a failure if a figure is above
/// its budget.
///
/// # Errors
/// If something cannot be measured, or figures and budgets do not belong together.
pub fn run(workspace: &Workspace, check: bool) -> Result<ExitCode> {
    let budgets = Budgets::read(workspace)?;
    let shipped = build::build(workspace, &build::SHIPPED)?;
    let test = build::build(workspace, &build::TEST)?;
    let shim = build::shim(workspace)?;
    let figures = measure(workspace, &shipped, &test, &shim)?;
    budgets.match_names(&figures)?;

    print!("{}", figure::table(&figures, &budgets));
    println!("{}", client::exec(workspace, &shipped)?);
    println!("what each includes and checks: docs/benchmarks.md");
    let file = workspace.target.join("bench.json");
    fs::write(&file, figure::json(&figures, &budgets)?)
        .with_context(|| file.display().to_string())?;
    if !check {
        return Ok(ExitCode::SUCCESS);
    }
    Ok(verdict(&mut io::stdout().lock(), &budgets.above(&figures))?)
}

/// Prints what is above its budget; the status is a failure if anything is.
fn verdict(out: &mut impl Write, above: &[String]) -> io::Result<ExitCode> {
    if above.is_empty() {
        writeln!(out, "every figure is within its budget")?;
        return Ok(ExitCode::SUCCESS);
    }
    for line in above {
        writeln!(out, "{line}")?;
    }
    Ok(ExitCode::FAILURE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_budgets_are_those_of_the_figures() {
        let workspace = Workspace::find().unwrap();
        let budgets = Budgets::read(&workspace).unwrap();
        let guest = bench::figure::Figure::ALL;
        let mut figures: Vec<_> = guest
            .map(|figure| Figure::once(figure.name(), figure.what(), 1))
            .into();
        let echo = bench::figure::Figure::Echo;
        let further = COUNTERS.map(|(_, name, what)| (name, what));
        let further = further
            .into_iter()
            .chain(BOOTS.map(|(_, name, what)| (name, what)))
            .chain([(echo.name(), echo.what())]);
        figures.extend(further.map(|(name, what)| Figure::once(name, what, 1)));
        budgets.match_names(&figures).unwrap();
    }

    #[test]
    fn a_figure_above_its_budget_is_a_failure() {
        let mut out = Vec::new();
        assert_eq!(verdict(&mut out, &[]).unwrap(), ExitCode::SUCCESS);
        assert_eq!(out, b"every figure is within its budget\n");
        out.clear();
        let above = ["one".into(), "two".into()];
        assert_eq!(verdict(&mut out, &above).unwrap(), ExitCode::FAILURE);
        assert_eq!(out, b"one\ntwo\n");
    }
}

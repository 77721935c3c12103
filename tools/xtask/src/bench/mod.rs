//! `./run.sh bench`: the instructions of what the system does most, as a table and as `target/bench.json`, held to budgets.
//!
//! The guest measures itself (`guest`), but for the boots (`boot`). `docs/benchmarks.md` says what each figure includes.

pub mod boot;
mod budget;
mod figure;
pub mod guest;

use std::fs;
use std::process::ExitCode;

use anyhow::{Context as _, Result};

use crate::build;
use crate::workspace::Workspace;

pub use budget::Budgets;
pub use figure::Figure;

/// CPUs of the boots that are counted.
const BOOTS: [(u32, &str, &str); 2] = [
    (1, "boot-1-cpu", "boot and off, 1 CPU"),
    (4, "boot-4-cpus", "boot and off, 4 CPUs"),
];

/// Measures everything, prints the table and writes the file. With `check`, the status is a failure if a figure is above
/// its budget.
///
/// # Errors
/// If something cannot be measured, or figures and budgets do not belong together.
pub fn run(workspace: &Workspace, check: bool) -> Result<ExitCode> {
    let budgets = Budgets::read(workspace)?;
    let shipped = build::build(workspace, &build::SHIPPED)?;
    let test = build::build(workspace, &build::TEST)?;
    let mut figures = guest::measure(&test)?;
    for (smp, name, what) in BOOTS {
        let value = boot::whole(workspace, &shipped, smp)?;
        figures.push(Figure::once(name, what, value));
    }
    budgets.match_names(&figures)?;

    print!("{}", figure::table(&figures, &budgets));
    let file = workspace.target.join("bench.json");
    fs::write(&file, figure::json(&figures, &budgets)?)
        .with_context(|| file.display().to_string())?;
    if !check {
        return Ok(ExitCode::SUCCESS);
    }
    let above = budgets.above(&figures);
    for line in &above {
        println!("{line}");
    }
    Ok(if above.is_empty() {
        println!("every figure is within its budget");
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

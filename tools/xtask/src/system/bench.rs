//! `./run.sh bench --check` as a test, and that each budget can be exceeded.

use anyhow::{Context as _, ensure};

use crate::bench::{self, Budgets, Figure};
use crate::cli::BootOptions;
use crate::test::{Case, Context, Verdict};

use super::session::Session;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("the_figures_are_within_their_budgets", || budgets(context)),
        Case::new(
            "nothing_is_measured_where_instructions_are_not_counted",
            || uncounted(context),
        ),
    ]
}

fn budgets(context: &Context<'_>) -> Verdict {
    let budgets = Budgets::read(context.workspace)?;
    let figures = bench::measure(
        context.workspace,
        context.image()?,
        context.test_image()?,
        context.shim()?,
    )?;
    let above = budgets.above(&figures);
    ensure!(above.is_empty(), "{}", above.join("\n"));
    counters(&figures)?;
    // Each figure has a budget that it can exceed.
    for figure in &figures {
        budgets.of(figure.name).context(figure.name)?;
        let lower = budgets.with(figure.name, figure.least - 1);
        let above = lower.above(&figures);
        ensure!(
            above.len() == 1 && above[0].starts_with(&format!("{}: ", figure.name)),
            "{above:?}"
        );
    }
    Ok(())
}

/// A sample by a counter costs no more than one by the timer, and its accesses to registers.
fn counters(figures: &[Figure]) -> Verdict {
    /// Instructions of an access at most: the register's number, the value's halves (at a write taken apart, at a read put together), and
    /// the access itself.
    const ACCESS: u64 = 5;
    let of = |name| {
        let figure = figures.iter().find(|figure| figure.name == name);
        figure.map(|figure| figure.least).context(name)
    };
    let timer = of("nmi-sample")?;
    for (name, accesses) in [
        ("pmu-intel-sample", 6),
        ("pmu-amd-sample", 3),
        ("pmu-amd-v2-sample", 6),
    ] {
        let sample = of(name)?;
        let most = timer + accesses * ACCESS;
        ensure!(sample <= most, "{name}: {sample}, more than {most}");
    }
    Ok(())
}

fn uncounted(context: &Context<'_>) -> Verdict {
    for (smp, icount, says) in [
        (1, false, "does not count instructions"),
        (2, true, "it measures on 1 CPU"),
    ] {
        let options = BootOptions {
            smp,
            icount,
            ..BootOptions::default()
        };
        let mut session = Session::boot_image(context.test_image()?, options)?;
        session.expect("run bench", &[says, "exited with code 1"])?;
        session.power_off()?;
    }
    Ok(())
}

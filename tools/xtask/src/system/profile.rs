//! `profile`: its report, its limits and its refusals. Whether it tells the truth is another file's matter.

use std::time::Duration;

use anyhow::ensure;

use crate::test::{Case, Context, Verdict};

use super::report::Report;
use super::session::Session;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("profile_on_1_cpu", || reports(context, 1)),
        Case::new("profile_on_2_cpus", || reports(context, 2)),
        Case::new("profile_on_4_cpus", || reports(context, 4)),
        Case::new("profile_on_8_cpus", || reports(context, 8)),
        Case::new("bad_arguments_are_refused_by_name", || refusals(context)),
        Case::new("ctrl_c_ends_the_window", || interrupt(context)),
        Case::new("callers_are_shown", || callers(context)),
    ]
}

fn reports(context: &Context<'_>, smp: u32) -> Verdict {
    let mut session = Session::on(context, smp)?;
    let pid = session.start("spin")?;
    let report = session.profile("1000 all 20")?;
    ensure!(
        report.profiled_ms == 1000 && report.dropped == 0,
        "{report:?}"
    );
    ensure!(report.samples > 0 && report.source == "tick", "{report:?}");
    ensure!(
        report.chains.iter().any(|chain| chain.image == "spin"),
        "{report:?}"
    );
    if smp > 1 {
        ensure!(
            report.chains.iter().any(|chain| chain.image == "kernel"),
            "{report:?}"
        );
    }
    let report = session.profile(&format!("1000 {pid}"))?;
    ensure!(
        report.chains.iter().all(|chain| chain.image == "spin"),
        "{report:?}"
    );
    ensure!(
        report.taken.is_some_and(|taken| taken >= report.samples),
        "{report:?}"
    );
    session.expect("profile 200 all 8 folded", &["spin`"])?;
    let text = session.expect(
        "profile 200 all 1 -v",
        &["profiled 200 ms\n", "unaccounted 0"],
    )?;
    Report::parse(&text)?;
    session.power_off()
}

/// Arguments that are wrong, and how the refusal names them and what is allowed.
const REFUSALS: [(&str, [&str; 2]); 12] = [
    ("0", ["window `0`", "1 to 2000"]),
    ("2001", ["window `2001`", "1 to 2000"]),
    ("x", ["window `x`", "1 to 2000"]),
    ("100 x", ["process `x`", "or all"]),
    ("100 999999", ["pid 999999", "or all"]),
    ("100 all 0", ["chains `0`", "1 to 512"]),
    ("100 all 8 9 10", ["from `9` on", "`help profile`"]),
    ("100 all 8 depth 0", ["depth `0`", "1 to 48"]),
    (
        "100 all 8 source foo",
        ["source `foo`", "pmu, timer or tick"],
    ),
    ("100 all 8 source pmu", ["source pmu", "tick"]),
    ("100 all -x", ["option `-x`", "-v"]),
    ("100 folded folded", ["`folded`", "once"]),
];

fn refusals(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    for (arguments, words) in REFUSALS {
        let text = session.run(&format!("profile {arguments}"))?;
        let one_line = text.lines().count() == 1 && text.starts_with("profile: ");
        ensure!(
            one_line && words.iter().all(|word| text.contains(word)),
            "`profile {arguments}` printed:\n{text}"
        );
        // If anything were armed, this would be refused.
        session.profile("10")?;
    }
    session.power_off()
}

fn interrupt(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    // However fast the machine is, one of these lies between the opening of the window and its end.
    let mut text = String::new();
    for wait_ms in [100, 300, 700, 1200] {
        session.guest.send(b"profile 2000\n")?;
        session.guest.wait_for("\n")?;
        std::thread::sleep(Duration::from_millis(wait_ms));
        session.guest.send(b"\x03")?;
        text = session.guest.prompt()?;
        if !text.contains("stopped before the window opened") {
            break;
        }
    }
    // The echo of Ctrl-C may stand before the report.
    let start = text.find("profiled ").unwrap_or(0);
    let report = Report::parse(&text[start..])?;
    ensure!(
        report.asked_ms == Some(2000) && report.profiled_ms < 2000,
        "{report:?}"
    );
    session.profile("100")?;
    session.power_off()
}

fn callers(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    let pid = session.start("chain 12")?;
    let report = session.profile(&format!("1000 {pid} depth 32"))?;
    let deepest = report.chains.iter().map(|chain| chain.callers.len()).max();
    ensure!(deepest.is_some_and(|callers| callers >= 12), "{report:?}");
    let cut = session.run(&format!("profile 500 {pid} 8 depth 4"))?;
    Report::parse(&cut)?;
    ensure!(cut.contains("more)"), "{cut}");
    session.power_off()
}

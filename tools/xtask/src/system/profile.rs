//! `profile`: its report, its limits and its refusals. Whether it tells the truth is another file's matter.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

use crate::test::{Case, Context, Verdict};

use super::report::{Chain, Report, between};
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
        Case::new("by_client_the_outermost_one_pays", || by_client(context)),
    ]
}

fn reports(context: &Context<'_>, smp: u32) -> Verdict {
    let mut session = Session::on(context, smp)?;
    let pid = session.start("spin")?;
    for (asked, source) in [
        ("", "timer/nmi"),
        ("source timer", "timer/nmi"),
        ("source tick", "tick"),
    ] {
        let report = session.profile(&format!("1000 all 20 {asked}"))?;
        let found = |image: &str| report.chains.iter().any(|chain| chain.image == image);
        ensure!(
            report.source == source && report.profiled_ms == 1000 && report.dropped == 0,
            "{report:?}"
        );
        // An idle CPU is in the kernel.
        ensure!(found("spin") && (smp == 1 || found("kernel")), "{report:?}");
        let report = session.profile(&format!("1000 {pid} 512 {asked}"))?;
        ensure!(
            report.taken.is_some_and(|taken| taken >= report.samples),
            "{report:?}"
        );
        ensure!(
            report.chains.iter().all(|chain| is_of(chain, "spin")),
            "{report:?}"
        );
    }
    session.expect("profile 200 all 8 folded", &["spin`"])?;
    let text = session.expect(
        "profile 200 all 1 -v",
        &[
            "profiled 200 ms\n",
            " ns a sample, ",
            "true rate ",
            "of each cpu, ",
            "unaccounted 0",
        ],
    )?;
    // What CPUs ask of each other can come late.
    ensure!(text.contains(" late on average") == (smp > 1), "{text}");
    session.power_off()
}

/// Whether no program but this one is in a chain: its leaf is in it or in the kernel that works for it.
fn is_of(chain: &Chain, image: &str) -> bool {
    let here = |other: &str| other == image || other == "kernel";
    let mut callers = chain.callers.iter().filter_map(|caller| {
        let caller = caller.strip_prefix("<- ")?;
        caller.split_once('`').map(|(image, _)| image)
    });
    here(&chain.image)
        && callers.all(here)
        && !chain.callers.iter().any(|caller| caller.starts_with("<="))
}

/// Arguments that are wrong, and how the refusal names them and what is allowed.
const REFUSALS: [(&str, [&str; 2]); 16] = [
    ("0", ["window `0`", "1 to 2000"]),
    ("2001", ["window `2001`", "1 to 2000"]),
    ("x", ["word `x`", "by-client"]),
    ("by_client", ["word `by_client`", "probably by-client"]),
    ("100 all 8 deph 4", ["word `deph`", "probably depth N"]),
    ("100 x", ["process `x`", "or all"]),
    ("100 999999", ["pid 999999", "or all"]),
    ("100 all 0", ["chains `0`", "1 to 512"]),
    ("100 all 8 9 10", ["from `9` on", "`help profile`"]),
    ("100 all 8 depth 0", ["depth `0`", "1 to 48"]),
    (
        "100 all 8 source foo",
        ["source `foo`", "pmu, timer or tick"],
    ),
    ("100 all 8 source pmu", ["source pmu", "claims no counters"]),
    ("100 all -x", ["option `-x`", "-v"]),
    ("100 folded folded", ["`folded`", "once"]),
    ("100 999999 by-client", ["pid 999999", "or all"]),
    ("by-client 100 by-client", ["`by-client`", "once"]),
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
    ensure!(cut.contains("more)"), "{cut}");
    session.power_off()
}

/// Windows of two seconds that must be enough to find `back` at work for `front`. One mostly is.
const WINDOWS: usize = 30;

/// `front` asks `relay`, which asks `back`: what those two do is on the account of `front`, and every chain leads to who pays.
fn by_client(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    session.run("demo")?;
    for _ in 0..WINDOWS {
        let report = session.profile("2000 all 512 depth 48 by-client")?;
        for chain in &report.chains {
            let account = chain.account.and_then(|index| report.accounts.get(index));
            let account = account.context("a chain on no account")?;
            ensure!(leads_to(chain, &account.who), "{account:?}: {chain:?}");
        }
        let find = |name: &str| {
            let mut accounts = report.accounts.iter();
            accounts.find(|account| account.who.split(' ').next() == Some(name))
        };
        let (Some(front), Some(back)) = (find("front"), find("back")) else {
            continue;
        };
        if front.by_others > 0 && back.for_others > 0 {
            let front = &front.who[..];
            let pid = between(front, "front (pid ", ")")?;
            let report = session.profile(&format!("1000 {pid} by-client"))?;
            ensure!(report.taken.is_some(), "{report:?}");
            session.expect("profile 200 all by-client folded", &[front])?;
            return session.power_off();
        }
    }
    bail!("no window shows `front` and `back`")
}

/// Whether the outer end of a chain is in this program: its last client, or, if it served none, all of it but the kernel.
fn leads_to(chain: &Chain, who: &str) -> bool {
    let callers = chain.callers.iter();
    let client = callers.rev().find_map(|caller| caller.strip_prefix("<= "));
    let Some((name, _)) = who.split_once(" (pid ") else {
        return !who.starts_with("nobody") || client.is_none();
    };
    match client {
        Some(client) => client.split('`').next() == Some(name),
        None => is_of(chain, name),
    }
}

//! `demo`, and the programs that it starts: a report finds each of them, and `demo stop` leaves nothing.

use anyhow::{Context as _, Result, bail, ensure};
use iced_x86::Mnemonic;
use ipc::bootfs::Bootfs;

use crate::build::elf;
use crate::cli::BootOptions;
use crate::test::{Case, Context, Verdict};

use super::calm::{Calm, until};
use super::disassembly;
use super::report::{Chain, Report};
use super::session::Session;
use super::shortage;

/// Windows of two seconds that must be enough to find every part of the demo. One mostly is.
const WINDOWS: usize = 30;
/// Windows of a tenth of a second that profd must bear without a page more than it had for the longer ones.
const SHORTER: usize = 5;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("demo_on_1_cpu", || demo(context, 1)),
        Case::new("demo_on_2_cpus", || demo(context, 2)),
        Case::new("demo_on_4_cpus", || demo(context, 4)),
        Case::new("a_demo_of_which_a_part_died_is_ended", || part(context)),
        Case::new("a_demo_without_memory_leaves_nothing", || scarce(context)),
        Case::new("servers_on_demand_answer_or_fail_at_once", || {
            on_demand(context)
        }),
    ]
}

/// Whether a chain is a part of the demo.
type Finds<'a> = Box<dyn Fn(&Chain) -> bool + 'a>;

fn demo(context: &Context<'_>, smp: u32) -> Verdict {
    let waits = waits(context)?;
    let leaf = |image: &'static str, symbol: &'static str| -> Finds<'_> {
        Box::new(move |chain| chain.image == image && chain.symbol == symbol)
    };
    let mut parts: Vec<(&str, Finds<'_>)> = vec![
        ("the first share", leaf("shares", "share_a")),
        ("the second share", leaf("shares", "share_b")),
        ("the third share", leaf("shares", "share_c")),
        (
            "the holder of the lock",
            Box::new(|chain| {
                let here = chain.image == "spinlock" && chain.symbol == "hold";
                here && is_of_a_thread(chain)
            }),
        ),
        (
            "who waits for the lock",
            Box::new(|chain| {
                let span = &chain.offsets;
                let here = chain.image == "spinlock" && chain.symbol == "acquire";
                here && waits.iter().any(|(start, end)| {
                    // What was interrupted behind an instruction has just executed it.
                    span.contains(start) || span.contains(end)
                })
            }),
        ),
        ("a client of a client", Box::new(is_three_deep)),
        ("a call", leaf("syscalls", "null")),
        ("signals", leaf("syscalls", "signal_and_wait")),
        ("handles", leaf("syscalls", "duplicate_and_close")),
    ];

    let mut session = Session::on(context, smp)?;
    let before = Calm::of(&mut session)?;
    session.expect("demo", &["started ", "`demo stop`"])?;
    session.expect("demo", &["it runs already"])?;
    let mut reports: Vec<Report> = Vec::new();
    while !parts.is_empty() {
        if reports.len() == WINDOWS {
            let missing: Vec<_> = parts.iter().map(|(name, _)| name).collect();
            bail!("not found: {missing:?} in {reports:#?}");
        }
        let report = session.profile("2000 all 512")?;
        parts.retain(|(_, finds)| !report.chains.iter().any(finds));
        reports.push(report);
    }
    session.expect("demo stop", &["ended 6 programs"])?;
    session.expect("demo stop", &["it does not run"])?;
    let settled = before.again_but_for_profd(&mut session)?;

    // Profiles of shorter windows take no page more; that they keep no byte, a test of profd tells.
    session.run("demo")?;
    for _ in 0..SHORTER {
        session.profile("100 all 512")?;
    }
    session.expect("demo stop", &["ended 6 programs"])?;
    settled.again_with_profd(&mut session)?;
    session.power_off()
}

/// Whether the callers are the work of one of `spinlock`'s threads, and what began the thread: one function, which says so.
fn is_of_a_thread(chain: &Chain) -> bool {
    let [work, begin] = &chain.callers[..] else {
        return false;
    };
    work.starts_with("<- spinlock`contend+")
        && begin.starts_with("<- spinlock`sysroot::thread::start::run::<..")
}

/// Whether it is `back` at work for `relay`, which serves `front`.
fn is_three_deep(chain: &Chain) -> bool {
    let mut clients = (chain.callers.iter()).filter(|caller| caller.starts_with("<="));
    chain.image == "back"
        && chain.symbol == "work"
        && clients
            .next()
            .is_some_and(|relay| relay.starts_with("<= relay`main+"))
        && clients
            .next()
            .is_some_and(|front| front.starts_with("<= front`main+"))
        && clients.next().is_none()
}

/// Where in `acquire` its exchanges and its pause are: offsets of each one's first byte, and of the byte behind it.
fn waits(context: &Context<'_>) -> Result<Vec<(u64, u64)>> {
    let bootfs = context.image()?.bootfs.as_ref().context("no archive")?;
    let bytes = std::fs::read(bootfs)?;
    let archive = Bootfs::parse(&bytes)
        .ok()
        .context("the archive is damaged")?;
    let file = archive.find("bin/spinlock").context("no bin/spinlock")?;
    let functions = elf::functions(file.data)?;
    let mut named = functions
        .iter()
        .filter(|function| function.name.ends_with("spinlock7acquire"));
    let acquire = named.next().context("no function `acquire`")?;
    let waits: Vec<_> = disassembly::instructions(file.data, acquire)?
        .into_iter()
        .filter(|it| it.has_lock_prefix() || it.mnemonic() == Mnemonic::Pause)
        .map(|it| (it.ip() - acquire.address, it.next_ip() - acquire.address))
        .collect();
    ensure!(waits.len() > 1, "`acquire` does not wait: {waits:?}");
    Ok(waits)
}

fn part(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    let before = Calm::of(&mut session)?;
    session.run("demo")?;
    let processes = session.processes()?;
    let relay = processes.iter().find(|process| process.name == "relay");
    let relay = relay.context("no relay")?.pid;
    session.guest.send(format!("kill {relay}\n").as_bytes())?;
    say(&mut session, &["front: relay: the other side is gone"])?;
    // Its end is told at a prompt, and it is forgotten.
    until(&mut session, |session| {
        let names = session.processes()?;
        ensure!(names.iter().all(|process| process.name != "front"));
        Ok(())
    })?;
    session.expect("demo", &["4 of its 6 programs still run"])?;
    session.expect("demo stop", &["ended 4 programs"])?;
    before.again(&mut session)?;
    session.expect("demo", &["started "])?;
    session.expect("demo stop", &["ended 6 programs"])?;
    before.again(&mut session)?;
    session.power_off()
}

/// The machine has memory for what starts with it, and for one more program.
fn scarce(context: &Context<'_>) -> Verdict {
    let options = BootOptions::default();
    let options = BootOptions {
        mem: shortage::least(context, options.smp)?,
        ..options
    };
    let mut session = Session::boot(context, options)?;
    let before = Calm::of(&mut session)?;
    session.expect("demo", &["memory", "nothing of it is left"])?;
    session.expect("demo stop", &["it does not run"])?;
    before.again(&mut session)?;
    session.power_off()
}

/// Waits until programs in the background have said all of these, which upsets the prompt, and the prompt is back.
fn say(session: &mut Session, texts: &[&str]) -> Verdict {
    until(session, |session| {
        session.settle(b"")?;
        let said = session.guest.transcript();
        for text in texts {
            ensure!(said.contains(text), "nobody said {text:?}");
        }
        Ok(())
    })
}

fn on_demand(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    let before = Calm::of(&mut session)?;
    let gone = "the other side is gone; start it before";
    session.expect("run front", &["front: relay: ", gone, "exited with code 1"])?;
    let relay = session.start("relay")?;
    // It hears that `back` does not run when it calls it, and ends; so its client is failed as well.
    session.guest.send(b"run front\n")?;
    let ends = format!("relay: exited with code 1 (pid {relay})");
    say(
        &mut session,
        &["relay: back: the other side is gone", &ends],
    )?;
    for _ in 0..2 {
        let back = session.start("back")?;
        let relay = session.start("relay")?;
        session.expect("run back", &["there is only one, and it runs"])?;
        let text = session.run("run front -t 20")?;
        ensure!(text.is_empty(), "{text}");
        session.run(&format!("kill {relay}"))?;
        session.run(&format!("kill {back}"))?;
    }
    before.again(&mut session)?;
    session.power_off()
}

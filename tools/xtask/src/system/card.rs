//! The network card and its driver, on QEMU's user network: a DHCP server and a gateway that answers.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};

use crate::cli::BootOptions;
use crate::qemu::REMOTE_SHELL_PORT;
use crate::test::{Case, Context, Verdict};

use super::guest::PATIENCE;
use super::session::Session;

/// The gateway, and what `ping` ends with when it answered each time.
const GATEWAY: &str = "10.0.2.2";
const ALL_ANSWERED: &str = "4 of 4 answered";
/// What `net` says once the network has its address.
const ADDRESS: &str = "10.0.2.15/24 by DHCP";

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("network_card_interrupts_by_message", || {
            answers(context, &[], "message")
        }),
        Case::new("network_card_interrupts_by_its_line", || {
            answers(context, &["-global", "virtio-net-pci.vectors=0"], "pin")
        }),
        Case::new("network_card_that_is_modern_alone", || {
            answers(
                context,
                &["-global", "virtio-net-pci.disable-legacy=on"],
                "message",
            )
        }),
        Case::new("network_card_that_is_too_old", || too_old(context)),
        Case::new("network_card_comes_back_with_its_driver", || {
            returns(context)
        }),
        Case::new("network_card_is_still_when_idle", || idles(context)),
        Case::new("function_is_all_that_its_driver_reaches", || {
            reaches(context)
        }),
    ]
}

fn options(qemu_args: &[&str]) -> BootOptions {
    BootOptions {
        smp: 2,
        qemu_args: qemu_args.iter().map(|&word| word.into()).collect(),
        ..BootOptions::default()
    }
}

/// Waits until the network has its address; returns what `net` says then.
fn address(session: &mut Session) -> Result<String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let said = session.run("net")?;
        if said.contains(ADDRESS) {
            return Ok(said);
        }
        ensure!(Instant::now() < deadline, "no address came:\n{said}");
    }
}

/// The number behind a word at the beginning of a line.
fn number(said: &str, word: &str) -> Result<u64> {
    let line = said.lines().find_map(|line| line.strip_prefix(word));
    let number = line.and_then(|rest| rest.split_whitespace().next());
    let number = number.and_then(|number| number.parse().ok());
    number.with_context(|| format!("no number behind {word:?} in:\n{said}"))
}

/// The card interrupts in this way, and frames go both ways.
fn answers(context: &Context<'_>, qemu_args: &[&str], kind: &str) -> Verdict {
    let mut session = Session::boot(context, options(qemu_args))?;
    let before = number(&address(&mut session)?, "interrupts")?;
    session.expect(&format!("ping {GATEWAY}"), &[ALL_ANSWERED])?;
    let said = session.run("net")?;
    ensure!(
        number(&said, "interrupts")? > before,
        "no interrupt came:\n{said}"
    );
    ensure!(number(&said, "errors")? == 0, "{said}");
    let lines = session.run("irq")?;
    let taken = lines
        .lines()
        .find(|line| line.ends_with(" net") && line.contains(kind));
    let count = taken.and_then(|line| line.split_whitespace().nth(1));
    let count = count.and_then(|count| count.parse::<u64>().ok());
    ensure!(
        count.is_some_and(|count| count > 0),
        "not by {kind}:\n{lines}"
    );
    session.power_off()
}

/// A card that speaks only what was before version 1 is not driven, and the system goes on.
fn too_old(context: &Context<'_>) -> Verdict {
    let args = ["-global", "virtio-net-pci.disable-modern=on"];
    let mut session = Session::boot(context, options(&args))?;
    session.expect(
        "dmesg",
        &["net: no network device: it has no common registers"],
    )?;
    session.expect("net", &["no network device"])?;
    session.expect("ps", &[" net "])?;
    session.power_off()
}

/// Whoever ends the net server, the next one drives the card, however often.
fn returns(context: &Context<'_>) -> Verdict {
    let mut session = Session::boot(context, options(&[]))?;
    for _ in 0..3 {
        address(&mut session)?;
        let net = session.processes()?.into_iter().find(|it| it.name == "net");
        let pid = net.context("no net server runs")?.pid;
        session.expect(&format!("kill {pid}"), &[&format!("killed {pid}")])?;
    }
    address(&mut session)?;
    session.expect(&format!("ping {GATEWAY}"), &[ALL_ANSWERED])?;
    session.power_off()
}

/// While nothing comes, the net server does not run, with the remote shell on as `./run.sh` has it.
fn idles(context: &Context<'_>) -> Verdict {
    let options = BootOptions {
        cmdline: format!("udpshell={REMOTE_SHELL_PORT}"),
        ..options(&[])
    };
    let mut session = Session::boot(context, options)?;
    let before = address(&mut session)?;
    session.expect("dmesg remote", &["remote shell at UDP port "])?;
    session.run("trace on")?;
    session.run("run sleep 1000")?;
    session.run("trace off")?;
    let trace = session.run("trace 1024")?;
    let net = trace.lines().filter(|line| line.contains(" net"));
    let ran: Vec<&str> = net.collect();
    ensure!(trace.contains(" sleep"), "the trace has nothing:\n{trace}");
    ensure!(ran.is_empty(), "the net server ran:\n{}", ran.join("\n"));
    let after = session.run("net")?;
    ensure!(
        number(&after, "interrupts")? == number(&before, "interrupts")?,
        "there were interrupts:\n{before}{after}"
    );
    session.power_off()
}

/// A driver that tries reaches neither the table of messages, nor configuration, nor anybody else by its function. What it
/// leaves turned on is off when the next one starts: it says so, or it panics.
fn reaches(context: &Context<'_>) -> Verdict {
    let image = context.test_image()?;
    let mut without = Session::boot_image(image, options(&[]))?;
    without.expect("run function", &["no function"])?;
    without.power_off()?;
    let card = ["-device", "virtio-rng-pci"];
    let mut session = Session::boot_image(image, options(&card))?;
    for _ in 0..3 {
        // Each bit of each of 64 registers, but for one, and for those of the status.
        let tried = format!(
            "{} writes refused, 4 pages of registers, 4 for DMA\n",
            64 * 32 - 17
        );
        let said = session.run("run function on")?;
        ensure!(said == tried, "{said}");
    }
    session.power_off()
}

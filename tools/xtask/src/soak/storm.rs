//! A storm of programs: they start, crash, and are killed and measured in any order. When it is over, nothing is left of it.

use std::time::Instant;

use anyhow::{Result, ensure};
use fastrand::Rng;

use crate::system::guest::PATIENCE;
use crate::system::session::Session;
use crate::system::tables::{Memory, Process};
use crate::test::{Context, Verdict};

use super::dice::one;

/// Commands.
const STEPS: usize = 60;
/// How much more servers may be charged with when it is over, in KiB: their heaps keep what the busiest moment needed.
const GROWTH_KIB: u64 = 256;
/// Pools from which those heaps take.
const HEAP_POOLS: [&str; 2] = ["memory objects", "handle chunks"];

pub(super) fn round(context: &Context<'_>, dice: &mut Rng) -> Verdict {
    let mut session = Session::on(context, *one(dice, &[1, 2, 4, 8]))?;
    // What servers make when they are first used is made.
    session.profile("10")?;
    session.run("run crash null")?;
    let before = Calm::of(&mut session)?;
    for _ in 0..STEPS {
        let typed = step(dice, &session.background);
        session.settle(typed.as_bytes())?;
    }
    session.end_background()?;
    Calm::of(&mut session)?.check(&before)?;
    session.profile("100")?;
    session.power_off()
}

/// What to type next. Whatever does not end by itself is in the background, or Ctrl-C follows.
fn step(dice: &mut Rng, started: &[u64]) -> String {
    let pid = match started {
        [] => 99_999,
        started => *one(dice, started),
    };
    match dice.u8(..12) {
        0..=2 => format!("run {} &\n", endless(dice)),
        3..=4 => format!("run {} &\n", short(dice)),
        5 => format!("run {}\n", short(dice)),
        6 => format!("run {}\n\x03", endless(dice)),
        7..=8 => format!("kill {pid}\n"),
        9 => format!("profile {}\n", dice.u16(1..=100)),
        10 => format!("profile 2000 {pid}\n\x03"),
        _ => format!("{}\n", one(dice, &["ps", "mem", "uptime", "dmesg 5"])),
    }
}

fn endless(dice: &mut Rng) -> String {
    match dice.u8(..4) {
        0 => "spin".into(),
        1 => "sleep 1000000".into(),
        2 => format!("chain {}", dice.u16(1..=500)),
        _ => format!("shares {} {}", dice.u8(1..=100), dice.u8(1..=100)),
    }
}

fn short(dice: &mut Rng) -> String {
    const KINDS: [&str; 10] = [
        "null", "wild", "stack", "ud2", "divide", "hlt", "port", "sse", "exec", "panic",
    ];
    let ms = dice.u16(1..=200);
    match dice.u8(..6) {
        0 => format!("spin -t {ms}"),
        1 => format!("sleep {ms}"),
        2 => format!("chain 30 -t {ms}"),
        3 => format!("shares 60 30 10 -t {ms}"),
        _ => format!("crash {}", one(dice, &KINDS)),
    }
}

/// The system while nothing runs but its servers.
#[derive(Debug)]
struct Calm {
    processes: Vec<Process>,
    memory: Memory,
}

impl Calm {
    /// Waits until no part of an ended program is left to be taken down, and no freed memory for a CPU that might reach it.
    fn of(session: &mut Session) -> Result<Self> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let calm = Self {
                processes: session.processes()?,
                memory: session.memory()?,
            };
            let slots = calm.memory.pool("processes")?;
            if slots == calm.processes.len() as u64 && calm.memory.kib("waiting")? == 0 {
                return Ok(calm);
            }
            ensure!(Instant::now() < deadline, "it never became calm: {calm:#?}");
        }
    }

    fn charged_kib(&self) -> u64 {
        self.processes.iter().map(|process| process.kib).sum()
    }

    /// Fails unless every page of programs is charged to one that lives, and all is as it was, but for heaps.
    fn check(&self, before: &Self) -> Verdict {
        let names = |calm: &Self| -> Vec<String> {
            let names = calm.processes.iter().map(|process| process.name.clone());
            names.collect()
        };
        ensure!(names(self) == names(before), "left over: {self:#?}");
        let (charged, was) = (self.charged_kib(), before.charged_kib());
        ensure!(
            charged == self.memory.kib("processes")? && charged <= was + GROWTH_KIB,
            "servers were charged with {was} KiB, and are now with {charged}: {self:#?}"
        );
        for part in ["kernel", "bootfs"] {
            let (was, is) = (before.memory.kib(part)?, self.memory.kib(part)?);
            ensure!(was == is, "{part}: {was} KiB became {is}");
        }
        let fixed = |calm: &Self| {
            let mut pools = calm.memory.pools.clone();
            pools.retain(|name, _| !HEAP_POOLS.contains(&name.as_str()));
            pools
        };
        let (was, is) = (fixed(before), fixed(self));
        ensure!(was == is, "{was:?} became {is:?}");
        Ok(())
    }
}

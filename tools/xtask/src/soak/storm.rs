//! A storm of programs: they start, crash, and are killed and measured in any order. When it is over, nothing is left of it.

use fastrand::Rng;

use crate::system::calm::Calm;
use crate::system::session::Session;
use crate::test::{Context, Verdict};

use super::dice::one;

/// Commands.
const STEPS: usize = 60;

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
    before.again(&mut session)?;
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

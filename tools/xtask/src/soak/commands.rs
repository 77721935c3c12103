//! Command lines that are right or almost: known words, numbers about every limit, quotes and rubbish, in any order. Every one
//! ends at a prompt.

use fastrand::Rng;
use shell::command::COMMANDS;

use crate::system::session::Session;
use crate::system::shell::ENDING;
use crate::test::{Context, Verdict};

use super::dice::one;

/// Lines.
const LINES: usize = 150;
/// Words that are no command.
const NONSENSE: [&str; 2] = ["PROFILE", "nonsense"];
/// Arguments that mean something somewhere. No number is the id of a server: killing those is allowed, and has its price.
const WORDS: [&str; 24] = [
    "all",
    "depth",
    "source",
    "tick",
    "timer",
    "foo",
    "folded",
    "on",
    "off",
    "stop",
    "-v",
    "-x",
    "-t",
    "&",
    "--",
    "",
    "\"",
    "\"two words\"",
    "\u{e4}\u{20ac}",
    "help",
    "profile",
    "shell",
    "init",
    "1",
];
/// Numbers at and about limits.
const NUMBERS: [&str; 16] = [
    "0",
    "7",
    "8",
    "10",
    "48",
    "49",
    "100",
    "512",
    "513",
    "2001",
    "65536",
    "4294967295",
    "4294967296",
    "99999999999999999999999",
    "-1",
    "+1",
];
/// Programs, and names that are none.
const PROGRAMS: [&str; 9] = [
    "sleep", "spin", "crash", "chain", "shares", "init", "shell", "nosuch", "../x",
];

pub(super) fn round(context: &Context<'_>, dice: &mut Rng) -> Verdict {
    let mut session = Session::on(context, *one(dice, &[1, 2, 4]))?;
    let servers = session.processes()?;
    for _ in 0..LINES {
        session.settle(line(dice).as_bytes())?;
    }
    session.end_background()?;
    session.expect_alive(&servers)?;
    session.profile("10")?;
    session.power_off()
}

/// A line, and Ctrl-C if it starts something that may not end.
fn line(dice: &mut Rng) -> String {
    match dice.u8(..4) {
        0 => profile(dice) + "\n",
        1 => run(dice) + "\n\x03",
        2 => prefixed(dice),
        _ => {
            let names: Vec<_> = COMMANDS.iter().map(|command| command.name).collect();
            let name = *one(dice, &[&names[..], &NONSENSE].concat());
            // Alone it does what it says.
            let is_ending = ENDING.contains(&name);
            let end = if is_ending { " now\n" } else { "\n" };
            let count = dice.u8(..8);
            format!("{name} {}{end}", words(dice, count))
        }
    }
}

/// Something behind prefixes, which may stop at the end of a page.
fn prefixed(dice: &mut Rng) -> String {
    let prefixes: Vec<_> = (0..dice.u8(1..4))
        .map(|_| match dice.u8(..4) {
            0 => "time".to_owned(),
            1 => "more".to_owned(),
            _ => format!("repeat {}", word(dice)),
        })
        .collect();
    let inner = match dice.u8(..4) {
        0 => profile(dice),
        1 => run(dice),
        2 => "help".to_owned(),
        _ => format!("echo {}", words(dice, 3)),
    };
    format!("{} {inner}\n\x03", prefixes.join(" "))
}

/// A profile with arguments that are in order, but for one perhaps.
fn profile(dice: &mut Rng) -> String {
    let mut arguments: Vec<String> = Vec::new();
    for place in ["10", "all", "8"] {
        if dice.u8(..4) == 0 {
            break;
        }
        arguments.push(place.to_owned());
    }
    for option in [
        "depth 3",
        "depth",
        "source tick",
        "source pmu",
        "folded",
        "-v",
    ] {
        if dice.u8(..4) == 0 {
            let place = dice.usize(..=arguments.len());
            arguments.insert(place, option.to_owned());
        }
    }
    if dice.bool() {
        let place = dice.usize(..=arguments.len());
        arguments.insert(place, word(dice));
    }
    format!("profile {}", arguments.join(" "))
}

/// A program with arguments, in the background perhaps.
fn run(dice: &mut Rng) -> String {
    let count = dice.u8(..5);
    let background = if dice.u8(..4) == 0 { " &" } else { "" };
    format!(
        "run {} {}{background}",
        one(dice, &PROGRAMS),
        words(dice, count)
    )
}

fn words(dice: &mut Rng, count: u8) -> String {
    let words: Vec<_> = (0..count).map(|_| word(dice)).collect();
    words.join(if dice.bool() { " " } else { "  " })
}

fn word(dice: &mut Rng) -> String {
    match dice.u8(..20) {
        0 => "y".repeat(dice.usize(1..1000)),
        1 => dice.u64(1000..).to_string(),
        2 => format!("-{}", dice.char('!'..='~')),
        3..=9 => (*one(dice, &NUMBERS)).to_owned(),
        _ => (*one(dice, &WORDS)).to_owned(),
    }
}

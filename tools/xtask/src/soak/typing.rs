//! What a cat on the keyboard or a hostile peer may type, also while commands run: the prompt comes back, and nobody dies of it.

use fastrand::Rng;

use crate::system::session::Session;
use crate::test::{Context, Verdict};

use super::dice::one;

/// Commands, and what is typed into them.
const PIECES: usize = 20;
/// Commands to type into; the first is the prompt alone.
const COMMANDS: [&str; 12] = [
    "",
    "run sleep 20\n",
    "run spin\n",
    "profile 50\n",
    "help\n",
    "ps\n",
    "run chain 5 -t 20 &\nkill 99999\n",
    "repeat 1000 echo ping\n",
    "repeat 9 run sleep 5\n",
    "time repeat 9 help\n",
    "more repeat 9 help\n",
    "more repeat 9 run crash null\n",
];
/// What keys send.
const KEYS: [&str; 27] = [
    "\x1b[A",
    "\x1b[B",
    "\x1b[C",
    "\x1b[D",
    "\x1b[H",
    "\x1b[F",
    "\x1b[3~",
    "\x1bOA",
    "\x1b[1;5C",
    "\x1bb",
    "\x1bf",
    "\x7f",
    "\x08",
    "\x01",
    "\x05",
    "\x0b",
    "\x15",
    "\x17",
    "\x0c",
    "\x04",
    // Completion, hold, go on, pages.
    "\t",
    "re\t\t",
    "run s\t",
    "\x13",
    "\x11",
    " ",
    "q",
];

pub(super) fn round(context: &Context<'_>, dice: &mut Rng) -> Verdict {
    let mut session = Session::on(context, *one(dice, &[1, 2, 4]))?;
    let servers = session.processes()?;
    for _ in 0..PIECES {
        let mut typed = one(dice, &COMMANDS).as_bytes().to_vec();
        for _ in 0..dice.u8(1..=3) {
            typed.extend(noise(dice));
        }
        // Whatever that has become, also an unfinished sequence or a program that does not end: Ctrl-C ends it.
        typed.push(b'\x03');
        session.settle(&typed)?;
    }
    session.end_background()?;
    session.expect_alive(&servers)?;
    session.profile("10")?;
    session.power_off()
}

/// At most 10,000 bytes: a guest that no longer reads must not block the test.
fn noise(dice: &mut Rng) -> Vec<u8> {
    let length = dice.usize(1..=300);
    match dice.u8(..10) {
        0 => std::iter::repeat_with(|| dice.u8(..))
            .take(length)
            .collect(),
        1 => vec![0; length],
        2 => vec![dice.u8(b' '..=b'~'); 10_000],
        3 => [vec![b'x'; 9_999], vec![b'\n']].concat(),
        4 => std::iter::repeat_with(|| dice.u8(b' '..=b'~'))
            .take(length)
            .collect(),
        5 => std::iter::repeat_with(|| dice.char(..))
            .take(length)
            .collect::<String>()
            .into_bytes(),
        6 => {
            // Characters that are cut in the middle.
            let mut bytes = "\u{e4}\u{20ac}\u{1f980}".repeat(length).into_bytes();
            bytes.truncate(length);
            bytes
        }
        7 => (0..length / 8).flat_map(|_| sequence(dice)).collect(),
        8 => b"\x1b["
            .iter()
            .chain(&vec![b'9'; length])
            .copied()
            .collect(),
        _ => (0..length / 4)
            .flat_map(|_| one(dice, &KEYS).bytes())
            .collect(),
    }
}

/// An escape sequence (ECMA-48, section 5.4), whole or cut.
fn sequence(dice: &mut Rng) -> Vec<u8> {
    let mut bytes = one(dice, &["\x1b[", "\x1bO", "\x1b]", "\x1b", "\u{9b}"])
        .as_bytes()
        .to_vec();
    for _ in 0..dice.u8(..6) {
        bytes.push(dice.u8(b'0'..=b'?'));
    }
    if dice.bool() {
        bytes.push(dice.u8(b'@'..=b'~'));
    }
    bytes
}

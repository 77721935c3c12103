//! `truth-duty BUSY PERIOD`: at each multiple of the period since boot it works for so long, in microseconds, and then sleeps. If the
//! period is the tick's, a tick interrupts it always at the same place.
#![no_std]
#![no_main]

use core::hint::black_box;

use sysroot::{ExitCode, startup, time};
use truth::Turns;

sysroot::entry!(main);

fn main() -> Result<(), ExitCode> {
    let mut words = startup::args().map(str::parse::<u64>);
    let (Some(Ok(busy)), Some(Ok(period @ 1..))) = (words.next(), words.next()) else {
        return Err(ExitCode::USAGE);
    };
    let (busy, period) = (busy * time::MICROSECOND, period * time::MICROSECOND);
    let mut turns = Turns::new();
    loop {
        let now = time::now();
        time::sleep(period - now % period);
        work(&mut turns, time::after(busy));
    }
}

/// Works until then.
#[inline(never)]
fn work(turns: &mut Turns, end: u64) {
    let mut turn: u64 = 0;
    while time::now() < end {
        turn = black_box(turn + 1);
        turns.take();
    }
}

//! `truth-churn [PID]`: clients of `truth-server any` that come and are killed in mid-call, some of which do not wait for the
//! answer. Each one that comes has another number than the one whose place it takes. With the server's pid, that one is killed,
//! too, after a while.
#![no_std]
#![no_main]

use sysroot::{ExitCode, startup, time};
use truth::init::Init;

sysroot::entry!(main);

/// Clients at a time.
const PLACES: usize = 4;
/// What each one is told: its number, and how long it waits, in microseconds.
const TOLD: [[[&str; 2]; PLACES]; 2] = [
    [["0", "0"], ["1", "60"], ["2", "0"], ["3", "150"]],
    [["4", "60"], ["5", "0"], ["6", "150"], ["7", "0"]],
];
/// Nanoseconds from one change to the next.
const PAUSE: u64 = time::MILLISECOND;
/// Nanoseconds until the server is killed.
const SERVER_LIVES: u64 = 700 * time::MILLISECOND;

fn main() -> Result<(), ExitCode> {
    let mut server = match startup::args().next().map(str::parse) {
        None => None,
        Some(Ok(pid)) => Some(pid),
        Some(Err(_)) => return Err(ExitCode::USAGE),
    };
    let end = time::after(SERVER_LIVES);
    let mut init = Init::connect()?;
    let mut places = [None; PLACES];
    loop {
        for told in &TOLD {
            for (place, words) in places.iter_mut().zip(told) {
                if let Some(pid) = place.take() {
                    init.kill(pid)?;
                    init.wait(pid)?;
                }
                *place = Some(init.start("truth-caller", words)?);
                time::sleep(PAUSE);
                if let Some(pid) = server.take_if(|_| time::now() >= end) {
                    init.kill(pid)?;
                }
            }
        }
    }
}

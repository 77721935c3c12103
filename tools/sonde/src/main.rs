//! The program: reads its arguments, does what they say, and ends with a status.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use sonde::Cli;

fn main() -> ExitCode {
    let ended = Cli::read().run();
    ended.unwrap_or_else(|error| {
        eprintln!("sonde: {error:#}");
        ExitCode::from(sonde::NO_ANSWER)
    })
}

//! `isolation [ROUNDS]`: carries out every attack so many times, once if not said, and prints a table. With `attack` and numbers it is one of
//! those that it starts. It is in the test archive alone; the exit code is the verdict.
#![no_std]
#![no_main]

use isolation::{attack, judge, table};
use sysroot::{ExitCode, println, startup};

sysroot::entry!(main);

fn main() -> ExitCode {
    let mut args = startup::args();
    match (args.next(), args.next(), args.next()) {
        (Some("attack"), Some(number), Some(value)) => {
            attack::carry_out(table::HOLDER, number, value)
        }
        (rounds, None, None) => match rounds.unwrap_or("1").parse() {
            Ok(rounds) if judge::run(rounds) => ExitCode::SUCCESS,
            Ok(_) => ExitCode::FAILURE,
            Err(_) => usage(),
        },
        _ => usage(),
    }
}

fn usage() -> ExitCode {
    println!("isolation: [ROUNDS]");
    ExitCode::USAGE
}

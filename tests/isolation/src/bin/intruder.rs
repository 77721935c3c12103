//! `intruder attack NUMBER VALUE`: has been given nothing but an output, and tries what it must not: see the library.
#![no_std]
#![no_main]

use isolation::{attack, table};
use sysroot::{ExitCode, println, startup};

sysroot::entry!(main);

fn main() -> ExitCode {
    let mut args = startup::args();
    match (args.next(), args.next(), args.next()) {
        (Some("attack"), Some(number), Some(value)) => {
            attack::carry_out(table::INTRUDER, number, value)
        }
        _ => {
            println!("intruder: attack NUMBER VALUE");
            ExitCode::USAGE
        }
    }
}

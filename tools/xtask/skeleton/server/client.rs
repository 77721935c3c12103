//! `ask-@name@ NUMBER TIMES`: has the server `@name@` add a number so many times, and prints the sum.
#![no_std]
#![no_main]

use core::ops::RangeInclusive;

use ipc::proto::@name@::Client;
use sysroot::{Connection, ExitCode, println};

sysroot::entry!(main);

const NUMBER: RangeInclusive<u64> = 0..=u32::MAX as u64;
const TIMES: RangeInclusive<u64> = 1..=1_000_000_000;

fn main() -> Result<(), ExitCode> {
    let (number, times) = programs::parse("ask-@name@ NUMBER TIMES", 2, |arguments| {
        let number = arguments.number(0, "NUMBER", &NUMBER)?;
        Ok((number as u32, arguments.number(1, "TIMES", &TIMES)?))
    })?;
    let Some(connection) = Connection::named("@name@") else {
        println!("ask-@name@: its entry in system.toml does not let it call @name@");
        return Err(ExitCode::FAILURE);
    };
    let mut client = Client::new(connection);
    let mut sum = 0;
    for _ in 0..times {
        sum = client.add(&number).map_err(|error| {
            println!("ask-@name@: {error}");
            ExitCode::FAILURE
        })?;
    }
    println!("the sum is {sum}");
    Ok(())
}

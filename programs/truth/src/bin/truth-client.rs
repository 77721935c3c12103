//! `truth-client NUMBER [DEADLINE]`: calls the server all the time, from a function of its own for each number.
//!
//! Without a deadline it calls the endpoint of its number, 0 or 1; with one, which is in microseconds from now and 0 for none, the
//! endpoint of any client. A call that timed out is followed by work of its own, which no server does for it.
#![no_std]
#![no_main]

use core::hint::black_box;

use ipc::abi::{Error, Handle, NEVER, Tag};
use sysroot::syscall::message;
use sysroot::{ExitCode, println, startup, time};
use truth::{CLIENTS, Turns};

sysroot::entry!(main);

/// Turns after a call that timed out.
const LATE: u64 = 2000;

truth::loops! {
    late 0x6666_0001,
}

fn main() -> Result<(), ExitCode> {
    let mut words = startup::args().map(str::parse::<u64>);
    let (Some(Ok(number)), wait) = (words.next(), words.next()) else {
        return Err(ExitCode::USAGE);
    };
    let endpoint = startup::handle(match (number, &wait) {
        (_, Some(_)) => "truth-any",
        (0, None) => "truth-0",
        (_, None) => "truth-1",
    });
    let ask = ASK.get(number as usize);
    let (Some(endpoint), Some(ask)) = (endpoint, ask) else {
        return Err(ExitCode::USAGE);
    };
    let mut turns = Turns::new();
    loop {
        let deadline = match wait {
            Some(Ok(wait @ 1..)) => time::after(wait * time::MICROSECOND),
            _ => NEVER,
        };
        match ask(endpoint, deadline) {
            Ok(()) => {}
            Err(Error::TimedOut) => {
                black_box(late(&mut turns, LATE));
            }
            Err(error) => {
                println!("truth-client: {error}");
                return Err(ExitCode::FAILURE);
            }
        }
    }
}

/// A function for each client, which says its number to the server.
macro_rules! clients {
    ($($name:ident $number:literal,)*) => {
        const ASK: [fn(Handle, u64) -> Result<(), Error>; CLIENTS] = [$($name),*];

        $(
            #[inline(never)]
            fn $name(endpoint: Handle, deadline: u64) -> Result<(), Error> {
                message::call(endpoint, Tag::default(), [$number, 0, 0, 0], deadline).map(drop)
            }
        )*
    };
}

clients! {
    ask_0 0,
    ask_1 1,
    ask_2 2,
    ask_3 3,
    ask_4 4,
    ask_5 5,
    ask_6 6,
    ask_7 7,
}

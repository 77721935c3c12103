//! `asker`: asks profd for profiles of the longest window, one after the other, until one fails; it says why. So there is one while the
//! shell does something else.
#![no_std]
#![no_main]

use ipc::proto::profd::{Client, Request, SessionName, Start, WINDOW_MAX_MS};
use sysroot::{Connection, ExitCode, println};

sysroot::entry!(main);

fn main() -> Result<(), ExitCode> {
    let Some(connection) = Connection::named("profd") else {
        println!("asker: no handle to profd was given");
        return Err(ExitCode::FAILURE);
    };
    let mut profd = Client::new(connection);
    for number in 1.. {
        let start = Start {
            request: Request {
                window_ms: WINDOW_MAX_MS,
                ..Request::default()
            },
            number,
            session: SessionName::cut("test"),
        };
        if let Err(error) = profd.measure(&start) {
            println!("asker: {error}");
            break;
        }
    }
    Ok(())
}

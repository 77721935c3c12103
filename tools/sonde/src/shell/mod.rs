//! A shell on a machine.
//!
//! The machine's shell draws for a terminal: a prompt, an echo of what is typed, and output, all in one stream of text. On a terminal of this
//! host lines are edited here, with a history of their own, so that a slow way to the machine is not felt at each key: a line is sent when it
//! is entered, and its echo left out ([`screen`]). While a command runs, keys go to the machine as they are: Ctrl-C, and those that turn
//! pages. Without a terminal, lines are read from stdin, and nothing but the output is written.

mod completion;
mod editor;
mod interactive;
mod plain;
mod row;
mod screen;
mod terminal;

use std::io::{self, IsTerminal as _};
use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use remote_shell::{End, Mode, Purpose};

use crate::link::Link;
use crate::signals::Signals;
use crate::trouble::{Trouble, What};

/// Cursor to the end of the line, and all before it deleted: what was typed into the machine's own editor counts no more.
const DELETE_LINE: &[u8] = b"\x05\x15";
/// Enter.
const ENTER: u8 = b'\r';

/// Runs a shell until it is left, or the machine ends it.
///
/// # Errors
/// If the machine could not be asked, or is lost.
pub fn run(peer: SocketAddr, mode: Mode) -> Result<ExitCode> {
    let signals = Signals::new().context("signals cannot be had")?;
    let link = Link::session(peer, mode, Purpose::Shell)?;
    let ended = if io::stdin().is_terminal() && io::stdout().is_terminal() {
        interactive::run(link, &signals)
    } else {
        plain::run(link, &signals, io::stdout())
    };
    match ended {
        Err(error) if is_left(&error) => {
            eprintln!("sonde: {error:#}");
            Ok(ExitCode::SUCCESS)
        }
        ended => ended.map(|()| ExitCode::SUCCESS),
    }
}

/// Whether the machine ended the session in good order.
fn is_left(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref(),
        Some(Trouble {
            what: What::Ended(End::Left),
            ..
        })
    )
}

/// What is sent for a line: the line alone, whatever was typed before it. A control character in it would be a key.
fn entered(line: &str) -> Vec<u8> {
    let mut bytes = DELETE_LINE.to_vec();
    bytes.extend_from_slice(line.replace(char::is_control, " ").as_bytes());
    bytes.push(ENTER);
    bytes
}

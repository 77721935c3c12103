//! One command on a machine: its output, and how it ended.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use remote_shell::{ClientEvent, Command, Mode, Purpose, Status};
use rustix::event::PollFlags;

use crate::link::Link;
use crate::output::{Output, Sink};
use crate::signals::{Asked, Signals};

/// Byte of Ctrl-C.
pub const INTERRUPT: u8 = 3;
/// Status for a command that Ctrl-C ended, as shells have it: 128 and the number of SIGINT.
const INTERRUPTED: u8 = 130;
/// Status for a program whose reader is gone, as shells have it: 128 and the number of SIGPIPE.
const NO_READER: u8 = 141;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It said so.
    Finished(Status),
    /// It was told to end, and whoever asked did not wait for it.
    Abandoned,
    /// Nobody reads its output any more.
    NoReader,
}

impl Ended {
    /// The status to end with.
    pub fn status(self) -> u8 {
        match self {
            Self::Finished(Status::Interrupted) | Self::Abandoned => INTERRUPTED,
            Self::Finished(status) => status as u8,
            Self::NoReader => NO_READER,
        }
    }
}

/// Runs a command; its output, and nothing else, goes to stdout.
///
/// # Errors
/// If it is none, or the machine could not be asked.
pub fn run(peer: SocketAddr, mode: Mode, command: &str) -> Result<ExitCode> {
    let ended = command_to(peer, mode, command, &mut Output::new(io::stdout()))?;
    Ok(ExitCode::from(ended.status()))
}

/// Runs a command; its output goes to `out`.
///
/// # Errors
/// If it is none, or the machine could not be asked.
pub fn command_to(
    peer: SocketAddr,
    mode: Mode,
    command: &str,
    out: &mut impl Sink,
) -> Result<Ended> {
    let purpose = Purpose::Exec(Command::new(command)?);
    let signals = Signals::new().context("signals cannot be had")?;
    let link = Link::session(peer, mode, purpose)?;
    let ended = follow(link, &signals, out)?;
    match out.finish() {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Ended::NoReader),
        written => written
            .map(|()| ended)
            .context("the output cannot be written"),
    }
}

/// Passes output on until the command has ended. The first Ctrl-C goes to the command, the second one leaves it alone.
fn follow(mut link: Link, signals: &Signals, out: &mut impl Sink) -> Result<Ended> {
    let mut interrupts = 0;
    loop {
        link.turn()?;
        while let Some(event) = link.event()? {
            match event {
                ClientEvent::Output(_, bytes) => out.add(&bytes),
                ClientEvent::Finished(status) => {
                    link.close();
                    return Ok(Ended::Finished(status));
                }
                _ => {}
            }
        }
        let [interrupt, end] = signals.fds().map(|fd| (fd, PollFlags::IN));
        let mut others = vec![interrupt, end];
        others.extend(out.waits_for().map(|fd| (fd, PollFlags::OUT)));
        let ready = link.wait(&others)?;
        if ready.get(2).is_some_and(|&is_ready| is_ready) {
            match out.write() {
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                    link.close();
                    return Ok(Ended::NoReader);
                }
                written => written.context("the output cannot be written")?,
            }
        }
        match signals.take() {
            Asked::Nothing => {}
            Asked::Interrupt if interrupts == 0 => {
                interrupts = 1;
                link.send(&[INTERRUPT]);
            }
            Asked::Interrupt | Asked::End => {
                link.close();
                return Ok(Ended::Abandoned);
            }
        }
    }
}

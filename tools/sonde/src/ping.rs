//! Whether a machine is there, and takes the key.

use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::Result;
use remote_shell::{ClientEvent, Mode};

use crate::link::Link;

/// Asks, and tells the round trip and the role.
///
/// # Errors
/// If there is no answer, or a refusal.
pub fn run(peer: SocketAddr, mode: Mode) -> Result<ExitCode> {
    println!("{}", answer(Link::ping(peer, mode)?, peer)?);
    Ok(ExitCode::SUCCESS)
}

/// Waits for the answer.
fn answer(mut link: Link, peer: SocketAddr) -> Result<String> {
    loop {
        link.turn()?;
        while let Some(event) = link.event()? {
            if let ClientEvent::Pong { role, round_trip } = event {
                let millis = round_trip.as_secs_f64() * 1e3;
                return Ok(format!("{peer} answered in {millis:.3} ms, role {role}"));
            }
        }
        link.wait(&[])?;
    }
}

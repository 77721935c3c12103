//! A profile of a machine that is kept: as folded stacks, as a flame graph, or both of the same samples.

use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use remote_shell::Mode;

use crate::exec;
use crate::folded::Folded;

/// Frames of a chain, unless it is said: a flame graph of few begins in the middle. More than the machine gives is refused there.
const DEPTH: &str = "48";

/// Where the profile goes.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = true)]
pub struct Kept {
    /// Save folded stacks, a line each
    #[arg(long, value_name = "FILE")]
    pub folded: Option<PathBuf>,
    /// Save an interactive flame graph, for a browser
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// Has the machine profile itself, and keeps what it says.
///
/// # Errors
/// If the machine could not be asked, or gave no profile, or it cannot be kept.
pub fn run(peer: SocketAddr, mode: Mode, arguments: &[String], kept: &Kept) -> Result<ExitCode> {
    let command = command(arguments);
    let mut output = Vec::new();
    let ended = exec::command_to(peer, mode, &command, &mut output)?;
    let status = ended.status();
    let folded = match Folded::parse(&output) {
        Ok(folded) => folded,
        // What was wrong is in what the machine printed.
        Err(_) if status != 0 => {
            io::stderr().write_all(&output)?;
            return Ok(ExitCode::from(status));
        }
        Err(error) => return Err(error),
    };
    if let Some(path) = &kept.folded {
        folded.save(path)?;
    }
    if let Some(path) = &kept.svg {
        folded.draw(&title(peer, arguments), path)?;
    }
    eprintln!("sonde: {} samples", folded.samples());
    Ok(ExitCode::from(status))
}

/// The command that has the machine profile itself.
fn command(arguments: &[String]) -> String {
    let mut words = vec!["profile"];
    // One of them may be several in quotes.
    words.extend(
        arguments
            .iter()
            .flat_map(|argument| argument.split_whitespace()),
    );
    if !words.contains(&"folded") {
        words.push("folded");
    }
    if !words.contains(&"depth") {
        words.extend(["depth", DEPTH]);
    }
    words.join(" ")
}

fn title(peer: SocketAddr, arguments: &[String]) -> String {
    let mut words = vec!["profile".to_owned()];
    words.extend_from_slice(arguments);
    format!("{} on {peer}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_folded_and_deep_unless_it_is_said() {
        let command = |words: &str| {
            let words: Vec<_> = words.split_whitespace().map(str::to_owned).collect();
            command(&words)
        };
        assert_eq!(command(""), "profile folded depth 48");
        assert_eq!(command("500 7"), "profile 500 7 folded depth 48");
        assert_eq!(command("depth 3 folded"), "profile depth 3 folded");
        let whole = ["500 depth 3".to_owned()];
        assert_eq!(super::command(&whole), "profile 500 depth 3 folded");
    }
}

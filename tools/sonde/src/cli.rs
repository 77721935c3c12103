//! The command line.

use std::process::{self, ExitCode};

use anyhow::Result;
use arguments::number;
use clap::{Args, Parser, Subcommand};

use crate::access::Access;
use crate::profile::Kept;
use crate::{exec, load, ping, profile, shell, target};

/// Status for a machine that could not be asked, after a line that says why.
pub const NO_ANSWER: u8 = 3;

/// Asks a machine from elsewhere, and loads its network.
#[derive(Debug, Parser)]
#[command(name = "sonde", arg_required_else_help = false)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
enum Command {
    /// A shell on a machine, as on its serial line
    Shell {
        #[command(flatten)]
        access: Access,
        /// The machine; port 5555 unless another is said
        #[arg(value_name = "HOST[:PORT]")]
        host: Option<String>,
    },
    /// Run one command: its output on stdout, its success as status
    Exec {
        #[command(flatten)]
        access: Access,
        /// The machine, which has a `.` or a `:` in it or is localhost, and the command
        #[arg(
            value_name = "[HOST] COMMAND",
            required = true,
            trailing_var_arg = true,
            allow_hyphen_values = true
        )]
        words: Vec<String>,
    },
    /// Ask whether a machine is there and takes the key
    Ping {
        #[command(flatten)]
        access: Access,
        /// The machine; port 5555 unless another is said
        #[arg(value_name = "HOST[:PORT]")]
        host: Option<String>,
    },
    /// Profile a machine, and keep what comes of it
    Profile {
        #[command(flatten)]
        access: Access,
        #[command(flatten)]
        kept: Kept,
        /// The machine, as for exec, and arguments of `profile`, such as `2000 all`
        #[arg(value_name = "[HOST] ARGUMENTS")]
        words: Vec<String>,
    },
    /// Send datagrams, count those that come back, and tell rates and loss
    Load(LoadOptions),
}

/// A load.
#[derive(Args, Clone, Debug)]
pub struct LoadOptions {
    /// Where the datagrams go
    #[arg(value_name = "HOST:PORT")]
    pub peer: String,
    /// Bytes of a datagram
    #[arg(long, value_name = "BYTES", default_value_t = 64, allow_hyphen_values = true, value_parser = number(load::SIZE_MIN..=load::SIZE_MAX))]
    pub size: usize,
    /// Datagrams in a second, of all threads together; 0 is as many as can be
    #[arg(long, value_name = "N", default_value_t = 0, allow_hyphen_values = true, value_parser = number(0..=load::PPS_MAX))]
    pub pps: u64,
    /// How long, in seconds; 0 is until Ctrl-C
    #[arg(long, value_name = "S", default_value_t = 10, allow_hyphen_values = true, value_parser = number(0..=load::SECS_MAX))]
    pub secs: u64,
    /// How many threads send, each from a port of its own
    #[arg(long, value_name = "N", default_value_t = 1, allow_hyphen_values = true, value_parser = number(1..=load::THREADS_MAX))]
    pub threads: u64,
}

impl Cli {
    /// What the process was told to do. A mistake ends it, after a line that names it, with status 2.
    #[must_use]
    pub fn read() -> Self {
        Self::try_parse().unwrap_or_else(|error| {
            if error.use_stderr() {
                eprintln!("{}", told(&error));
                process::exit(error.exit_code());
            }
            error.exit()
        })
    }

    /// Does it, and returns the status to end with.
    ///
    /// # Errors
    /// In one line, why the machine could not be asked.
    pub fn run(self) -> Result<ExitCode> {
        match self.command {
            Command::Shell { access, host } => {
                shell::run(target::machine(host.as_deref())?, access.mode()?)
            }
            Command::Exec { access, words } => {
                let (host, command) = target::split(&words);
                exec::run(target::machine(host)?, access.mode()?, &command.join(" "))
            }
            Command::Ping { access, host } => {
                ping::run(target::machine(host.as_deref())?, access.mode()?)
            }
            Command::Profile {
                access,
                kept,
                words,
            } => {
                let (host, arguments) = target::split(&words);
                profile::run(target::machine(host)?, access.mode()?, arguments, &kept)
            }
            Command::Load(options) => load::run(&options),
        }
    }
}

/// The mistake, said by this program.
fn told(error: &clap::Error) -> String {
    let line = arguments::one_line(error);
    format!("sonde: {}", line.strip_prefix("error: ").unwrap_or(&line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(arguments: &str) -> String {
        let words = ["sonde"].into_iter().chain(arguments.split_whitespace());
        told(&Cli::try_parse_from(words).unwrap_err())
    }

    #[test]
    fn a_mistake_is_told_in_one_line_with_what_is_allowed() {
        for (arguments, says) in [
            (
                "load a:7 --size 23",
                "sonde: invalid value '23' for '--size <BYTES>': a number from 24 to 65507",
            ),
            (
                "load a:7 --threads -1",
                "sonde: invalid value '-1' for '--threads <N>': a number from 1 to 64",
            ),
            (
                "load",
                "sonde: the following required arguments were not provided: <HOST:PORT>",
            ),
            (
                "",
                "sonde: 'sonde' requires a subcommand but one was not provided [subcommands: shell, exec, ping, profile, load, help]",
            ),
            ("bogus", "sonde: unrecognized subcommand 'bogus'"),
        ] {
            assert_eq!(refused(arguments), says);
        }
    }
}

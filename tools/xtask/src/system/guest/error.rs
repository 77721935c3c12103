//! Why a machine did not do what was waited for, with all that it printed.

use std::fmt;
use std::io;
use std::process::ExitStatus;

/// Why the guest did not do what was waited for.
#[derive(Debug)]
pub enum GuestError {
    /// The machine could not be started.
    Spawn(io::Error),
    /// It no longer takes input.
    Send(io::Error),
    /// Not in time.
    Timeout {
        /// What was waited for.
        waiting_for: String,
        /// All that was printed.
        transcript: String,
    },
    /// It ended first.
    Ended {
        /// What was waited for.
        waiting_for: String,
        /// All that was printed.
        transcript: String,
    },
    /// It ended with a status that was not expected.
    Status {
        /// QEMU's.
        status: ExitStatus,
        /// All that was printed.
        transcript: String,
    },
    /// Its process cannot be waited for.
    Wait(io::Error),
}

impl fmt::Display for GuestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spawn(error) => write!(f, "cannot start the machine: {error}"),
            Self::Send(error) => write!(f, "the machine takes no input: {error}"),
            Self::Status { status, transcript } => {
                write!(f, "the machine ended with {status}; it said:\n{transcript}")
            }
            Self::Wait(error) => write!(f, "cannot wait for the machine: {error}"),
            Self::Timeout {
                waiting_for,
                transcript,
            } => {
                write!(
                    f,
                    "waited in vain for {waiting_for}; the guest said:\n{transcript}"
                )
            }
            Self::Ended {
                waiting_for,
                transcript,
            } => {
                write!(
                    f,
                    "the machine ended before {waiting_for}; it said:\n{transcript}"
                )
            }
        }
    }
}

impl std::error::Error for GuestError {}

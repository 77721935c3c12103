//! Why a machine could not be asked: who it was, what went wrong, and what may be the matter.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use remote_shell::{End, Refusal};

/// What went wrong with a machine.
#[derive(Debug)]
pub struct Trouble {
    /// Where the machine was to be.
    pub peer: SocketAddr,
    /// What it was.
    pub what: What,
}

/// What went wrong.
#[derive(Debug)]
pub enum What {
    /// The host says that nobody has the port.
    NobodyListens,
    /// Nothing can be sent there, or received.
    Unreachable(io::Error),
    /// No answer at all.
    Silent {
        /// Whether it was asked with a key.
        keyed: bool,
    },
    /// The server answered that it will not.
    Refused(Refusal),
    /// The session ended before it was to.
    Ended(End),
    /// This host has no socket, signals or random bytes to give.
    Local(io::Error),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let peer = self.peer;
        match &self.what {
            What::NobodyListens => write!(f, "{peer}: nobody listens at this port"),
            What::Unreachable(error) => write!(f, "{peer} cannot be reached: {error}"),
            What::Silent { keyed: true } => write!(
                f,
                "{peer} does not answer: wrong key? Or no machine is there, or its remote shell is off"
            ),
            What::Silent { keyed: false } => write!(
                f,
                "{peer} does not answer: does it want a key? Or no machine is there, or its remote shell is off"
            ),
            What::Refused(refusal) => write!(f, "{peer}: {refusal}"),
            What::Ended(end) => write!(f, "{peer}: {end}"),
            What::Local(error) => write!(f, "no session with {peer}: {error}"),
        }
    }
}

impl std::error::Error for Trouble {}

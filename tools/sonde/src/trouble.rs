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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_trouble_is_a_line_that_says_with_whom() {
        let unreachable = io::Error::from(io::ErrorKind::NetworkUnreachable);
        for (what, says) in [
            (What::NobodyListens, ": nobody listens at this port"),
            (What::Unreachable(unreachable), " cannot be reached: "),
            (
                What::Silent { keyed: true },
                " does not answer: wrong key? ",
            ),
            (
                What::Refused(Refusal::Version(9)),
                ": the server speaks version 9 of the protocol, this client version ",
            ),
            (
                What::Refused(Refusal::Busy),
                ": the server has as many sessions",
            ),
            (
                What::Ended(End::Lost),
                ": nothing was heard from the other side",
            ),
        ] {
            let peer = SocketAddr::from(([10, 0, 0, 1], 5555));
            let line = Trouble { peer, what }.to_string();
            let rest = line.strip_prefix("10.0.0.1:5555");
            assert!(rest.is_some_and(|rest| rest.starts_with(says)), "{line}");
            assert!(!line.contains('\n'), "{line}");
        }
    }
}

//! Ctrl-C and its like, as something to wait for beside a socket.

use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Signals that ask the program to end. They come as bytes.
pub struct Signals {
    interrupts: UnixStream,
    ends: UnixStream,
}

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Nothing.
    Nothing,
    /// To end what runs: SIGINT.
    Interrupt,
    /// To go, however that is done: SIGTERM, SIGHUP.
    End,
}

impl Signals {
    /// From now on, these signals do not end the process.
    ///
    /// # Errors
    /// If they cannot be had.
    pub fn new() -> io::Result<Self> {
        let [interrupts, ends] = [&[SIGINT][..], &[SIGTERM, SIGHUP]].map(|signals| {
            let (read, write) = UnixStream::pair()?;
            read.set_nonblocking(true)?;
            for &signal in signals {
                signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
            }
            io::Result::Ok(read)
        });
        Ok(Self {
            interrupts: interrupts?,
            ends: ends?,
        })
    }

    /// What is ready when a signal came.
    pub fn fds(&self) -> [BorrowedFd<'_>; 2] {
        [self.interrupts.as_fd(), self.ends.as_fd()]
    }

    /// What was asked for since the last time.
    pub fn take(&self) -> Asked {
        let came = |mut stream: &UnixStream| stream.read(&mut [0; 64]).is_ok_and(|read| read > 0);
        if came(&self.ends) {
            return Asked::End;
        }
        if came(&self.interrupts) {
            return Asked::Interrupt;
        }
        Asked::Nothing
    }
}

//! Where a session's output goes: written as fast as its reader takes it, so that a slow one, such as a pager, never keeps the session
//! from being served.

use std::collections::VecDeque;
use std::io::{self, Stdout, Write};
use std::os::fd::{AsFd, BorrowedFd};

/// What a pipe that is ready takes without waiting (`PIPE_BUF`, pipe(7)).
const PIECE: usize = 4096;

/// What takes a session's output.
pub trait Sink {
    /// Takes bytes.
    fn add(&mut self, bytes: &[u8]);

    /// What to wait for before [`Self::write`]; nothing while there is nothing to write.
    fn waits_for(&self) -> Option<BorrowedFd<'_>>;

    /// Writes a piece of what was taken, after it was waited for.
    ///
    /// # Errors
    /// If its reader is gone, or it takes no more.
    fn write(&mut self) -> io::Result<()>;

    /// Writes all that was taken, however long that takes.
    ///
    /// # Errors
    /// If its reader is gone, or it takes no more.
    fn finish(&mut self) -> io::Result<()> {
        while self.waits_for().is_some() {
            self.write()?;
        }
        Ok(())
    }
}

impl Sink for Vec<u8> {
    fn add(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn write(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Standard output, or what stands for it, and what waits for it.
pub struct Output<W = Stdout> {
    out: W,
    waiting: VecDeque<u8>,
}

impl<W> Output<W> {
    /// An output with nothing to write.
    pub const fn new(out: W) -> Self {
        Self {
            out,
            waiting: VecDeque::new(),
        }
    }
}

impl<W: Write + AsFd> Sink for Output<W> {
    fn add(&mut self, bytes: &[u8]) {
        self.waiting.extend(bytes);
    }

    fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        (!self.waiting.is_empty()).then(|| self.out.as_fd())
    }

    fn write(&mut self) -> io::Result<()> {
        let (bytes, _) = self.waiting.as_slices();
        let piece = &bytes[..bytes.len().min(PIECE)];
        self.out.write_all(piece)?;
        self.out.flush()?;
        let length = piece.len();
        self.waiting.drain(..length);
        Ok(())
    }
}

//! The kernel log: a ring of bytes that keeps the latest lines of the kernel and of servers.
//!
//! Every line begins with the time and with who wrote it, `[    1.234567] init: `, and that is put there here: a writer cannot pass
//! for another. Text is reduced to printable ASCII, so that showing the log on a terminal is safe. Positions count
//! bytes since boot; a reader names the one where it wants to go on, and is told how many bytes it came too late for.
//!
//! A line is formatted on the stack of the writer and copied under the lock, whole: lines of several CPUs do not mix, and hold
//! times are those of one line.

use crate::base::addr::Nanos;
use crate::base::cpu::Cpu;
use crate::base::lock::{Lock, rank};
use core::fmt::{self, Write};
use ipc::abi::layout::LOG_LINE_MAX as LINE_MAX;

/// Most lines that one [`Writer`] writes; what is beyond is counted and cut.
pub const LINES_MAX: u32 = 64;
/// Most bytes of a source's name that are shown.
const SOURCE_MAX: usize = 16;

struct Ring {
    bytes: &'static mut [u8],
    /// Position after the last byte written.
    end: u64,
}

/// The kernel log.
pub struct Log(Lock<Ring, { rank::LOG }>);

/// What a reader got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Position to go on from.
    pub next: u64,
    /// Bytes copied.
    pub len: usize,
    /// Bytes from the position asked for that are there no more; a line of which the beginning is lost counts whole.
    pub lost: u64,
}

impl Log {
    /// An empty log over this storage.
    ///
    /// # Panics
    /// If there is no room for two of the longest lines: a mistake of the boot code.
    #[must_use]
    pub const fn new(bytes: &'static mut [u8]) -> Self {
        assert!(bytes.len() >= 2 * LINE_MAX, "the log is too small");
        Self(Lock::new(Ring { bytes, end: 0 }))
    }

    /// For writing lines as `source`. What has been written since the last end of line is a line when the writer is dropped.
    pub fn writer<'a>(&'a self, cpu: &'a Cpu, now: Nanos, source: &[u8]) -> Writer<'a> {
        Writer::new(self, Some(cpu), now, source)
    }

    /// The same for a panic: it never waits. A line for which the lock is not free is lost, as it may be the CPU that panics, or one
    /// that was stopped, that holds it.
    pub fn panic_writer(&self, now: Nanos, source: &[u8]) -> Writer<'_> {
        Writer::new(self, None, now, source)
    }

    /// Copies what there is from `position` on, as much as fits.
    pub fn read(&self, cpu: &Cpu, position: u64, buffer: &mut [u8]) -> Reading {
        self.0.lock(cpu).read(position, buffer)
    }

    /// For a panic: the last lines, as many as fit the buffer whole. None if the lock is not free.
    pub fn panic_tail<'b>(&self, buffer: &'b mut [u8]) -> &'b [u8] {
        let Some(ring) = self.0.try_lock() else {
            return &[];
        };
        let from = ring.end.saturating_sub(buffer.len() as u64);
        let len = ring.read(from, buffer).len;
        let bytes = &buffer[..len];
        // Of the first line the beginning may be missing.
        let whole = match from {
            0 => Some(0),
            _ => bytes
                .iter()
                .position(|&byte| byte == b'\n')
                .map(|at| at + 1),
        };
        &bytes[whole.unwrap_or(len)..]
    }
}

impl Ring {
    fn write(&mut self, line: &[u8]) {
        let size = self.bytes.len();
        let at = (self.end % size as u64) as usize;
        let (first, rest) = line.split_at(line.len().min(size - at));
        self.bytes[at..at + first.len()].copy_from_slice(first);
        self.bytes[..rest.len()].copy_from_slice(rest);
        self.end += line.len() as u64;
    }

    fn read(&self, position: u64, buffer: &mut [u8]) -> Reading {
        let size = self.bytes.len();
        let oldest = self.oldest_line();
        let from = position.max(oldest).min(self.end);
        let len = ((self.end - from) as usize).min(buffer.len());
        let at = (from % size as u64) as usize;
        let first = len.min(size - at);
        buffer[..first].copy_from_slice(&self.bytes[at..at + first]);
        buffer[first..len].copy_from_slice(&self.bytes[..len - first]);
        Reading {
            next: from + len as u64,
            len,
            lost: oldest.saturating_sub(position),
        }
    }

    /// Position of the first line that is there from its beginning. Looks at one line at most.
    fn oldest_line(&self) -> u64 {
        let size = self.bytes.len() as u64;
        let Some(oldest) = self.end.checked_sub(size).filter(|&oldest| oldest > 0) else {
            return 0;
        };
        // The byte before the oldest is gone, so even a whole line cannot be told from the end of one; skip it.
        let skipped = (oldest..self.end)
            .take(LINE_MAX)
            .take_while(|position| self.bytes[(position % size) as usize] != b'\n')
            .count();
        oldest + skipped as u64 + 1
    }
}

/// Writes lines to the log; see [`Log::writer`]. Writing never fails.
pub struct Writer<'a> {
    log: &'a Log,
    /// `None`: in a panic.
    cpu: Option<&'a Cpu>,
    line: [u8; LINE_MAX],
    /// Bytes of `line` that every line begins with.
    prefix: usize,
    len: usize,
    /// Lines that it may still write.
    left: u32,
    /// Bytes that were cut.
    cut: u32,
}

impl<'a> Writer<'a> {
    fn new(log: &'a Log, cpu: Option<&'a Cpu>, now: Nanos, source: &[u8]) -> Self {
        let mut writer = Self {
            log,
            cpu,
            line: [0; LINE_MAX],
            prefix: 0,
            len: 0,
            left: LINES_MAX,
            cut: 0,
        };
        let (seconds, micros) = (now.0 / 1_000_000_000, now.0 / 1000 % 1_000_000);
        // Writing to this writer never fails.
        let _ = write!(writer, "[{seconds:5}.{micros:06}] ");
        let source = &source[..source.len().min(SOURCE_MAX)];
        source.iter().for_each(|&byte| writer.put(printable(byte)));
        writer.put(b':');
        writer.put(b' ');
        writer.prefix = writer.len;
        writer
    }

    /// Writes text of any kind: an end of line ends a line, what is not printable ASCII is shown as `?`, empty lines and carriage
    /// returns are left out.
    pub fn write(&mut self, text: &[u8]) {
        for &byte in text {
            match byte {
                b'\n' => self.end_line(),
                b'\r' => {}
                _ if self.left == 0 => self.cut = self.cut.saturating_add(1),
                _ => self.put(printable(byte)),
            }
        }
    }

    /// Adds a byte; there is always room for it, and for an end of line after it.
    fn put(&mut self, byte: u8) {
        self.line[self.len] = byte;
        self.len += 1;
        if self.len == LINE_MAX - 1 {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        if self.len == self.prefix {
            return;
        }
        self.line[self.len] = b'\n';
        let line = &self.line[..=self.len];
        match self.cpu {
            Some(cpu) => self.log.0.lock(cpu).write(line),
            None => {
                if let Some(mut ring) = self.log.0.try_lock() {
                    ring.write(line);
                }
            }
        }
        self.len = self.prefix;
        self.left = self.left.saturating_sub(1);
    }
}

impl Write for Writer<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.write(text.as_bytes());
        Ok(())
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.end_line();
        if self.cut > 0 {
            let cut = core::mem::take(&mut self.cut);
            self.left = 1;
            // Writing to this writer never fails.
            let _ = writeln!(self, "({cut} more bytes cut)");
        }
    }
}

const fn printable(byte: u8) -> u8 {
    match byte {
        b'\t' => b' ',
        b' '..=b'~' => byte,
        _ => b'?',
    }
}

#[cfg(test)]
mod tests;

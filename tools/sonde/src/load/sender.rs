//! One thread of a load: its socket, what it has sent and what came back.

use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::pace::{BATCH, Pace};
use super::rates::{Count, Rates};
use super::report::Counts;
use super::seen::Seen;
use super::{SIZE_MAX, SIZE_MIN};

/// How often it is looked whether to stop.
const STOP_EVERY: Duration = Duration::from_millis(50);

/// One thread's side of a load.
pub struct Sender {
    socket: UdpSocket,
    pace: Pace,
    /// The next datagram; its first [`SIZE_MIN`] bytes are written anew for each.
    datagram: Vec<u8>,
    /// Room for any datagram.
    received: Vec<u8>,
    /// Tells this thread's datagrams from those of others, and of runs before.
    run: u64,
    /// What the times in datagrams are counted from.
    epoch: Instant,
    seen: Seen,
    counts: Counts,
}

impl Sender {
    /// A thread that sends datagrams of `size` bytes by a schedule. The socket is connected and does not block.
    pub fn new(socket: UdpSocket, size: usize, pace: Pace) -> Self {
        Self {
            socket,
            pace,
            datagram: vec![0; size.max(SIZE_MIN)],
            received: vec![0; SIZE_MAX],
            run: fastrand::u64(..),
            epoch: Instant::now(),
            seen: Seen::default(),
            counts: Counts::default(),
        }
    }

    /// Sends until `end`, or until it is told to stop; then waits for what is still to come, so long at most.
    ///
    /// # Errors
    /// If the socket fails otherwise than by a refusal.
    pub fn run(
        &mut self,
        end: Option<Instant>,
        linger: Duration,
        stop: &AtomicBool,
        rates: &Rates,
    ) -> io::Result<Counts> {
        let start = Instant::now();
        loop {
            let now = Instant::now();
            if end.is_some_and(|end| now >= end) || stop.load(Ordering::Relaxed) {
                break;
            }
            let (sent, is_full) = self.send(now)?;
            let back = self.receive()?;
            rates.add(Count { sent, back });
            let wait = self.pace.wait(Instant::now()).min(STOP_EVERY);
            let wait = end.map_or(wait, |end| wait.min(end.saturating_duration_since(now)));
            if is_full {
                self.wait(PollFlags::IN | PollFlags::OUT, STOP_EVERY)?;
            } else if !wait.is_zero() {
                self.wait(PollFlags::IN, wait)?;
            }
        }
        self.counts.time = start.elapsed();
        let last = Instant::now() + linger;
        // A peer of which nothing came back takes datagrams and sends none.
        while self.counts.back > 0 && self.counts.back < self.counts.sent {
            let left = last.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.wait(PollFlags::IN, left)?;
            let back = self.receive()?;
            rates.add(Count { sent: 0, back });
        }
        Ok(self.counts)
    }

    /// Sends what is due; how many that were, and whether the socket would take no more.
    fn send(&mut self, now: Instant) -> io::Result<(u64, bool)> {
        let mut sent = 0;
        let mut is_full = false;
        for _ in 0..self.pace.due(now) {
            let header = [
                self.run,
                self.counts.sent + sent,
                nanos(self.epoch.elapsed()),
            ];
            for (bytes, field) in self.datagram.chunks_exact_mut(8).zip(header) {
                bytes.copy_from_slice(&field.to_le_bytes());
            }
            match self.socket.send(&self.datagram) {
                Ok(_) => sent += 1,
                // Of a datagram before: this one was not sent.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    self.counts.refused += 1;
                }
                Err(error) if is_shortage(&error) => {
                    is_full = true;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        self.counts.sent += sent;
        self.pace.sent(sent);
        Ok((sent, is_full))
    }

    /// Takes replies that are there, a batch at most; how many were new.
    fn receive(&mut self) -> io::Result<u64> {
        let mut back = 0;
        for _ in 0..2 * BATCH {
            match self.socket.recv(&mut self.received) {
                Ok(length) => back += u64::from(self.take(length)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    self.counts.refused += 1;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(back)
    }

    /// Counts what came; whether it is the first copy of a datagram of this thread's.
    fn take(&mut self, length: usize) -> bool {
        let mut fields = self.received[..length].chunks_exact(8).map(|bytes| {
            let mut field = [0; 8];
            field.copy_from_slice(bytes);
            u64::from_le_bytes(field)
        });
        let fields = (fields.next(), fields.next(), fields.next());
        let (Some(run), Some(number), Some(sent_at)) = fields else {
            self.counts.foreign += 1;
            return false;
        };
        let is_own = run == self.run && number < self.counts.sent && length == self.datagram.len();
        let Some(time) = nanos(self.epoch.elapsed())
            .checked_sub(sent_at)
            .filter(|_| is_own)
        else {
            self.counts.foreign += 1;
            return false;
        };
        if !self.seen.insert(number) {
            self.counts.again += 1;
            return false;
        }
        self.counts.came_back(Duration::from_nanos(time));
        true
    }

    /// Waits until the socket is ready, or for so long.
    fn wait(&self, ready: PollFlags, time: Duration) -> io::Result<()> {
        let time = Timespec::try_from(time).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(&self.socket, ready)], Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether the host has no room for a datagram: it was not sent, and can be later.
fn is_shortage(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock
        || rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::NOBUFS)
}

/// A time in nanoseconds; half a millennium at most.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

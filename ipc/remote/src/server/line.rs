//! Bare lines of text, which the open mode runs as commands: `nc -u` is enough of a client.
//!
//! Each datagram of an answer begins with a carriage return, which a terminal does not show and no line may have in it: two machines
//! do not answer each other's answers for ever. It ends with a line feed, so a row that is longer than a datagram is broken.
//!
//! The answer is text in datagrams that are not acknowledged and may be lost; a line that arrives twice runs twice. Nothing
//! proves the peer's address, so the answer may be longer than the line: it goes to private addresses only, few run at
//! a time, and each ends after a while and after so much: nobody can tell whether anybody still reads it. Who wants more takes the
//! client.

use alloc::collections::VecDeque;
use core::net::SocketAddrV4;
use core::time::Duration;

use super::bucket::Bucket;
use crate::control::Command;
use crate::packet::DATAGRAM_MAX;
use crate::time::Instant;

/// Lines that run at once.
const LINES_MAX: usize = 4;
/// How long one may run, in seconds.
const SECONDS_MAX: u64 = 10;
/// Most bytes of its answer.
const ANSWER_MAX: usize = 64 * 1024;
/// What an answer ends with that was cut.
const CUT: &[u8] = b"\n... cut: the answer to a line has 10 s and 64 KiB\n";
/// Bytes that wait to be sent, of each.
const WAITING_MAX: usize = 8 * 1024;
/// Between two datagrams of one answer.
const INTERVAL: Duration = Duration::from_millis(2);
/// How long output may wait for more to go with it.
const DELAY: Duration = Duration::from_millis(20);

/// A command that runs.
struct Line {
    number: u32,
    peer: SocketAddrV4,
    waiting: VecDeque<u8>,
    due: Instant,
    /// When it is cut, and how many bytes it may still have.
    until: Instant,
    left: usize,
    ended: bool,
}

impl Line {
    /// When it is cut; at once, if its answer is too long.
    fn end(&self) -> Instant {
        match self.left {
            0 => Instant::default(),
            _ => self.until,
        }
    }
}

pub(super) struct Lines {
    lines: VecDeque<Line>,
    starts: Bucket,
}

/// The command that a datagram is: one line of UTF-8, whose end may be there or not.
pub(crate) fn command(datagram: &[u8]) -> Option<Command> {
    let text = core::str::from_utf8(datagram).ok()?;
    let text = text.strip_suffix('\n').unwrap_or(text);
    Command::new(text.strip_suffix('\r').unwrap_or(text)).ok()
}

impl Lines {
    pub(super) const fn new() -> Self {
        Self {
            lines: VecDeque::new(),
            starts: Bucket::new(8, 4),
        }
    }
    /// Adds one, if there is room and not one of this peer's already.
    pub(super) fn add(&mut self, now: Instant, number: u32, peer: SocketAddrV4) -> bool {
        let has = self.lines.iter().any(|line| line.peer == peer);
        if has || self.lines.len() >= LINES_MAX || !self.starts.take(now) {
            return false;
        }
        self.lines.push_back(Line {
            number,
            peer,
            waiting: VecDeque::new(),
            due: now,
            until: now + Duration::from_secs(SECONDS_MAX),
            left: ANSWER_MAX,
            ended: false,
        });
        true
    }

    fn line(&mut self, number: u32) -> Option<&mut Line> {
        (self.lines.iter_mut()).find(|line| line.number == number && !line.ended)
    }
    /// Takes output, and says how much. `None` if the number is not a line's.
    pub(super) fn write(&mut self, number: u32, bytes: &[u8]) -> Option<usize> {
        let line = self.line(number)?;
        let room = WAITING_MAX - line.waiting.len();
        let taken = bytes.len().min(room).min(line.left);
        line.waiting.extend(&bytes[..taken]);
        line.left -= taken;
        Some(taken)
    }
    /// No more output comes.
    pub(super) fn finish(&mut self, number: u32) {
        if let Some(line) = self.line(number) {
            line.ended = true;
        }
    }

    /// Cuts a line that has had its time or its bytes; its number.
    pub(super) fn cut(&mut self, now: Instant) -> Option<u32> {
        let mut lines = self.lines.iter_mut();
        let line = lines.find(|line| !line.ended && line.end() <= now)?;
        line.waiting.extend(CUT);
        line.ended = true;
        Some(line.number)
    }

    pub(super) fn transmit(
        &mut self,
        now: Instant,
        datagram: &mut [u8; DATAGRAM_MAX],
    ) -> Option<(SocketAddrV4, usize)> {
        self.lines
            .retain(|line| !line.ended || !line.waiting.is_empty());
        let line =
            (self.lines.iter_mut()).find(|line| !line.waiting.is_empty() && line.due <= now)?;
        // Whole rows, where that is possible.
        let most = line.waiting.len().min(DATAGRAM_MAX - 2);
        let row = (line.waiting.iter().take(most)).rposition(|&byte| byte == b'\n');
        let taken = row.unwrap_or(most);
        datagram[0] = b'\r';
        for (to, byte) in datagram[1..].iter_mut().zip(line.waiting.drain(..taken)) {
            *to = byte;
        }
        datagram[1 + taken] = b'\n';
        if row.is_some() {
            line.waiting.pop_front();
        }
        let length = taken + 2;
        line.due = now + if line.ended { INTERVAL } else { DELAY };
        Some((line.peer, length))
    }
    pub(super) fn deadline(&self) -> Option<Instant> {
        let says = |line: &&Line| line.ended || !line.waiting.is_empty();
        let dues = self.lines.iter().filter(says).map(|line| line.due);
        let runs = self.lines.iter().filter(|line| !line.ended);
        dues.chain(runs.map(Line::end)).min()
    }
}

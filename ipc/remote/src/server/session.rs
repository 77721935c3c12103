//! One session at the server.

use core::net::SocketAddrV4;
use core::time::Duration;

use super::door::Admitted;
use crate::Role;
use crate::channel::{Channel, SILENCE_MAX};
use crate::control::{Control, End, Purpose};
use crate::frame::{FRAME_MAX, Frame, Stream};
use crate::packet::DATAGRAM_MAX;
use crate::seal::Seal;
use crate::time::Instant;

/// Chunks of input that wait to be read.
const INPUT_WINDOW: usize = 8;
/// A client says what it wants within this.
const OPENING_MAX: Duration = Duration::from_secs(10);
/// How long the last words may take to arrive: as long as the client waits for them.
const ENDING_MAX: Duration = SILENCE_MAX;
/// How long what a client that has left repeats is acknowledged.
const LINGER: Duration = Duration::from_secs(6);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its purpose has not come yet.
    Opening(Instant),
    Running,
    /// The server's user has said its last word; until then it may take to arrive.
    Ending(Instant),
    /// The client has left; what it repeats until then is acknowledged.
    Left(Instant),
}

pub(super) struct Session {
    pub number: u32,
    pub peer: SocketAddrV4,
    pub role: Role,
    pub seal: Seal,
    pub channel: Channel,
    pub phase: Phase,
    /// How much of the first chunk of input was read.
    pub read: usize,
}

/// What a frame led to.
pub(super) enum Change {
    Opened(Purpose),
    Input,
    Left,
    Violated,
}

impl Session {
    pub(super) fn new(now: Instant, number: u32, peer: SocketAddrV4, admitted: Admitted) -> Self {
        Self {
            number,
            peer,
            role: admitted.role,
            seal: admitted.seal,
            channel: Channel::new(now, INPUT_WINDOW),
            phase: Phase::Opening(now + OPENING_MAX),
            read: 0,
        }
    }

    /// Whether a peer's packets with this number are its own.
    pub(super) fn is(&self, peer: SocketAddrV4, session: u64) -> bool {
        self.peer == peer && self.seal.session() == session
    }

    /// Takes a frame; calls `change` for what came of it.
    pub(super) fn frame(
        &mut self,
        now: Instant,
        frame: &Frame<'_>,
        mut change: impl FnMut(&Self, Change),
    ) {
        let had_input = self.has_input();
        self.channel.receive(now, frame);
        while let Some((Stream::Control, bytes)) = self.channel.peek() {
            let control = Control::parse(bytes);
            self.channel.read(now);
            match (control, self.phase) {
                (Some(Control::Open(purpose)), Phase::Opening(_)) => {
                    self.phase = Phase::Running;
                    change(self, Change::Opened(purpose));
                }
                (Some(Control::Leave), phase) => {
                    self.phase = Phase::Left(now + LINGER);
                    if phase == Phase::Running {
                        change(self, Change::Left);
                    }
                }
                (_, Phase::Running) => {
                    self.end(now, End::Violated);
                    change(self, Change::Violated);
                }
                _ => {}
            }
        }
        match self.phase {
            Phase::Running if self.has_input() && !had_input => change(self, Change::Input),
            Phase::Running => {}
            // Nobody reads it any more, and it must not fill the window behind which a last word waits.
            _ => while self.channel.read(now).is_some() {},
        }
    }

    /// Whether there is something to read.
    fn has_input(&self) -> bool {
        matches!(
            self.channel.peek(),
            Some((Stream::Text | Stream::Binary, _))
        )
    }

    /// Reads what was typed.
    pub(super) fn input(&mut self, now: Instant, buffer: &mut [u8]) -> usize {
        let mut length = 0;
        while length < buffer.len()
            && let Some((Stream::Text | Stream::Binary, bytes)) = self.channel.peek()
        {
            let rest = &bytes[self.read..];
            let part = rest.len().min(buffer.len() - length);
            buffer[length..length + part].copy_from_slice(&rest[..part]);
            length += part;
            self.read += part;
            if self.read == bytes.len() {
                self.read = 0;
                self.channel.read(now);
            }
        }
        length
    }

    /// The last word.
    pub(super) fn last(&mut self, now: Instant, word: &Control) {
        if matches!(self.phase, Phase::Opening(_) | Phase::Running) {
            self.channel.write_control(&word.to_bytes());
            self.phase = Phase::Ending(now + ENDING_MAX);
        }
    }
    pub(super) fn end(&mut self, now: Instant, why: End) {
        self.last(now, &Control::Ended(why));
    }

    /// Whether it is over for good, or was lost.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        match self.phase {
            Phase::Opening(until) | Phase::Left(until) => now >= until,
            Phase::Running => false,
            Phase::Ending(until) => now >= until || self.channel.is_idle(),
        }
    }
    /// Whether it may make room for another: its user has left. One that is ending has words for its user under way.
    pub(super) const fn is_left(&self) -> bool {
        matches!(self.phase, Phase::Left(_))
    }

    pub(super) fn transmit(
        &mut self,
        now: Instant,
        datagram: &mut [u8; DATAGRAM_MAX],
    ) -> Option<usize> {
        let mut buffer = [0; FRAME_MAX];
        let length = (self.channel).transmit(now, |frame| frame.write(&mut buffer))?;
        self.seal.seal(&buffer[..length], datagram)
    }

    pub(super) fn deadline(&self) -> Instant {
        let due = self.channel.deadline();
        match self.phase {
            Phase::Running => due,
            Phase::Opening(until) | Phase::Ending(until) | Phase::Left(until) => until.min(due),
        }
    }
}

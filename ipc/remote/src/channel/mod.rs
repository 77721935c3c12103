//! Messages over a link that loses, doubles and reorders: each byte arrives, in order, once, or the channel fails.
//!
//! Both directions are alike. Bytes wait in a queue until the window lets a message be cut from them; a message is cut into
//! chunks, each of which is sent until it is acknowledged. Every frame carries an acknowledgement, so a frame without a
//! chunk is only sent if none with one is due. Memory is bounded on both sides: 16 KiB waiting, a window of chunks
//! under way, and a window of chunks that came and were not read.

mod pace;
mod receiver;
mod sender;

use alloc::vec::Vec;
use core::time::Duration;

use crate::frame::{Ack, Frame, Stream};
use crate::time::Instant;
use receiver::Receiver;
use sender::Sender;

/// A frame goes out after so long at the latest, so that the other end knows of this one.
const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// Whose frame is unanswered for so long doubts that the other end has the session.
const ANSWER_MAX: Duration = Duration::from_secs(1);
/// Who has nothing to be answered does after so long: the other end's keep-alive, and what delays it.
const QUIET_MAX: Duration = Duration::from_millis(2500);
/// After so long without a frame the other end counts as gone. Ten keep-alives have to be lost for it: of a link that loses a fifth, one
/// time in ten millions.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(20);

/// One end of a session.
pub(crate) struct Channel {
    sender: Sender,
    receiver: Receiver,
    heard: Instant,
    sent: Instant,
    /// When the first chunk was sent since then that the other end was heard.
    unanswered: Option<Instant>,
}

impl Channel {
    /// `window`: how many chunks the other end may send ahead of what is read here.
    pub(crate) fn new(now: Instant, window: usize) -> Self {
        Self {
            sender: Sender::new(),
            receiver: Receiver::new(window),
            heard: now,
            sent: now,
            unanswered: None,
        }
    }
    /// The other end is there from now on.
    pub(crate) const fn begin(&mut self, now: Instant) {
        self.hear(now);
        self.sent = now;
    }
    /// The other end has this session.
    pub(crate) const fn hear(&mut self, now: Instant) {
        self.heard = now;
        self.unanswered = None;
    }

    /// Takes as many bytes to be sent as there is room for; says how many.
    pub(crate) fn write(&mut self, stream: Stream, bytes: &[u8]) -> usize {
        self.sender.write(stream, bytes)
    }
    /// Takes a message to the other end itself, whole, whatever waits: there are few in a session, and they are short.
    pub(crate) fn write_control(&mut self, bytes: &[u8]) {
        self.sender.write_control(bytes);
    }
    /// Whether all that was written has been acknowledged.
    pub(crate) fn is_idle(&self) -> bool {
        self.sender.is_idle()
    }
    /// Whether nothing was heard for too long.
    pub(crate) fn is_lost(&self, now: Instant) -> bool {
        now >= self.lost()
    }
    /// When that will be so, if nothing is heard until then.
    pub(crate) fn lost(&self) -> Instant {
        self.heard + SILENCE_MAX
    }
    /// From when on it is in doubt whether the other end still has this session.
    pub(crate) fn doubtful(&self) -> Instant {
        let quiet = self.heard + QUIET_MAX;
        let unanswered = self.unanswered.map(|sent| sent + ANSWER_MAX);
        unanswered.map_or(quiet, |answer| answer.min(quiet))
    }
    /// The next chunk that has arrived, in order.
    pub(crate) fn read(&mut self, now: Instant) -> Option<(Stream, Vec<u8>)> {
        self.receiver.read(now)
    }
    /// The next chunk, without taking it.
    pub(crate) fn peek(&self) -> Option<(Stream, &[u8])> {
        self.receiver.peek()
    }

    /// Takes a frame from the other end, authenticated.
    pub(crate) fn receive(&mut self, now: Instant, frame: &Frame<'_>) {
        self.hear(now);
        self.sender.acknowledge(now, &frame.ack);
        if let Some(chunk) = &frame.chunk {
            self.receiver.take(now, chunk);
        }
    }

    /// Gives the next frame that is due to `send`, if one is.
    pub(crate) fn transmit<T>(
        &mut self,
        now: Instant,
        send: impl FnOnce(&Frame<'_>) -> T,
    ) -> Option<T> {
        let ack = self.receiver.ack();
        let ack_due = now >= self.ack_due();
        let chunk = self.sender.next(now);
        if chunk.is_some() {
            self.unanswered.get_or_insert(now);
        }
        (ack_due || chunk.is_some()).then(|| {
            self.sent = now;
            self.receiver.acknowledged();
            send(&Frame { ack, chunk })
        })
    }
    /// Gives an acknowledgement to `send`, due or not.
    pub(crate) fn transmit_ack<T>(
        &mut self,
        now: Instant,
        send: impl FnOnce(&Frame<'_>) -> T,
    ) -> T {
        self.sent = now;
        let ack: Ack = self.receiver.ack();
        self.receiver.acknowledged();
        send(&Frame { ack, chunk: None })
    }

    fn ack_due(&self) -> Instant {
        let alive = self.sent + KEEP_ALIVE;
        self.receiver.due().map_or(alive, |due| due.min(alive))
    }
    /// When `transmit` has something next, or the other end counts as gone.
    pub(crate) fn deadline(&self) -> Instant {
        let due = self.ack_due().min(self.lost());
        self.sender.due().map_or(due, |chunk| chunk.min(due))
    }
}

//! The receiving half of a channel: puts chunks in order, once each, and says what has come.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::frame::{Ack, Chunk, SPAN, Stream};
use crate::time::Instant;

/// How long a chunk may wait for its acknowledgement to go with something else.
const ACK_DELAY: Duration = Duration::from_millis(10);

/// The bytes of one chunk.
type Part = (Stream, Vec<u8>);

pub(super) struct Receiver {
    /// Position of the first chunk that is missing.
    next: u64,
    /// Chunks from `next` on that have come; the first is always missing.
    ahead: VecDeque<Option<Part>>,
    /// Chunks before `next` that were not read.
    ready: VecDeque<Part>,
    /// How many chunks `ahead` and `ready` may have together.
    window: usize,
    /// When what has come is to be acknowledged.
    due: Option<Instant>,
    /// The window that was told last.
    told: usize,
}

impl Receiver {
    pub(super) fn new(window: usize) -> Self {
        let window = window.clamp(1, SPAN);
        Self {
            next: 0,
            ahead: VecDeque::new(),
            ready: VecDeque::new(),
            window,
            due: None,
            told: window,
        }
    }

    /// Chunks from `next` on for which there is room. What is read makes it grow, what comes in order makes it shrink by as
    /// much as `next` grows, so nothing that was promised is taken back.
    fn room(&self) -> usize {
        self.window.saturating_sub(self.ready.len())
    }

    /// Takes a chunk, or drops it: it came before, or there is no room.
    pub(super) fn take(&mut self, now: Instant, chunk: &Chunk<'_>) {
        let position = chunk.sequence.checked_add(chunk.index.into());
        let offset = position
            .and_then(|position| position.checked_sub(self.next))
            .and_then(|offset| usize::try_from(offset).ok())
            .filter(|&offset| offset < self.room());
        let Some(offset) = offset else {
            // The other end does not know where this one is.
            self.due = Some(now);
            return;
        };
        if self.ahead.len() <= offset {
            self.ahead.resize(offset + 1, None);
        }
        if self.ahead[offset].is_none() {
            self.ahead[offset] = Some((chunk.stream, chunk.bytes.into()));
        }
        while let Some(Some(part)) = self.ahead.front_mut().map(Option::take) {
            self.ahead.pop_front();
            self.ready.push_back(part);
            self.next += 1;
        }
        // The second chunk in a row, or a gap: at once. Else it may wait for company.
        let at_once = self.due.is_some() || !self.ahead.is_empty();
        self.due = Some(if at_once { now } else { now + ACK_DELAY });
    }

    pub(super) fn peek(&self) -> Option<(Stream, &[u8])> {
        let (stream, bytes) = self.ready.front()?;
        Some((*stream, bytes))
    }
    pub(super) fn read(&mut self, now: Instant) -> Option<Part> {
        let part = self.ready.pop_front()?;
        // A sender that was told of little room waits until it hears of more.
        if self.told <= self.window / 4 && self.room() > self.window / 2 {
            self.due = Some(now);
        }
        Some(part)
    }

    pub(super) fn ack(&self) -> Ack {
        let behind = (self.ahead.iter().skip(1))
            .enumerate()
            .filter(|(_, part)| part.is_some())
            .fold(0, |bits, (bit, _)| bits | 1 << bit);
        Ack {
            next: self.next,
            behind,
            window: u8::try_from(self.room()).unwrap_or(u8::MAX),
        }
    }
    /// What [`Self::ack`] gave goes out now.
    pub(super) fn acknowledged(&mut self) {
        self.due = None;
        self.told = self.room();
    }
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }
}

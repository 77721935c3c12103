//! The sending half of a channel: cuts messages, and sends each chunk until it is acknowledged.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::pace::Pace;
use crate::frame::{Ack, CHUNK_MAX, Chunk, SPAN, Stream};
use crate::time::Instant;

/// Most bytes that wait to be cut.
const QUEUE_MAX: usize = 16 * 1024;
/// A chunk counts as lost when so many that were sent after it have arrived.
const OVERTAKEN: u64 = 3;

/// A chunk under way.
struct Sent {
    stream: Stream,
    sequence: u64,
    index: u16,
    count: u16,
    bytes: Vec<u8>,
    arrived: bool,
    /// How often it went out.
    times: u32,
    /// When it went out last, and as which of all.
    at: Instant,
    order: u64,
    /// When it goes out next.
    due: Instant,
}

pub(super) struct Sender {
    /// Bytes that wait, in runs of the same kind. A control message is a run of its own.
    queue: VecDeque<(Stream, VecDeque<u8>)>,
    queued: usize,
    /// Position of the first chunk in `under_way`.
    first: u64,
    under_way: VecDeque<Sent>,
    /// Position from which on the other end has no room.
    limit: u64,
    /// How many times a chunk went out.
    order: u64,
    /// The newest of these that arrived.
    newest: u64,
    /// A loss among chunks that went out before this one has been counted.
    counted: u64,
    pace: Pace,
}

impl Sender {
    pub(super) const fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            queued: 0,
            first: 0,
            under_way: VecDeque::new(),
            // Any receiver has room for one; its first acknowledgement says for how many.
            limit: 1,
            order: 0,
            newest: 0,
            counted: 0,
            pace: Pace::new(),
        }
    }

    pub(super) fn room(&self) -> usize {
        QUEUE_MAX.saturating_sub(self.queued)
    }
    pub(super) fn write(&mut self, stream: Stream, bytes: &[u8]) -> usize {
        let bytes = &bytes[..bytes.len().min(self.room())];
        match self.queue.back_mut() {
            Some((last, run)) if *last == stream => run.extend(bytes),
            _ if bytes.is_empty() => {}
            _ => self
                .queue
                .push_back((stream, bytes.iter().copied().collect())),
        }
        self.queued += bytes.len();
        bytes.len()
    }
    pub(super) fn write_control(&mut self, bytes: &[u8]) {
        let run = bytes.iter().copied().collect();
        self.queue.push_back((Stream::Control, run));
        self.queued += bytes.len();
    }
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.under_way.is_empty()
    }

    /// Learns what has arrived.
    pub(super) fn acknowledge(&mut self, now: Instant, ack: &Ack) {
        let end = self.first + self.under_way.len() as u64;
        // An end that acknowledges what was never sent is not to be believed in the rest either.
        if ack.next > end {
            return;
        }
        self.limit = self.limit.max(ack.next.saturating_add(ack.window.into()));
        let first = self.first;
        let arrives = |position: u64| match position.checked_sub(ack.next) {
            None => true,
            Some(0) => false,
            Some(behind) => behind <= 32 && ack.behind & (1 << (behind - 1)) != 0,
        };
        let mut arrived = 0;
        for (position, sent) in (first..).zip(&mut self.under_way) {
            if sent.arrived || sent.times == 0 || !arrives(position) {
                continue;
            }
            sent.arrived = true;
            arrived += 1;
            self.newest = self.newest.max(sent.order);
            // Of a chunk that went out twice nobody knows which one was acknowledged.
            if sent.times == 1 {
                self.pace.measured(now.since(sent.at));
            }
        }
        self.pace.arrived(arrived);
        while self.under_way.front().is_some_and(|sent| sent.arrived) {
            self.under_way.pop_front();
            self.first += 1;
        }
        for sent in &mut self.under_way {
            if !sent.arrived && sent.times > 0 && sent.order + OVERTAKEN <= self.newest {
                sent.due = sent.due.min(now);
            }
        }
    }

    /// The next chunk, if one is due.
    pub(super) fn next(&mut self, now: Instant) -> Option<Chunk<'_>> {
        if now < self.pace.next() {
            return None;
        }
        if self.may_cut() {
            self.cut();
        }
        let may_start = self.may_start();
        let index = self.under_way.iter().position(|sent| {
            !sent.arrived
                && if sent.times > 0 {
                    sent.due <= now
                } else {
                    may_start
                }
        })?;
        let sent = self.under_way.get_mut(index)?;
        if sent.times > 0 && sent.order >= self.counted {
            self.counted = self.order;
            self.pace.lost();
        }
        self.order += 1;
        sent.order = self.order;
        sent.times = sent.times.saturating_add(1);
        sent.at = now;
        sent.due = now + self.pace.timeout(sent.times);
        self.pace.sent(now);
        let sent = self.under_way.get(index)?;
        Some(Chunk {
            stream: sent.stream,
            sequence: sent.sequence,
            index: sent.index,
            count: sent.count,
            bytes: &sent.bytes,
        })
    }
    /// When [`Self::next`] has something, if nothing else happens.
    pub(super) fn due(&self) -> Option<Instant> {
        let may_start = self.may_start();
        let again = (self.under_way.iter())
            .filter(|sent| !sent.arrived)
            .filter_map(|sent| match sent.times {
                0 => may_start.then_some(self.pace.next()),
                _ => Some(sent.due),
            })
            .min();
        let cut = self.may_cut().then_some(self.pace.next());
        let due = again.into_iter().chain(cut).min()?;
        Some(due.max(self.pace.next()))
    }

    /// Chunks that went out and have not arrived.
    fn outstanding(&self) -> usize {
        let is_out = |sent: &&Sent| sent.times > 0 && !sent.arrived;
        self.under_way.iter().filter(is_out).count()
    }
    /// Whether one more may go out for the first time.
    fn may_start(&self) -> bool {
        self.outstanding() < self.pace.window()
    }
    /// How many chunks a message may have that is cut now. Even without room at the other end one may go: its
    /// acknowledgement says whether there is some now.
    fn allowed(&self) -> usize {
        let end = self.first + self.under_way.len() as u64;
        let room = usize::try_from(self.limit.saturating_sub(end)).unwrap_or(usize::MAX);
        let room = if self.under_way.is_empty() {
            room.max(1)
        } else {
            room
        };
        room.min(SPAN - 1 - self.under_way.len())
            .min(self.pace.window().saturating_sub(self.outstanding()))
    }
    /// What is cut goes out before more is cut: meanwhile what is written comes together.
    fn may_cut(&self) -> bool {
        let all_out = self.under_way.iter().all(|sent| sent.times > 0);
        !self.queue.is_empty() && all_out && self.allowed() > 0
    }
    /// Makes a message of what waits.
    fn cut(&mut self) {
        let most = self.allowed() * CHUNK_MAX;
        let Some((stream, run)) = self.queue.front_mut() else {
            return;
        };
        let stream = *stream;
        let bytes: Vec<u8> = run.drain(..run.len().min(most)).collect();
        if run.is_empty() {
            self.queue.pop_front();
        }
        self.queued -= bytes.len();
        let sequence = self.first + self.under_way.len() as u64;
        let chunks = bytes.chunks(CHUNK_MAX);
        // At most 32, as `allowed` says.
        let count = chunks.len() as u16;
        for (index, bytes) in (0..).zip(chunks) {
            self.under_way.push_back(Sent {
                stream,
                sequence,
                index,
                count,
                bytes: bytes.into(),
                arrived: false,
                times: 0,
                at: Instant::default(),
                order: 0,
                due: Instant::default(),
            });
        }
    }
}

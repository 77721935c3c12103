//! How fast to send, and how long to wait for an answer: from the times that answers took.

use core::time::Duration;

use crate::time::Instant;

/// Before an answer was timed.
const FIRST_TIMEOUT: Duration = Duration::from_millis(300);
const TIMEOUT_MIN: Duration = Duration::from_millis(60);
/// Short against the silence for which an end is given up: there are tries enough before that.
const TIMEOUT_MAX: Duration = Duration::from_secs(1);

/// Chunks under way at once: at the beginning, at least, at most.
const FIRST_WINDOW: usize = 16;
const WINDOW_MIN: usize = 8;
const WINDOW_MAX: usize = 32;

/// Chunks that may go out in a row.
const BURST: u32 = 8;
const INTERVAL_MAX: Duration = Duration::from_millis(5);

/// The estimates of RFC 6298, a window that halves at a loss and grows with what arrives, and a pace that spreads the window
/// over a round trip.
pub(super) struct Pace {
    /// Smoothed round trip, and how much it varies.
    trip: Option<(Duration, Duration)>,
    window: usize,
    /// Chunks that arrived since the window grew last.
    arrived: usize,
    /// From when on the next chunk may go out, but for the burst.
    next: Instant,
}

impl Pace {
    pub(super) const fn new() -> Self {
        Self {
            trip: None,
            window: FIRST_WINDOW,
            arrived: 0,
            next: Instant::from_nanos(0),
        }
    }

    /// A chunk that was sent once was acknowledged after so long.
    pub(super) fn measured(&mut self, sample: Duration) {
        self.trip = Some(match self.trip {
            None => (sample, sample / 2),
            Some((trip, varies)) => (
                (trip * 7 + sample) / 8,
                (varies * 3 + trip.abs_diff(sample)) / 4,
            ),
        });
    }
    /// So many chunks arrived.
    pub(super) fn arrived(&mut self, chunks: usize) {
        self.arrived += chunks;
        if self.arrived >= self.window {
            self.arrived = 0;
            self.window = (self.window + 4).min(WINDOW_MAX);
        }
    }
    /// One was lost.
    pub(super) fn lost(&mut self) {
        self.window = (self.window / 2).max(WINDOW_MIN);
        self.arrived = 0;
    }
    pub(super) const fn window(&self) -> usize {
        self.window
    }

    /// How long to wait for the acknowledgement of a chunk that was sent so many times.
    pub(super) fn timeout(&self, times: u32) -> Duration {
        let once = self.trip.map_or(FIRST_TIMEOUT, |(trip, varies)| {
            (trip + varies * 4).max(TIMEOUT_MIN)
        });
        let doublings = times.saturating_sub(1).min(6);
        (once * (1 << doublings)).min(TIMEOUT_MAX)
    }

    fn interval(&self) -> Duration {
        let (trip, _) = self.trip.unwrap_or_default();
        let window = u32::try_from(self.window).unwrap_or(u32::MAX);
        (trip / window).min(INTERVAL_MAX)
    }
    /// From when on a chunk may go out.
    pub(super) const fn next(&self) -> Instant {
        self.next
    }
    /// One goes out.
    pub(super) fn sent(&mut self, now: Instant) {
        let earliest = now - self.interval() * BURST;
        self.next = self.next.max(earliest) + self.interval();
    }
}

//! When a thread sends its next datagrams: as many in a second as were asked for, with no burst to make up for time that was lost.

use std::time::{Duration, Instant};

const NANOS: u128 = 1_000_000_000;
/// Most datagrams that are sent in a row before replies are looked at.
pub const BATCH: u64 = 32;

/// The schedule of one of several threads, which share the rate and take turns.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    start: Instant,
    /// Datagrams of all threads in a second; 0 is no bound.
    pps: u64,
    index: u64,
    threads: u64,
    /// The next one's number in this schedule: how many were sent, and how many were left out because the thread was late.
    next: u64,
}

impl Pace {
    /// That of thread `index`, from 0, of `threads`, from `start` on.
    pub fn new(start: Instant, pps: u64, index: u64, threads: u64) -> Self {
        Self {
            start,
            pps,
            index,
            threads,
            next: 0,
        }
    }

    /// How many datagrams are due now, at most [`BATCH`]. A thread that is late by more than that leaves out the rest.
    pub fn due(&mut self, now: Instant) -> u64 {
        if self.pps == 0 {
            return BATCH;
        }
        let elapsed = now.saturating_duration_since(self.start).as_nanos();
        // The turn of this thread comes `index` datagrams after that of the first.
        let all = elapsed * u128::from(self.pps) / NANOS + 1;
        let turns = all.saturating_sub(self.index.into());
        let until_now = turns.div_ceil(self.threads.into());
        let due = u64::try_from(until_now)
            .unwrap_or(u64::MAX)
            .saturating_sub(self.next);
        self.next += due.saturating_sub(BATCH);
        due.min(BATCH)
    }

    /// Notes that so many were sent.
    pub fn sent(&mut self, count: u64) {
        self.next += count;
    }

    /// How long until the next one is due; nothing if one is.
    pub fn wait(&self, now: Instant) -> Duration {
        if self.pps == 0 {
            return Duration::ZERO;
        }
        let number = u128::from(self.next) * u128::from(self.threads) + u128::from(self.index);
        let at = (number * NANOS).div_ceil(self.pps.into());
        let at = Duration::from_nanos(u64::try_from(at).unwrap_or(u64::MAX));
        at.saturating_sub(now.saturating_duration_since(self.start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many all threads send in a time, if each wakes as soon as something is due.
    fn sent(pps: u64, threads: u64, time: Duration) -> u64 {
        let start = Instant::now();
        let of = |index| {
            let (mut pace, mut now, mut sent) = (Pace::new(start, pps, index, threads), start, 0);
            loop {
                now += pace.wait(now);
                if now >= start + time {
                    return sent;
                }
                let due = pace.due(now);
                assert!(due > 0, "woken for nothing");
                pace.sent(due);
                sent += due;
            }
        };
        (0..threads).map(of).sum()
    }

    #[test]
    fn as_many_are_sent_as_were_asked_for_by_however_many_threads() {
        for threads in [1, 3, 8] {
            for pps in [1, 7, 1000, 12_345] {
                assert_eq!(sent(pps, threads, Duration::from_secs(3)), 3 * pps);
            }
        }
    }

    #[test]
    fn time_that_was_lost_is_not_made_up_for() {
        let start = Instant::now();
        let mut pace = Pace::new(start, 1000, 0, 1);
        let late = start + Duration::from_secs(10);
        assert_eq!(pace.due(late), BATCH);
        pace.sent(BATCH);
        assert_eq!(pace.due(late), 0);
        assert!(pace.wait(late) > Duration::ZERO);
    }

    #[test]
    fn without_a_rate_there_is_always_something_to_send() {
        let now = Instant::now();
        let mut pace = Pace::new(now, 0, 0, 1);
        assert_eq!((pace.due(now), pace.wait(now)), (BATCH, Duration::ZERO));
    }
}

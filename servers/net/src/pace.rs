//! How long the server goes on without a rest while the card always has more.
//!
//! Threads are scheduled strictly by priority, so on one CPU a flood of frames would keep all that is below this server from
//! running: first of all the programs that the frames are for (receive livelock: Mogul and Ramakrishnan, "Eliminating Receive
//! Livelock in an Interrupt-driven Kernel", 1997). So after [`BUSY_MAX`] it sleeps for as long as it was busy, and half of the time is others'.
//! What the card's ring has no room for meanwhile, the card drops.

use ipc::abi::{NEVER, NOW};

/// Time without a rest after which the server sleeps, in nanoseconds. A pause is no shorter, and longer by a batch at most.
pub const BUSY_MAX: u64 = 2_000_000;

/// What is kept from one batch to the next.
#[derive(Debug, Default)]
pub struct Pace {
    /// When the first of the batches began that had no rest since.
    busy: Option<u64>,
    /// When the pause ends, if one is on.
    pause: Option<u64>,
}

impl Pace {
    /// After a batch: the time until which the server may sleep, if nothing else wakes it. `rests` says that the card has nothing
    /// more, `now` gives the time in nanoseconds.
    pub fn after(&mut self, rests: bool, now: impl FnOnce() -> u64) -> u64 {
        if rests {
            *self = Self::default();
            return NEVER;
        }
        let now = now();
        if let Some(end) = self.pause {
            if now < end {
                return end;
            }
            self.pause = None;
        }
        let since = *self.busy.get_or_insert(now);
        let busy = now.saturating_sub(since);
        if busy < BUSY_MAX {
            return NOW;
        }
        let end = now.saturating_add(busy);
        *self = Self {
            busy: None,
            pause: Some(end),
        };
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time that a batch takes.
    const BATCH: u64 = 50_000;

    #[test]
    fn a_flood_has_half_of_the_time() {
        let mut pace = Pace::default();
        let (mut now, mut slept) = (1_000_000, 0);
        let start = now;
        for _ in 0..10_000 {
            now += BATCH;
            let due = pace.after(false, || now);
            let pause = due.saturating_sub(now);
            assert!(pause <= BUSY_MAX + BATCH, "{pause}");
            slept += pause;
            now += pause;
        }
        let share = slept * 100 / (now - start);
        assert!((48..=50).contains(&share), "{share} %");
    }

    /// Who calls in a pause is served, and the pause goes on.
    #[test]
    fn a_call_does_not_end_a_pause() {
        let mut pace = Pace::default();
        assert_eq!(pace.after(false, || 1), NOW);
        let end = pace.after(false, || 1 + BUSY_MAX);
        assert_eq!(end, 1 + 2 * BUSY_MAX);
        assert_eq!(pace.after(false, || end - 1), end);
        assert_eq!(pace.after(false, || end), NOW);
    }

    #[test]
    fn a_rest_begins_anew() {
        let mut pace = Pace::default();
        assert_eq!(pace.after(false, || 1), NOW);
        assert_eq!(pace.after(true, || unreachable!()), NEVER);
        assert_eq!(pace.after(false, || 1 + BUSY_MAX), NOW);
    }
}

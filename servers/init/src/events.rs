//! The starts and ends of processes, for those who subscribe.
//!
//! A subscriber that comes late, or anew, reads from position 0: the start of a process that still runs is kept as long as
//! it runs, however many others came and went.

use alloc::collections::VecDeque;

use ipc::proto::init::{Event, Happening};

/// Most events kept. At least twice the processes there can be, so that there is always one to drop.
pub const KEPT: usize = 256;

/// The events that are kept, by position.
#[derive(Debug)]
pub struct Events {
    kept: VecDeque<Event>,
    next: u64,
}

impl Default for Events {
    /// None, and the memory for all that will be kept.
    fn default() -> Self {
        Self {
            kept: VecDeque::with_capacity(KEPT),
            next: 0,
        }
    }
}

impl Events {
    /// Adds one. `runs` says whether a process still does.
    pub fn push(&mut self, tsc: u64, pid: u32, what: Happening, runs: impl Fn(u32) -> bool) {
        if self.kept.len() >= KEPT {
            let oldest = self.kept.iter().position(|event| !runs(event.pid));
            self.kept.remove(oldest.unwrap_or(0));
        }
        self.kept.push_back(Event {
            position: self.next,
            tsc,
            pid,
            what,
        });
        self.next += 1;
    }

    /// The first that is kept and has at least this position.
    #[must_use]
    pub fn at(&self, position: u64) -> Option<&Event> {
        let index = self.kept.partition_point(|event| event.position < position);
        self.kept.get(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::proto::init::Ending;

    const ENDED: Happening = Happening::Ended {
        ending: Ending::Exited,
        code: 0,
    };

    #[test]
    fn events_are_read_by_position() {
        let mut events = Events::default();
        assert_eq!(events.at(0), None);
        for pid in 10..13 {
            events.push(u64::from(pid) * 2, pid, ENDED, |_| false);
        }
        let event = events.at(1).unwrap();
        assert_eq!((event.position, event.pid, event.tsc), (1, 11, 22));
        assert_eq!(events.at(3), None);
        assert_eq!(events.at(u64::MAX), None);
    }

    #[test]
    fn events_of_those_who_run_outlast_the_others() {
        let mut events = Events::default();
        let reserved = events.kept.capacity();
        let runs = |pid| pid == 7;
        events.push(0, 7, ENDED, runs);
        for pid in 100..100 + 2 * KEPT as u32 {
            events.push(0, pid, ENDED, runs);
        }
        assert_eq!(events.at(0).unwrap().pid, 7);
        let second = events.at(1).unwrap();
        assert_eq!(second.position, KEPT as u64 + 2);
        let last = events.at(2 * KEPT as u64).unwrap();
        assert_eq!(last.pid, 100 + 2 * KEPT as u32 - 1);
        assert_eq!(events.kept.capacity(), reserved, "no memory for more");
    }

    #[test]
    fn the_store_is_bounded_even_if_all_run() {
        let mut events = Events::default();
        for pid in 0..2 * KEPT as u32 {
            events.push(0, pid, ENDED, |_| true);
        }
        assert_eq!(events.kept.len(), KEPT);
    }
}

//! Stops that came before their profile was asked for: it is then refused.
//!
//! A client that asks for many cannot make profd forget those of another: what has to go is the oldest of whoever has most.

use alloc::collections::VecDeque;
use core::cmp::Reverse;

/// Most stops that are remembered. One that came after its profile's end stays among them until others take its place.
pub const EARLY_MAX: usize = 64;

/// Which profile: the badge of its caller, and the caller's number for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id {
    /// Badge.
    pub badge: u64,
    /// Number.
    pub number: u64,
}

/// The stops that are remembered, oldest first.
#[derive(Debug)]
pub struct EarlyStops(VecDeque<Id>);

impl Default for EarlyStops {
    /// None, and the memory for all that will be kept.
    fn default() -> Self {
        Self(VecDeque::with_capacity(EARLY_MAX + 1))
    }
}

impl EarlyStops {
    /// Remembers one.
    pub fn add(&mut self, id: Id) {
        self.0.push_back(id);
        if self.0.len() > EARLY_MAX {
            let of_badge = |badge| self.0.iter().filter(|id| id.badge == badge).count();
            let places = self.0.iter().enumerate();
            let gone = places.max_by_key(|(place, id)| (of_badge(id.badge), Reverse(*place)));
            let gone = gone.map_or(0, |(place, _)| place);
            self.0.remove(gone);
        }
    }

    /// Whether there is one for this profile, which is forgotten.
    pub fn take(&mut self, id: Id) -> bool {
        let place = self.0.iter().position(|early| *early == id);
        place.is_some_and(|place| self.0.remove(place).is_some())
    }

    /// Forgets all that came with a badge.
    pub fn forget(&mut self, badge: u64) {
        self.0.retain(|id| id.badge != badge);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(badge: u64, number: u64) -> Id {
        Id { badge, number }
    }

    #[test]
    fn a_stop_is_taken_once_by_its_profile() {
        let mut early = EarlyStops::default();
        early.add(id(1, 7));
        assert!(!early.take(id(2, 7)) && !early.take(id(1, 8)));
        assert!(early.take(id(1, 7)));
        assert!(!early.take(id(1, 7)));
        early.add(id(1, 9));
        early.forget(1);
        assert!(!early.take(id(1, 9)));
    }

    #[test]
    fn who_asks_for_many_pushes_out_its_own() {
        let mut early = EarlyStops::default();
        for number in 0..3 {
            early.add(id(1, number));
        }
        let reserved = early.0.capacity();
        for number in 0..10 * EARLY_MAX as u64 {
            early.add(id(2, number));
        }
        assert_eq!((early.0.len(), early.0.capacity()), (EARLY_MAX, reserved));
        assert!(early.take(id(2, 10 * EARLY_MAX as u64 - 1)), "the last");
        assert!(!early.take(id(2, 0)), "the first");
        assert!((0..3).all(|number| early.take(id(1, number))));
    }

    #[test]
    fn equals_share_the_places() {
        let mut early = EarlyStops::default();
        for badge in [1, 2] {
            for number in 0..EARLY_MAX as u64 {
                early.add(id(badge, number));
            }
        }
        let half = EARLY_MAX as u64 / 2;
        for badge in [1, 2] {
            let mut numbers = 0..EARLY_MAX as u64;
            assert!(numbers.all(|number| early.take(id(badge, number)) == (number >= half)));
        }
    }
}

//! Which deadline is next? A binary heap over fixed storage, with the place of each item, so that setting, replacing and
//! cancelling take a number of steps that is logarithmic in the items, and asking takes one.
//!
//! Items are numbers below the capacity, as pool slots are; each has one deadline at most. Deadlines that are equal come in the
//! order of the numbers.

use crate::base::addr::Nanos;

/// In [`TimerSlot::place`]: the item has no deadline.
const NOWHERE: u32 = u32::MAX;

/// Storage for one item: a queue of `n` slots holds items 0 to `n - 1`.
#[derive(Clone, Copy, Debug)]
pub struct TimerSlot {
    /// Entry of the heap at this slot's index.
    deadline: Nanos,
    item: u32,
    /// Where the heap has the entry of the item whose number is this slot's index.
    place: u32,
}

impl TimerSlot {
    /// What a queue's storage is made of.
    pub const EMPTY: Self = Self {
        deadline: Nanos::NEVER,
        item: 0,
        place: NOWHERE,
    };
}

/// Deadlines of items.
#[derive(Debug)]
pub struct TimerQueue {
    slots: &'static mut [TimerSlot],
    len: usize,
}

impl TimerQueue {
    /// A queue without deadlines; what the slots hold is lost.
    ///
    /// # Panics
    /// If there are 2^32 slots or more: a mistake of the boot code.
    #[must_use]
    pub fn new(slots: &'static mut [TimerSlot]) -> Self {
        assert!(slots.len() < NOWHERE as usize, "items have 32 bits");
        slots.fill(TimerSlot::EMPTY);
        Self { slots, len: 0 }
    }

    /// Gives an item a deadline, in place of the one it had; [`Nanos::NEVER`] cancels.
    ///
    /// # Panics
    /// If there is no slot for the item: a mistake of the caller.
    pub fn set(&mut self, item: u32, deadline: Nanos) {
        if deadline == Nanos::NEVER {
            self.cancel(item);
            return;
        }
        let place = match self.slots[item as usize].place {
            NOWHERE => {
                self.len += 1;
                self.len - 1
            }
            place => place as usize,
        };
        self.put(place, (deadline, item));
        self.settle(place);
    }

    /// Takes an item's deadline away, and says whether it had one.
    pub fn cancel(&mut self, item: u32) -> bool {
        let place = match self.slots.get(item as usize) {
            Some(slot) if slot.place != NOWHERE => slot.place as usize,
            _ => return false,
        };
        self.slots[item as usize].place = NOWHERE;
        self.len -= 1;
        if place < self.len {
            self.put(place, self.entry(self.len));
            self.settle(place);
        }
        true
    }

    /// An item's deadline, if it has one.
    #[must_use]
    pub fn deadline(&self, item: u32) -> Option<Nanos> {
        match self.slots.get(item as usize)?.place {
            NOWHERE => None,
            place => Some(self.entry(place as usize).0),
        }
    }

    /// The earliest deadline, if there is one.
    #[must_use]
    pub fn next(&self) -> Option<Nanos> {
        (self.len > 0).then(|| self.entry(0).0)
    }

    /// Takes out the item with the earliest deadline, if that is not after `now`. The caller repeats it, as often as its bound allows.
    pub fn pop_due(&mut self, now: Nanos) -> Option<u32> {
        if self.next()? > now {
            return None;
        }
        let item = self.entry(0).1;
        self.cancel(item);
        Some(item)
    }

    fn entry(&self, place: usize) -> (Nanos, u32) {
        (self.slots[place].deadline, self.slots[place].item)
    }

    fn put(&mut self, place: usize, (deadline, item): (Nanos, u32)) {
        self.slots[place].deadline = deadline;
        self.slots[place].item = item;
        self.slots[item as usize].place = place as u32;
    }

    fn swap(&mut self, a: usize, b: usize) {
        let (at_a, at_b) = (self.entry(a), self.entry(b));
        self.put(a, at_b);
        self.put(b, at_a);
    }

    /// Moves the entry at `place`, the only one that may be out of order, to where it belongs.
    fn settle(&mut self, mut place: usize) {
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.entry(parent) <= self.entry(place) {
                break;
            }
            self.swap(parent, place);
            place = parent;
        }
        loop {
            let children = (2 * place + 1..self.len).take(2);
            let Some(least) = children.min_by_key(|&child| self.entry(child)) else {
                break;
            };
            if self.entry(place) <= self.entry(least) {
                break;
            }
            self.swap(place, least);
            place = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn queue(items: usize) -> TimerQueue {
        TimerQueue::new(Box::leak(vec![TimerSlot::EMPTY; items].into_boxed_slice()))
    }

    #[test]
    fn deadlines_come_in_order_and_not_before_their_time() {
        let mut queue = queue(4);
        assert_eq!((queue.next(), queue.pop_due(Nanos::NEVER)), (None, None));
        queue.set(3, Nanos(30));
        queue.set(1, Nanos(10));
        queue.set(2, Nanos(10));
        assert_eq!(queue.pop_due(Nanos(9)), None);
        assert_eq!(queue.pop_due(Nanos(10)), Some(1));
        queue.set(2, Nanos(40));
        assert_eq!(
            (queue.next(), queue.deadline(2)),
            (Some(Nanos(30)), Some(Nanos(40)))
        );
        queue.set(3, Nanos::NEVER);
        assert_eq!((queue.pop_due(Nanos(39)), queue.deadline(3)), (None, None));
        assert!(queue.cancel(2) && !queue.cancel(2) && !queue.cancel(77));
        assert_eq!(queue.next(), None);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Set(u32, u64),
        Cancel(u32),
        Pop(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let time = || prop_oneof![9 => 0..100u64, 1 => Just(u64::MAX)];
        prop_oneof![
            4 => (0..40u32, time()).prop_map(|(item, deadline)| Step::Set(item, deadline)),
            1 => (0..40u32).prop_map(Step::Cancel),
            2 => time().prop_map(Step::Pop),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn it_is_a_map_that_knows_its_least(steps in prop::collection::vec(step(), 0..300)) {
            let (mut queue, mut model) = (queue(40), BTreeMap::new());
            for step in steps {
                let least = model.iter().map(|(&item, &deadline)| (deadline, item)).min();
                match step {
                    Step::Set(item, deadline) => {
                        queue.set(item, Nanos(deadline));
                        model.remove(&item);
                        if deadline != u64::MAX {
                            model.insert(item, deadline);
                        }
                    }
                    Step::Cancel(item) => prop_assert_eq!(queue.cancel(item), model.remove(&item).is_some()),
                    Step::Pop(now) => {
                        let due = least.filter(|(deadline, _)| *deadline <= now).map(|(_, item)| item);
                        prop_assert_eq!(queue.pop_due(Nanos(now)), due);
                        due.map(|item| model.remove(&item));
                    }
                }
                prop_assert_eq!(queue.next().map(|deadline| deadline.0), model.values().min().copied());
                for item in 0..40 {
                    prop_assert_eq!(queue.deadline(item).map(|deadline| deadline.0), model.get(&item).copied());
                }
            }
        }
    }
}

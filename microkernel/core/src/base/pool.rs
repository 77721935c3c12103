//! Typed pools: the kernel's only dynamic memory. A slot is made once at boot and holds a `T` for ever, so a reference
//! to one is always a `T`, whoever freed it: what a stale [`Ref`] meets is a wrong generation, never other bytes.
//!
//! A slot's generation is odd while it is in use. Freeing is only for the last holder, after a grace period where an
//! interrupt or another CPU may still look ([`crate::base::pool`] does not know; its callers do).

use super::cpu::Cpu;
use super::lock::{Lock, rank};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};

/// Names a slot of a pool as it was when the reference was made.
pub struct Ref<T> {
    index: u32,
    generation: u32,
    of: PhantomData<fn() -> T>,
}

impl<T> Ref<T> {
    /// Index of the slot.
    #[must_use]
    pub const fn index(self) -> u32 {
        self.index
    }
    /// As one word, for an atomic; zero is never a reference.
    #[must_use]
    pub const fn pack(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }
    /// From its word; `None` for a word that is no reference.
    #[must_use]
    pub const fn unpack(word: u64) -> Option<Self> {
        let generation = (word >> 32) as u32;
        if generation & 1 == 0 {
            return None;
        }
        Some(Self {
            index: word as u32,
            generation,
            of: PhantomData,
        })
    }
}

impl<T> Clone for Ref<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Ref<T> {}
impl<T> PartialEq for Ref<T> {
    fn eq(&self, other: &Self) -> bool {
        self.pack() == other.pack()
    }
}
impl<T> Eq for Ref<T> {}
impl<T> core::fmt::Debug for Ref<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}.{}", self.index, self.generation)
    }
}

/// A slot: a value and whether it is in use.
#[derive(Debug)]
pub struct Slot<T> {
    generation: AtomicU32,
    next_free: AtomicU32,
    value: T,
}

impl<T> Slot<T> {
    /// A free slot holding `value`.
    pub const fn new(value: T) -> Self {
        Self {
            generation: AtomicU32::new(0),
            next_free: AtomicU32::new(0),
            value,
        }
    }
}

struct Free {
    /// Index of the first free slot; the slots' number if none.
    head: u32,
    used: u32,
}

/// A fixed number of slots for one type.
pub struct Pool<T: 'static> {
    slots: &'static [Slot<T>],
    free: Lock<Free, { rank::POOL }>,
}

impl<T> Pool<T> {
    /// A pool of these slots, all free.
    ///
    /// # Panics
    /// If there are more than 2^31 slots: a mistake of the boot code.
    #[must_use]
    pub fn new(slots: &'static [Slot<T>]) -> Self {
        assert!(slots.len() < 1 << 31, "a pool this large cannot be indexed");
        for (index, slot) in slots.iter().enumerate() {
            slot.next_free.store(index as u32 + 1, Ordering::Relaxed);
        }
        Self {
            slots,
            free: Lock::new(Free { head: 0, used: 0 }),
        }
    }

    /// Takes a free slot; the caller puts its value in order before it publishes the reference. `None` when all are in use.
    pub fn take(&self, cpu: &Cpu) -> Option<(Ref<T>, &'static T)> {
        let mut free = self.free.lock(cpu);
        let index = free.head;
        let slot = self.slots.get(index as usize)?;
        free.head = slot.next_free.load(Ordering::Relaxed);
        free.used += 1;
        let generation = slot.generation.load(Ordering::Relaxed).wrapping_add(1);
        slot.generation.store(generation, Ordering::Release);
        Some((
            Ref {
                index,
                generation,
                of: PhantomData,
            },
            &slot.value,
        ))
    }

    /// Gives a slot back. References to it are stale from here on.
    ///
    /// # Panics
    /// If the reference is stale already: a double free.
    pub fn give(&self, cpu: &Cpu, reference: Ref<T>) {
        let mut free = self.free.lock(cpu);
        let slot = &self.slots[reference.index as usize];
        let was = slot.generation.load(Ordering::Relaxed);
        assert_eq!(was, reference.generation, "freed twice");
        slot.generation
            .store(was.wrapping_add(1), Ordering::Release);
        slot.next_free.store(free.head, Ordering::Relaxed);
        free.head = reference.index;
        free.used -= 1;
    }

    /// What a reference names, if it has not been freed since. It may be freed right after: who needs it to stay holds a
    /// count, or looks again under the object's lock.
    #[must_use]
    pub fn get(&self, reference: Ref<T>) -> Option<&'static T> {
        let slot = self.slots.get(reference.index as usize)?;
        (slot.generation.load(Ordering::Acquire) == reference.generation).then_some(&slot.value)
    }

    /// The value of a slot, in use or not, for who owns it by other means (a queue link) or only looks (the profiler).
    #[must_use]
    #[inline]
    pub fn at(&self, index: u32) -> Option<&'static T> {
        self.slots.get(index as usize).map(|slot| &slot.value)
    }

    /// The reference to a slot as it is now; `None` if it is free.
    #[must_use]
    pub fn reference(&self, index: u32) -> Option<Ref<T>> {
        let generation = self
            .slots
            .get(index as usize)?
            .generation
            .load(Ordering::Acquire);
        (generation & 1 == 1).then_some(Ref {
            index,
            generation,
            of: PhantomData,
        })
    }

    /// What is in a slot now, and the reference to it; `None` if it is free.
    #[must_use]
    pub fn occupant(&self, index: u32) -> Option<(Ref<T>, &'static T)> {
        let reference = self.reference(index)?;
        Some((reference, self.get(reference)?))
    }

    /// Slots in all.
    #[must_use]
    #[expect(
        clippy::len_without_is_empty,
        reason = "slots are never none; whether they are in use is `usage`"
    )]
    pub const fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Slots in use, and slots in all.
    pub fn usage(&self, cpu: &Cpu) -> (u32, u32) {
        (self.free.lock(cpu).used, self.slots.len() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::super::cpu::CpuId;
    use super::*;
    use proptest::prelude::*;

    fn pool(slots: usize) -> Pool<AtomicU32> {
        Pool::new(Box::leak(
            (0..slots).map(|_| Slot::new(AtomicU32::new(0))).collect(),
        ))
    }

    #[test]
    fn a_stale_reference_names_nothing() {
        let (cpu, pool) = (Cpu::new(CpuId(0)), pool(1));
        let (first, _) = pool.take(&cpu).unwrap();
        assert!(pool.take(&cpu).is_none());
        pool.give(&cpu, first);
        assert!(pool.get(first).is_none() && pool.reference(0).is_none());
        let (second, _) = pool.take(&cpu).unwrap();
        assert!(second != first && pool.get(first).is_none() && pool.get(second).is_some());
    }

    proptest! {
        #[test]
        fn live_references_are_distinct_and_counted(steps in prop::collection::vec(any::<Option<u8>>(), 0..200)) {
            let (cpu, pool) = (Cpu::new(CpuId(0)), pool(8));
            let mut live: Vec<Ref<AtomicU32>> = Vec::new();
            for step in steps {
                match step {
                    None => match pool.take(&cpu) {
                        Some((reference, _)) => { prop_assert!(!live.iter().any(|r| r.index() == reference.index())); live.push(reference); }
                        None => prop_assert_eq!(live.len(), 8),
                    },
                    Some(pick) if !live.is_empty() => pool.give(&cpu, live.swap_remove(pick as usize % live.len())),
                    Some(_) => {}
                }
                prop_assert_eq!(pool.usage(&cpu).0 as usize, live.len());
                prop_assert!(live.iter().all(|&r| pool.get(r).is_some() && Ref::unpack(r.pack()) == Some(r)));
            }
        }
    }
}

//! Folds samples by chain. The table is bounded, and says what it could not hold.

use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;

use crate::atlas::Place;
use crate::chain::{Chain, Key};

/// Distinct chains that a table holds.
pub const CHAINS: usize = 512;
/// Distinct leaf addresses that a table holds.
pub const ADDRESSES: usize = 4096;

/// What is known of the samples of one chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Samples.
    pub count: u64,
    /// Lowest leaf address.
    pub low: u64,
    /// Highest leaf address.
    pub high: u64,
    /// Fewest and most frames that were cut off.
    pub beyond: (u32, u32),
    /// Whether more frames follow than were counted, in any of them.
    pub open: bool,
}

/// Counts by chain and by leaf address.
#[derive(Clone, Debug)]
pub struct Table {
    capacity: usize,
    chains: BTreeMap<Key, Tally>,
    addresses: BTreeMap<Place, u64>,
    /// Samples in chains for which there was no room.
    pub beyond: u64,
    /// Samples at leaf addresses for which there was no room; their chains are counted all the same.
    pub addresses_beyond: u64,
}

impl Table {
    /// An empty table for this many chains.
    #[must_use]
    pub const fn new(capacity: usize) -> Self {
        Self {
            capacity,
            chains: BTreeMap::new(),
            addresses: BTreeMap::new(),
            beyond: 0,
            addresses_beyond: 0,
        }
    }

    /// Counts a sample.
    pub fn add(&mut self, chain: Chain) {
        let full = self.addresses.len() >= ADDRESSES;
        match self.addresses.entry(chain.leaf) {
            Entry::Occupied(mut count) => *count.get_mut() += 1,
            Entry::Vacant(_) if full => self.addresses_beyond += 1,
            Entry::Vacant(place) => {
                place.insert(1);
            }
        }
        let full = self.chains.len() >= self.capacity;
        let address = chain.leaf.address;
        match self.chains.entry(chain.key) {
            Entry::Occupied(mut entry) => {
                let tally = entry.get_mut();
                tally.count += 1;
                tally.low = tally.low.min(address);
                tally.high = tally.high.max(address);
                tally.beyond.0 = tally.beyond.0.min(chain.beyond.frames);
                tally.beyond.1 = tally.beyond.1.max(chain.beyond.frames);
                tally.open |= chain.beyond.open;
            }
            Entry::Vacant(_) if full => self.beyond += 1,
            Entry::Vacant(entry) => {
                entry.insert(Tally {
                    count: 1,
                    low: address,
                    high: address,
                    beyond: (chain.beyond.frames, chain.beyond.frames),
                    open: chain.beyond.open,
                });
            }
        }
    }

    /// Chains that it can hold.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Every chain.
    pub fn chains(&self) -> impl Iterator<Item = (&Key, &Tally)> {
        self.chains.iter()
    }

    /// Every leaf address and its samples.
    pub fn addresses(&self) -> impl Iterator<Item = (Place, u64)> {
        self.addresses.iter().map(|(&place, &count)| (place, count))
    }
}

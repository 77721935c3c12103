//! The pages of a memory object: a list of frames, kept in frames. A radix tree with 512 entries a node, of as many levels as its
//! length asks for, 3 at most.
//!
//! It grows and shrinks at its end only, one page at a time, and is whole after every step: so making and freeing a large
//! object are bounded steps with no other progress than the length. A node is given back when its first entry
//! goes. The tree never gets lower while it holds a page.

use super::supply::Supply;
use crate::base::addr::{Frame, PhysAddr};
use crate::hardware::PhysMemory;
use ipc::abi::Error;

/// Levels of nodes at most.
const LEVELS_MAX: u32 = 3;
/// Bits of an index that one level decides.
const BITS: u32 = 9;

/// Most pages in a list: 512 GiB.
pub const LENGTH_MAX: u64 = 1 << (BITS * LEVELS_MAX);

/// Where a node's entry for a page is; level 1 nodes hold pages.
const fn slot(node: Frame, index: u64, level: u32) -> PhysAddr {
    let entry = index >> (BITS * (level - 1)) & ((1 << BITS) - 1);
    node.start().offset(entry * 8)
}

/// A list of frames. It is a name for its nodes, not their owner: who drops it without emptying it loses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameList {
    /// Node of the highest level; means nothing while `levels` is 0.
    root: Frame,
    levels: u32,
    length: u64,
}

impl FrameList {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            root: Frame(0),
            levels: 0,
            length: 0,
        }
    }

    /// Pages in it.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.length
    }
    /// Whether it has no pages, and so no nodes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The page with this number; `None` past the end. Three loads at most.
    #[must_use]
    pub fn get(&self, memory: &impl PhysMemory, index: u64) -> Option<Frame> {
        if index >= self.length {
            return None;
        }
        let mut frame = self.root;
        for level in (1..=self.levels).rev() {
            frame = read(memory, slot(frame, index, level));
        }
        Some(frame)
    }

    /// Puts a page at the end. It takes up to three nodes from `supply`; on error the list is as it was and nothing stays taken.
    ///
    /// # Errors
    /// `LimitReached` at [`LENGTH_MAX`], and what the supply says.
    pub fn push(
        &mut self,
        memory: &impl PhysMemory,
        frame: Frame,
        supply: &mut impl Supply,
    ) -> Result<(), Error> {
        let index = self.length;
        if index == LENGTH_MAX {
            return Err(Error::LimitReached);
        }
        let grows = index == self.capacity();
        let fresh = self.nodes_beginning_at(index);
        let nodes = take_all(fresh + usize::from(grows), supply)?;
        // The new nodes below the one that is there, from the page upwards.
        let mut child = frame;
        for (node, level) in nodes.into_iter().take(fresh).zip(1..) {
            write(memory, slot(node, index, level), child);
            child = node;
        }
        if grows {
            let root = nodes[fresh];
            if self.levels > 0 {
                write(memory, slot(root, 0, self.levels + 1), self.root);
            }
            self.root = root;
            self.levels += 1;
        }
        let mut node = self.root;
        let level = fresh as u32 + 1;
        for above in (level + 1..=self.levels).rev() {
            node = read(memory, slot(node, index, above));
        }
        write(memory, slot(node, index, level), child);
        self.length += 1;
        Ok(())
    }

    /// Takes the last page off the list, and gives the nodes back that it was the only page of; `None` once it is empty.
    pub fn pop(&mut self, memory: &impl PhysMemory, supply: &mut impl Supply) -> Option<Frame> {
        let index = self.length.checked_sub(1)?;
        let gone = self.nodes_beginning_at(index) as u32;
        let mut frame = self.root;
        for level in (1..=self.levels).rev() {
            let node = frame;
            frame = read(memory, slot(node, index, level));
            if level <= gone {
                supply.give(node);
            }
        }
        self.length = index;
        if index == 0 {
            self.levels = 0;
        }
        Some(frame)
    }

    /// Pages that fit without another level.
    const fn capacity(&self) -> u64 {
        match self.levels {
            0 => 0,
            levels => 1 << (BITS * levels),
        }
    }

    /// How many nodes have this page as their first: those of level 1 up to this number.
    fn nodes_beginning_at(&self, index: u64) -> usize {
        (1..=self.levels)
            .take_while(|level| index.is_multiple_of(1 << (BITS * level)))
            .count()
    }
}

impl Default for FrameList {
    fn default() -> Self {
        Self::new()
    }
}

fn read(memory: &impl PhysMemory, at: PhysAddr) -> Frame {
    Frame(memory.read(at) as u32)
}

fn write(memory: &impl PhysMemory, at: PhysAddr, frame: Frame) {
    memory.write(at, frame.0.into());
}

/// Takes `count` nodes, or none.
fn take_all(count: usize, supply: &mut impl Supply) -> Result<[Frame; LEVELS_MAX as usize], Error> {
    let mut nodes = [Frame(0); LEVELS_MAX as usize];
    for taken in 0..count {
        match supply.take() {
            Ok(node) => nodes[taken] = node,
            Err(error) => {
                nodes[..taken].iter().for_each(|&node| supply.give(node));
                return Err(error);
            }
        }
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::super::fake::{FakeMemory, FakeSupply};
    use super::*;
    use proptest::prelude::*;

    /// Pages are told from nodes by their numbers.
    fn page(index: u64) -> Frame {
        Frame(0x8000_0000 + index as u32)
    }

    /// Nodes that a list of this length needs at least.
    fn nodes(length: u64) -> u64 {
        let mut nodes = 0;
        let mut width = length;
        while width > 0 {
            width = width.div_ceil(512);
            nodes += width;
            if width == 1 {
                break;
            }
        }
        nodes
    }

    #[test]
    fn it_grows_over_three_levels_and_leaves_nothing_behind() {
        const LENGTH: u64 = 512 * 512 + 700;
        let memory = FakeMemory::new(600);
        let (mut supply, mut list) = (FakeSupply::new(&memory, 0, 600), FrameList::new());
        for index in 0..LENGTH {
            list.push(&memory, page(index), &mut supply).unwrap();
            if [1, 512, 513, 512 * 512, 512 * 512 + 1, LENGTH].contains(&(index + 1)) {
                assert_eq!(supply.taken.len() as u64, nodes(index + 1), "at {index}");
            }
        }
        assert!((0..LENGTH).all(|index| list.get(&memory, index) == Some(page(index))));
        assert_eq!(list.get(&memory, LENGTH), None);
        assert_eq!(list.get(&memory, u64::MAX), None);
        for index in (0..LENGTH).rev() {
            assert_eq!(list.pop(&memory, &mut supply), Some(page(index)));
        }
        assert_eq!(list.pop(&memory, &mut supply), None);
        assert!(list.is_empty() && supply.taken.is_empty());
        list.push(&memory, page(3), &mut supply).unwrap();
        assert_eq!(list.get(&memory, 0), Some(page(3)));
    }

    #[test]
    fn the_longest_list_is_full() {
        let memory = FakeMemory::new(1);
        let mut list = FrameList {
            root: Frame(0),
            levels: LEVELS_MAX,
            length: LENGTH_MAX,
        };
        let refused = list.push(&memory, page(0), &mut FakeSupply::new(&memory, 0, 1));
        assert_eq!(refused, Err(Error::LimitReached));
    }

    /// At each length where a level or a node begins, with each number of nodes left.
    #[test]
    fn a_push_that_runs_out_changes_nothing() {
        for length in [0, 512, 1024, 512 * 512, 512 * 512 + 512] {
            for left in 0..3 {
                let memory = FakeMemory::new(600);
                let (mut supply, mut list) = (FakeSupply::new(&memory, 0, 600), FrameList::new());
                (0..length).for_each(|index| list.push(&memory, page(index), &mut supply).unwrap());
                let (before, held) = (list, supply.taken.len());
                let needed = nodes(length + 1) as usize - held;
                supply.starve(left);
                let result = list.push(&memory, page(length), &mut supply);
                if left >= needed {
                    assert_eq!((result, supply.taken.len()), (Ok(()), held + needed));
                } else {
                    assert_eq!(result, Err(Error::QuotaExceeded));
                    assert_eq!((list, supply.taken.len()), (before, held));
                }
                while list.pop(&memory, &mut supply).is_some() {}
                assert!(supply.taken.is_empty());
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn it_is_a_stack_with_an_index(steps in prop::collection::vec((any::<bool>(), 1..800u32), 1..20), probe in any::<u64>()) {
            let memory = FakeMemory::new(64);
            let (mut supply, mut list, mut model) = (FakeSupply::new(&memory, 0, 64), FrameList::new(), Vec::new());
            for (grow, count) in steps {
                for _ in 0..count {
                    if grow {
                        let frame = page(model.len() as u64 * 7 + u64::from(count));
                        list.push(&memory, frame, &mut supply).unwrap();
                        model.push(frame);
                    } else {
                        prop_assert_eq!(list.pop(&memory, &mut supply), model.pop());
                    }
                }
                prop_assert_eq!(list.len(), model.len() as u64);
                for index in [0, 511, 512, 1023, 1024, probe % 10_000, list.len().saturating_sub(1), list.len()] {
                    prop_assert_eq!(list.get(&memory, index), model.get(index as usize).copied());
                }
                // The tree never gets lower while it holds a page: at most one node a level more than it needs.
                let needed = nodes(list.len()) as usize;
                prop_assert!((needed..needed + 3).contains(&supply.taken.len()));
                prop_assert!(!model.is_empty() || supply.taken.is_empty());
            }
        }
    }
}

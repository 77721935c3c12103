//! The walk against a model that knows nothing of tables: address spaces of every page size, with holes, pages of the kernel and of
//! devices between, and registers and frames that lead anywhere. What the walk finds, and how it says that it ended, is what the model does,
//! with and without a page at hand.

use super::fake::{ALL, Fake, PRESENT, STACK, USER};
use super::walks::{walk, walk_near};
use crate::base::addr::Frame;
use crate::profile::stack::UserStack;
use crate::profile::walk::End;
use ipc::abi::layout::USER_END;
use proptest::prelude::*;
use std::collections::BTreeMap;

const KIB4: u64 = 1 << 12;
const MIB2: u64 = 1 << 21;
const GIB1: u64 = 1 << 30;

/// Pages: where they are, how large, and the parts of 4 KiB of them that hold the stacks. Some lie side by side.
const PAGES: [(u64, u64, &[u64]); 6] = [
    (0x1f_d000, KIB4, &[0x1f_d000]),
    (0x1f_e000, KIB4, &[0x1f_e000]),
    (0x1f_f000, KIB4, &[0x1f_f000]),
    (0x20_0000, MIB2, &[0x20_0000, 0x3f_f000]),
    (0x4000_0000, GIB1, &[0x4000_0000, 0x7fff_f000]),
    (USER_END - KIB4, KIB4, &[USER_END - KIB4]),
];

/// What a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Mapped,
    Absent,
    Kernels,
    Device,
    /// Beyond the frames that have a number.
    Far,
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        12 => Just(Kind::Mapped),
        1 => Just(Kind::Absent),
        1 => Just(Kind::Kernels),
        1 => Just(Kind::Device),
        1 => Just(Kind::Far),
    ]
}

/// A space, as the tables have it and as the model does: its words by their addresses, where they can be read.
struct Space {
    fake: Fake,
    root: Frame,
    model: BTreeMap<u64, Option<u64>>,
}

impl Space {
    fn new(kinds: &[Kind], words: &BTreeMap<u64, u64>) -> Self {
        let mut fake = Fake::new();
        let root = fake.frame(1);
        let mut model = BTreeMap::new();
        for (index, (&(at, bytes, parts), kind)) in (1..).zip(PAGES.iter().zip(kinds)) {
            let far = if *kind == Kind::Far { 1 << 45 } else { 0 };
            let to = index * GIB1;
            let bits = match kind {
                Kind::Absent => USER,
                Kind::Kernels => PRESENT,
                _ => ALL,
            };
            fake.map(root, at, bytes, to | far, bits);
            for &part in parts {
                let there = to + (part - at);
                if *kind != Kind::Device {
                    assert_eq!(fake.frame((there >> 12) as u32).0, (there >> 12) as u32);
                }
                for (&place, &word) in words.range(part..part + KIB4) {
                    let is_mapped = *kind == Kind::Mapped;
                    if is_mapped {
                        fake.set(there + (place - part), word);
                    }
                    model.insert(place, is_mapped.then_some(word));
                }
                if *kind == Kind::Mapped {
                    for place in (part..part + KIB4).step_by(8) {
                        model.entry(place).or_insert(Some(0));
                    }
                }
            }
        }
        Self { fake, root, model }
    }

    fn read(&self, at: u64) -> Option<u64> {
        self.model.get(&at).copied().flatten()
    }

    /// The chain by its definition (docs/profiler.md, "The walk").
    fn truth(&self, rsp: u64, rbp: u64, limit: usize) -> (Vec<u64>, End) {
        let (mut found, mut least, mut at) = (Vec::new(), rsp, rbp);
        loop {
            if at == 0 {
                return (found, End::Complete);
            }
            if !at.is_multiple_of(8) || at < least || at > USER_END - 16 {
                return (found, End::Cut);
            }
            let (Some(outer), Some(address)) = (self.read(at), self.read(at + 8)) else {
                return (found, End::Unmapped);
            };
            match address {
                0 => return (found, End::Complete),
                USER_END.. => return (found, End::Cut),
                _ if found.len() == limit => return (found, End::Truncated),
                _ => found.push(address),
            }
            (least, at) = (at + 16, outer);
        }
    }
}

/// A place for a frame: any word of any part, the last of which reaches into the next page.
fn place() -> impl Strategy<Value = u64> {
    let parts: Vec<u64> = PAGES.iter().flat_map(|page| page.2.to_vec()).collect();
    let word = prop_oneof![8 => 0u64..512, 1 => Just(511u64)];
    (prop::sample::select(parts), word).prop_map(|(part, word)| part + word * 8)
}

/// What takes the place of a frame pointer or a return address.
fn odd() -> impl Strategy<Value = u64> {
    prop_oneof![
        2 => Just(0),
        2 => place(),
        1 => place().prop_map(|at| at | 4),
        1 => any::<u64>(),
        1 => Just(STACK.start),
        1 => prop::sample::select(vec![USER_END, USER_END - 8, 1 << 47, u64::MAX, 1, 7]),
    ]
}

/// What a word of a frame is turned into.
#[derive(Clone, Copy, Debug)]
enum Change {
    To(u64),
    /// So many bytes from the frame.
    Near(i64),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        odd().prop_map(Change::To),
        prop::sample::select(vec![-16, -8, 0, 8, 12, 16, 24]).prop_map(Change::Near),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4 * ProptestConfig::default().cases, ..ProptestConfig::default() })]

    #[test]
    fn the_walk_finds_what_is_there(
        kinds in prop::collection::vec(kind(), PAGES.len()),
        mut at in prop::collection::btree_set(place(), 1..30),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>(), change()), 0..3),
        below in prop_oneof![4 => Just(0u64), 1 => any::<u64>()],
        [stack, first] in [(); 2].map(|()| prop_oneof![8 => Just(None), 1 => odd().prop_map(Some)]),
        limit in 0usize..40,
    ) {
        // No two overlap.
        let mut end = 0;
        at.retain(|&frame| {
            let fits = frame >= end;
            end = if fits { frame + 16 } else { end };
            fits
        });
        let at: Vec<u64> = at.into_iter().collect();
        let mut words = BTreeMap::new();
        for (index, &frame) in at.iter().enumerate() {
            words.insert(frame, at.get(index + 1).copied().unwrap_or(0));
            words.insert(frame + 8, 0x40_0000 + index as u64 * 16);
        }
        for (which, address, value) in changes {
            let frame = at[which.index(at.len())];
            let value = match value {
                Change::To(value) => value,
                Change::Near(bytes) => frame.wrapping_add_signed(bytes),
            };
            words.insert(frame + if address { 8 } else { 0 }, value);
        }
        let space = Space::new(&kinds, &words);
        let rsp = stack.unwrap_or(at[0].saturating_sub(below));
        let rbp = first.unwrap_or(at[0]);
        let found = walk(&mut UserStack::new(&space.fake, space.root), rsp, rbp, limit);
        prop_assert_eq!(&found, &space.truth(rsp, rbp, limit));
        if let Some(near) = walk_near(&space.fake, space.root, rsp, rbp, limit) {
            prop_assert_eq!(near, found, "with the page of RSP at hand");
        }
    }
}

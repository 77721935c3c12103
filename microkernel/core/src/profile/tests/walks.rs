//! The frame-pointer walk: the truth on stacks that are well formed, a bounded prefix of something on all others.

use super::fake::{Fake, STACK};
use crate::base::addr::Frame;
use crate::base::cpu::CpuId;
use crate::profile::Machine;
use crate::profile::layout::{KernelMap, Span};
use crate::profile::stack::{KernelStack, UserStack};
use crate::profile::translate::Window;
use crate::profile::walk::{End, Stack, Walk, follow, follow_on};
use ipc::abi::layout::USER_END;
use proptest::prelude::*;
use sample_ring::{AtomicU64, Ordering};

const TEXT: Span = Span {
    start: 0xffff_ffff_8000_0000,
    end: 0xffff_ffff_8000_1000,
};
const STUB: Span = Span {
    start: 0xffff_ffff_8000_0800,
    end: 0xffff_ffff_8000_0840,
};
const MAP: KernelMap = KernelMap {
    text: TEXT,
    stubs: &[STUB],
    syscall: Span::EMPTY,
    syscall_switched: 0,
    interrupts: Span::EMPTY,
};

pub(super) fn walk<S: Stack>(stack: &mut S, rsp: u64, rbp: u64, limit: usize) -> (Vec<u64>, End) {
    let places: Vec<_> = (0..limit).map(|_| AtomicU64::new(0)).collect();
    let (taken, end) = follow(stack, rsp, rbp, &places);
    let found = places.iter().take(taken);
    (
        found.map(|place| place.load(Ordering::Relaxed)).collect(),
        end,
    )
}

/// The same walk with the page that RSP points into at hand, as a sample takes it; `None` if there is none.
pub(super) fn walk_near(
    fake: &Fake,
    root: Frame,
    rsp: u64,
    rbp: u64,
    limit: usize,
) -> Option<(Vec<u64>, End)> {
    let places: Vec<_> = (0..limit).map(|_| AtomicU64::new(0)).collect();
    let page = Window::of(fake, root, rsp)?;
    let (taken, end) = match page.follow(Walk::from(rsp, rbp), &places) {
        Ok(taken) => (taken, End::Complete),
        Err(walk) => follow_on(&mut UserStack::at(fake, root, page), walk, &places),
    };
    let found = places
        .iter()
        .take(taken)
        .map(|place| place.load(Ordering::Relaxed));
    Some((found.collect(), end))
}

/// A walk of a user stack, which is the same with and without a page at hand.
fn user_walk(fake: &Fake, root: Frame, rsp: u64, rbp: u64, limit: usize) -> (Vec<u64>, End) {
    let far = walk(&mut UserStack::new(fake, root), rsp, rbp, limit);
    let near = walk_near(fake, root, rsp, rbp, limit);
    assert_eq!(near.as_ref(), Some(&far), "near, and far");
    far
}

/// A user stack with a chain of frames at these addresses, which return to 0x40_0000, 0x40_0010 and so on.
fn user(at: &[u64]) -> (Fake, Frame, Vec<u64>) {
    let mut fake = Fake::new();
    let root = fake.frame(1);
    let to: Vec<u64> = (0..at.len() as u64).map(|n| 0x40_0000 + 16 * n).collect();
    fake.frames(root, at, &to);
    (fake, root, to)
}

#[test]
fn a_chain_ends_at_a_frame_pointer_or_a_return_address_of_zero() {
    let (mut fake, root, to) = user(&[0x7000, 0x7040]);
    let go = |fake: &Fake| user_walk(fake, root, 0x7000, 0x7000, 15);
    assert_eq!(go(&fake), (to.clone(), End::Complete));
    fake.poke(root, 0x7048, 0);
    assert_eq!(go(&fake), (to[..1].to_vec(), End::Complete));
    let none = user_walk(&fake, root, 0x7000, 0, 15);
    assert_eq!(none, (vec![], End::Complete));
}

#[test]
fn a_limit_is_told_from_an_end() {
    let (mut fake, root, to) = user(&[0x7000, 0x7040, 0x7080]);
    let go = |fake: &Fake, limit| user_walk(fake, root, 0x7000, 0x7000, limit);
    assert_eq!(go(&fake, 0), (vec![], End::Truncated));
    assert_eq!(go(&fake, 2), (to[..2].to_vec(), End::Truncated));
    assert_eq!(go(&fake, 3), (to.clone(), End::Complete));
    // As `main` leaves it: a frame that nobody called.
    fake.poke(root, 0x7088, 0);
    assert_eq!(go(&fake, 1), (to[..1].to_vec(), End::Truncated));
    assert_eq!(go(&fake, 2), (to[..2].to_vec(), End::Complete));
}

#[test]
fn frame_pointers_that_cannot_be_are_cut() {
    for bad in [
        0x7004,
        0x6ff8,
        0x7000,
        0x7008,
        0xffff_8000_0001_0000,
        1 << 47,
        USER_END - 8,
        u64::MAX - 7,
    ] {
        // As the first frame pointer, and as one that the first frame saved.
        let (mut fake, root, to) = user(&[0x7000, 0x7040]);
        if ![0x7000, 0x7008].contains(&bad) {
            let first = user_walk(&fake, root, 0x7000, bad, 15);
            assert_eq!(first, (vec![], End::Cut), "{bad:#x}");
        }
        fake.poke(root, 0x7000, bad);
        let second = user_walk(&fake, root, 0x7000, 0x7000, 15);
        assert_eq!(second, (to[..1].to_vec(), End::Cut), "{bad:#x}");
    }
}

#[test]
fn return_addresses_that_cannot_be_are_cut() {
    for bad in [USER_END, 1 << 47, 0x4d41 << 48, TEXT.start + 5] {
        let (mut fake, root, to) = user(&[0x7000, 0x7040]);
        fake.poke(root, 0x7048, bad);
        let found = user_walk(&fake, root, 0x7000, 0x7000, 15);
        assert_eq!(found, (to[..1].to_vec(), End::Cut), "{bad:#x}");
    }
}

#[test]
fn a_frame_across_two_pages_needs_both() {
    let (fake, root, to) = user(&[0x7000, 0x7ff8]);
    let found = user_walk(&fake, root, 0x7000, 0x7000, 15);
    assert_eq!(found, (to.clone(), End::Complete));
    let mut fake = Fake::new();
    let root = fake.frame(1);
    fake.poke(root, 0x7000, 0x7ff8);
    fake.poke(root, 0x7008, to[0]);
    let found = user_walk(&fake, root, 0x7000, 0x7000, 15);
    assert_eq!(found, (to[..1].to_vec(), End::Unmapped));
}

/// A walk of the kernel stack from RSP at `rsp` and RBP at `rbp`.
fn kernel(fake: &Fake, rsp: u64, rbp: u64) -> Option<(Vec<u64>, End)> {
    let words = fake.kernel_stack(CpuId(0), rsp)?;
    let mut stack = KernelStack { words, map: &MAP };
    Some(walk(&mut stack, rsp, rbp, 15))
}

#[test]
fn a_kernel_chain_ends_at_the_stub_and_never_follows_the_programs_frame_pointer() {
    let mut fake = Fake::new();
    let at = [STACK.start + 0x100, STACK.start + 0x140];
    // The call is the stub's last instruction: the address after it is no longer the stub's.
    let to = [TEXT.start + 5, STUB.end];
    // A program may have pointed its RBP at this very stack.
    fake.kernel_frames(&at, &to, STACK.start + 0x180);
    fake.kernel_frames(&[STACK.start + 0x180], &[TEXT.start + 7], 0);
    assert_eq!(
        kernel(&fake, at[0], at[0]),
        Some((to.to_vec(), End::Complete))
    );
}

#[test]
fn a_kernel_walk_stays_on_its_stack_and_in_text() {
    let mut fake = Fake::new();
    let at = STACK.start + 0x100;
    for (address, outer, end) in [
        (TEXT.start, 0, End::Cut),
        (TEXT.end, 0, End::Complete),
        (TEXT.end + 1, 0, End::Cut),
        (0x40_0000, 0, End::Cut),
        (TEXT.start + 5, STACK.end - 8, End::Cut),
        (TEXT.start + 5, STACK.end, End::Cut),
        (TEXT.start + 5, 0x7000, End::Cut),
        (TEXT.start + 5, at, End::Cut),
        (TEXT.start + 5, at + 12, End::Cut),
    ] {
        fake.kernel_frames(&[at], &[address], outer);
        let (found, how) = kernel(&fake, at, at).unwrap();
        let believed = address > TEXT.start && address <= TEXT.end;
        assert_eq!(how, end, "{address:#x} {outer:#x}");
        assert_eq!(found, if believed { vec![address] } else { vec![] });
    }
    assert_eq!(kernel(&fake, STACK.start - 8, at), None);
    assert_eq!(kernel(&fake, STACK.end, 0), Some((vec![], End::Complete)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// On a well-formed stack the walk is a prefix of the truth, and all of it if it fits; a page costs its translation once.
    #[test]
    fn a_well_formed_stack_is_told_truly(
        gaps in prop::collection::vec(2u64..700, 1..40),
        limit in 0usize..20,
        base in (0x10_0000u64 / 8..(USER_END - 0x10_0000) / 8).prop_map(|words| words * 8),
    ) {
        let at: Vec<u64> = gaps.iter().scan(base, |next, gap| {
            *next += gap * 8;
            Some(*next)
        }).collect();
        let (fake, root, to) = user(&at);
        let (found, end) = walk(&mut UserStack::new(&fake, root), base, at[0], limit);
        let reads = fake.count();
        let kept = to.len().min(limit);
        prop_assert_eq!(&found, &to[..kept]);
        prop_assert_eq!(end, if kept == to.len() { End::Complete } else { End::Truncated });
        prop_assert_eq!(walk_near(&fake, root, at[0], at[0], limit), Some((found, end)));
        // One beyond the limit is looked at.
        let seen = to.len().min(limit + 1);
        let pages = (at[seen - 1] + 16 - at[0]) / 4096 + 2;
        prop_assert!(reads <= 2 * seen as u64 + 8 * pages);
    }

    /// Holes, cycles, kernel and non-canonical addresses, and memory that changes while it is read: what is given is
    /// bounded, and every address in it could be one.
    #[test]
    fn a_hostile_stack_is_survived(
        words in prop::collection::vec((0u64..512, prop_oneof![
            6 => (0u64..600).prop_map(|word| 0x7000 + word * 8),
            1 => (0u64..4096).prop_map(|byte| 0x7000 + byte),
            1 => any::<u64>(),
            1 => Just(STACK.start),
        ]), 0..300),
        rsp in 0x6f00u64..0x8100,
        rbp in prop_oneof![4 => (0u64..600).prop_map(|word| 0x7000 + word * 8), 1 => any::<u64>()],
        limit in 0usize..60,
        spoilt_after in prop::option::of(0u64..100),
    ) {
        let mut fake = Fake::new();
        let root = fake.frame(1);
        fake.poke(root, 0x7000, 1);
        for &(word, value) in &words {
            fake.poke(root, 0x7000 + word * 8, value);
            fake.kernel.insert(STACK.start + word * 8, match value % 3 {
                0 => value,
                1 => STACK.start + value % 512 * 8,
                _ => TEXT.start + value % 5000,
            });
        }
        if let Some(near) = walk_near(&fake, root, rsp, rbp, limit) {
            let far = walk(&mut UserStack::new(&fake, root), rsp, rbp, limit);
            prop_assert_eq!(near, far, "what is at hand makes no difference");
        }
        fake.reads = std::sync::atomic::AtomicU64::default();
        fake.spoilt_after = spoilt_after;
        for near in [false, true] {
            let before = fake.count();
            let (found, _) = if near {
                walk_near(&fake, root, rsp, rbp, limit).unwrap_or((vec![], End::Unmapped))
            } else {
                walk(&mut UserStack::new(&fake, root), rsp, rbp, limit)
            };
            prop_assert!(found.len() <= limit && found.iter().all(|&address| address != 0 && address < USER_END));
            prop_assert!(fake.count() - before <= 18 * (limit as u64 + 2));
        }
        let top = STACK.start + rsp % 4096;
        if let Some((found, _)) = kernel(&fake, top, top + rbp % 64 * 8) {
            prop_assert!(found.len() <= 15 && found.iter().all(|&address| TEXT.contains(address - 1)));
        }
    }
}

//! The frame allocator against a model that knows of each frame where it should be.

use super::*;
use crate::base::cpu::CpuId;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

fn frames(count: u32) -> Frames {
    let words = Box::leak(vec![0; count as usize].into_boxed_slice());
    let bits = Box::leak(vec![0; Frames::bits_needed(count)].into_boxed_slice());
    Frames::new(words, bits)
}

fn cpu() -> Cpu {
    Cpu::new(CpuId(0))
}

#[test]
fn only_what_was_added_is_given_lowest_first() {
    let (cpu, frames) = (cpu(), frames(100));
    assert_eq!(frames.allocate(&cpu), None);
    frames.add(&cpu, Frame(10), 3);
    frames.add(&cpu, Frame(12), 2);
    frames.add(&cpu, Frame(99), u32::MAX);
    frames.add(&cpu, Frame(u32::MAX), 7);
    let given: Vec<u32> =
        std::iter::from_fn(|| frames.allocate(&cpu).map(|frame| frame.0)).collect();
    assert_eq!(given, [10, 11, 12, 13, 99]);
    let usage = Usage {
        total: 5,
        free: 0,
        waiting: 0,
    };
    assert_eq!(frames.usage(&cpu), usage);
    // What is in use is not given again because a memory map names it twice.
    frames.add(&cpu, Frame(10), 3);
    assert_eq!((frames.usage(&cpu), frames.allocate(&cpu)), (usage, None));
}

#[test]
fn a_run_is_found_in_bounded_steps_or_not_at_all() {
    let (cpu, frames) = (cpu(), frames(5000));
    frames.add(&cpu, Frame(0), 5000);
    let all: Vec<Frame> = std::iter::from_fn(|| frames.allocate(&cpu)).collect();
    // Every second frame is free, then 8 in a row at the end.
    all.iter()
        .filter(|frame| frame.0 % 2 == 0 || frame.0 >= 4992)
        .for_each(|&frame| frames.free(&cpu, frame));
    let (mut search, mut steps) = (Search::default(), 0);
    let run = loop {
        match frames.allocate_run(&cpu, 8, &mut search) {
            Run::Again => steps += 1,
            run => break run,
        }
    };
    assert_eq!(run, Run::Found(Frame(4992)));
    assert!(
        steps >= 4992 / 2 / SEARCH_STEP - 1,
        "a step looked at more than its share"
    );
    let mut search = Search::default();
    while frames.allocate_run(&cpu, 2, &mut search) == Run::Again {}
    assert_eq!(frames.allocate_run(&cpu, 2, &mut search), Run::None);
    for wrong in [0, RUN_MAX + 1, u32::MAX] {
        assert_eq!(
            frames.allocate_run(&cpu, wrong, &mut Search::default()),
            Run::None
        );
    }
}

#[test]
#[should_panic(expected = "not in use")]
fn freeing_twice_is_found() {
    let (cpu, frames) = (cpu(), frames(4));
    frames.add(&cpu, Frame(0), 4);
    let frame = frames.allocate(&cpu).unwrap();
    frames.free(&cpu, frame);
    frames.free(&cpu, frame);
}

#[test]
#[should_panic(expected = "not in use")]
fn freeing_what_waits_is_found() {
    let (cpu, frames, grace) = (cpu(), frames(4), Grace::new());
    frames.add(&cpu, Frame(0), 4);
    let frame = frames.allocate(&cpu).unwrap();
    frames.retire(&cpu, frame, grace.retire_epoch());
    frames.retire(&cpu, frame, grace.retire_epoch());
}

#[test]
#[should_panic(expected = "not in use")]
fn freeing_what_was_never_given_is_found() {
    frames(4).free(&cpu(), Frame(4));
}

#[test]
fn who_only_tries_reclaims_if_nobody_else_is_there() {
    let (cpu, frames, grace) = (cpu(), frames(4), Grace::new());
    frames.add(&cpu, Frame(0), 4);
    let frame = frames.allocate(&cpu).unwrap();
    frames.retire(&cpu, frame, grace.retire_epoch());
    grace.advance(grace.retire_epoch());
    let other = Cpu::new(CpuId(1));
    {
        let _held = frames.hold(&other);
        frames.try_reclaim(&cpu, &grace, 4);
    }
    assert_eq!(frames.usage(&cpu).waiting, 1);
    frames.try_reclaim(&cpu, &grace, 4);
    assert_eq!(frames.usage(&cpu).waiting, 0);
}

/// A stream of retirements, with an epoch each, must not keep an old frame waiting for ever.
#[test]
fn a_stream_of_retirements_does_not_starve() {
    let (cpu, frames, grace) = (cpu(), frames(64), Grace::new());
    grace.join(&cpu);
    frames.add(&cpu, Frame(0), 64);
    for _ in 0..1000 {
        let frame = frames
            .allocate(&cpu)
            .expect("frames come back as fast as they are retired");
        frames.retire(&cpu, frame, grace.retire_epoch());
        frames.reclaim(&cpu, &grace, 4);
        if let Some(epoch) = grace.pending(&cpu) {
            grace.pass(&cpu, epoch);
        }
    }
    assert!(frames.usage(&cpu).waiting <= 3);
}

/// Real threads as CPUs: frames are published, looked at by all, replaced and retired. A frame that is given again while
/// somebody looks at it would change its mark under their eyes.
#[test]
fn nobody_sees_a_frame_given_again() {
    const COUNT: u32 = 24;
    const ROUNDS: u32 = 3000;
    const NOTHING: u32 = u32::MAX;
    let (frames, grace) = (frames(COUNT), Grace::new());
    let marks: Vec<AtomicU32> = (0..COUNT).map(|_| AtomicU32::new(0)).collect();
    let published: Vec<AtomicU32> = (0..3).map(|_| AtomicU32::new(NOTHING)).collect();
    let (changed, finished) = (AtomicU32::new(0), AtomicU32::new(0));
    let end = Instant::now() + Duration::from_secs(120);
    frames.add(&cpu(), Frame(0), COUNT);
    std::thread::scope(|scope| {
        for id in 0..3u8 {
            let (frames, grace, marks, published) = (&frames, &grace, &marks, &published);
            let (changed, finished) = (&changed, &finished);
            scope.spawn(move || {
                let cpu = Cpu::new(CpuId(id));
                grace.join(&cpu);
                for round in 0..ROUNDS {
                    if let Some(frame) = frames.allocate(&cpu) {
                        marks[frame.0 as usize].fetch_add(1, Ordering::Relaxed);
                        let old = published[round as usize % 3].swap(frame.0, Ordering::AcqRel);
                        if old != NOTHING {
                            frames.retire(&cpu, Frame(old), grace.retire_epoch());
                        }
                    }
                    let seen = published[(round as usize + 1) % 3].load(Ordering::Acquire);
                    if seen != NOTHING {
                        let mark = || marks[seen as usize].load(Ordering::Relaxed);
                        let first = mark();
                        for _ in 0..3 {
                            std::thread::yield_now();
                            changed.fetch_add(u32::from(mark() != first), Ordering::Relaxed);
                        }
                    }
                    // As a tick does.
                    frames.try_reclaim(&cpu, grace, 2);
                    if let Some(epoch) = grace.pending(&cpu) {
                        grace.pass(&cpu, epoch);
                    }
                }
                // All go on passing until nothing waits: a CPU that stops would stop the others' frames.
                finished.fetch_add(1, Ordering::SeqCst);
                while finished.load(Ordering::SeqCst) < 3 || frames.usage(&cpu).waiting > 0 {
                    assert!(Instant::now() < end, "frames wait for ever");
                    frames.reclaim(&cpu, grace, COUNT);
                    if let Some(epoch) = grace.pending(&cpu) {
                        grace.pass(&cpu, epoch);
                    }
                    std::thread::yield_now();
                }
            });
        }
    });
    assert_eq!(
        changed.into_inner(),
        0,
        "a frame was given again under the eyes of a CPU"
    );
    let usage = frames.usage(&cpu());
    assert_eq!((usage.free + 3, usage.waiting), (COUNT, 0));
}

#[derive(Clone, Debug)]
enum Step {
    Allocate,
    Run(u32),
    Free(usize),
    Retire(usize),
    Quiescent(u8),
    /// Somebody else, who unmaps, ends the epoch.
    Advance,
    Reclaim(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Allocate),
        1 => (1..20u32).prop_map(Step::Run),
        2 => any::<usize>().prop_map(Step::Free),
        5 => any::<usize>().prop_map(Step::Retire),
        4 => (0..3u8).prop_map(Step::Quiescent),
        2 => Just(Step::Advance),
        3 => (0..6u32).prop_map(Step::Reclaim),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// No frame is given twice, none is lost, and none is given again before every CPU was quiescent after it was retired.
    #[test]
    fn each_frame_is_in_one_place(steps in prop::collection::vec(step(), 0..200)) {
        const COUNT: u32 = 150;
        let (frames, grace) = (frames(COUNT), Grace::new());
        let cpus: Vec<Cpu> = (0..3).map(|id| Cpu::new(CpuId(id))).collect();
        cpus.iter().for_each(|cpu| grace.join(cpu));
        let cpu = &cpus[0];
        frames.add(cpu, Frame(0), COUNT);
        let mut taken: Vec<Frame> = Vec::new();
        // Frame to: its epoch, and bit per CPU that may still reach it.
        let mut waiting: BTreeMap<Frame, (Epoch, u8)> = BTreeMap::new();
        let give = |given: Frame, taken: &mut Vec<Frame>, waiting: &mut BTreeMap<Frame, (Epoch, u8)>| {
            prop_assert!(!taken.contains(&given), "{:?} given twice", given);
            if let Some((_, reach)) = waiting.remove(&given) {
                prop_assert_eq!(reach, 0, "{:?} given while in reach", given);
            }
            taken.push(given);
            Ok(())
        };
        for step in steps {
            match step {
                Step::Allocate => match frames.allocate(cpu) {
                    Some(given) => give(given, &mut taken, &mut waiting)?,
                    None => prop_assert_eq!(frames.usage(cpu).free, 0),
                },
                Step::Run(count) => {
                    let mut search = Search::default();
                    if let Run::Found(first) = frames.allocate_run(cpu, count, &mut search) {
                        for number in first.0..first.0 + count {
                            give(Frame(number), &mut taken, &mut waiting)?;
                        }
                    }
                }
                Step::Free(pick) if !taken.is_empty() => frames.free(cpu, taken.swap_remove(pick % taken.len())),
                Step::Retire(pick) if !taken.is_empty() => {
                    let (frame, epoch) = (taken.swap_remove(pick % taken.len()), grace.retire_epoch());
                    frames.retire(cpu, frame, epoch);
                    waiting.insert(frame, (epoch, 0b111));
                }
                Step::Free(_) | Step::Retire(_) => {}
                Step::Quiescent(id) => if let Some(epoch) = grace.pending(&cpus[id as usize]) {
                    grace.pass(&cpus[id as usize], epoch);
                    waiting.values_mut().for_each(|(_, reach)| *reach &= !(1 << id));
                },
                Step::Advance => grace.advance(grace.retire_epoch()),
                Step::Reclaim(budget) => {
                    let before = frames.usage(cpu);
                    let moved = frames.reclaim(cpu, &grace, budget);
                    prop_assert!(moved <= budget);
                    prop_assert_eq!(frames.usage(cpu).free, before.free + moved);
                }
            }
            let usage = frames.usage(cpu);
            prop_assert_eq!(usage.total, COUNT);
            prop_assert_eq!(usage.free + usage.waiting + taken.len() as u32, COUNT, "a frame is lost");
            // What is still in reach is still waiting.
            prop_assert!(usage.waiting as usize >= waiting.values().filter(|(_, reach)| *reach != 0).count());
            for &(epoch, reach) in waiting.values() {
                prop_assert!(reach == 0 || !frames.reclaimed(cpu, epoch));
            }
        }
        // Two grace periods bring everything back.
        for _ in 0..2 {
            frames.reclaim(cpu, &grace, COUNT);
            for cpu in &cpus {
                if let Some(epoch) = grace.pending(cpu) {
                    grace.pass(cpu, epoch);
                }
            }
        }
        frames.reclaim(cpu, &grace, COUNT);
        prop_assert_eq!(frames.usage(cpu).waiting, 0);
        prop_assert!(frames.reclaimed(cpu, grace.retire_epoch()));
    }
}

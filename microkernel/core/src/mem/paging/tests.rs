//! Page tables against a map, on memory that spoils every frame that is given back.

use super::super::fake::{FIRST, FakeMemory, FakeSupply};
use super::*;
use ipc::abi::layout::{INFO_PAGE, PAGE_SIZE, PROGRAM_BASE, USER_START};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Frame of the root, the first; tables follow.
const ROOT: Frame = Frame(FIRST);
const TABLES: u32 = 60;

fn kernel_entry(index: usize) -> u64 {
    0x7000_0000_0000_0000 | (index as u64) << 12 | 3
}

fn space(memory: &FakeMemory) -> (Tables, FakeSupply<'_>) {
    (
        Tables::new(memory, ROOT, kernel_entry),
        FakeSupply::new(memory, 1, TABLES),
    )
}

/// A space that has one page, which may be written, where programs begin.
fn space_with_a_page(memory: &FakeMemory) -> (Tables, FakeSupply<'_>) {
    let (tables, mut supply) = space(memory);
    let (at, frame) = (page(USER_START), Frame(1));
    tables
        .map(memory, at, frame, Access::Write, Kind::Ram, &mut supply)
        .unwrap();
    (tables, supply)
}

fn page(address: u64) -> Page {
    Page::new(UserAddr(address)).unwrap()
}

/// The kernel's half is what it was, and every table that is reached is one that was taken, once.
fn check_tables(memory: &FakeMemory, supply: &FakeSupply<'_>) {
    let mut reached = Vec::new();
    let mut todo = vec![(ROOT, 4, USER_ENTRIES)];
    while let Some((table, level, entries)) = todo.pop() {
        for index in 0..entries {
            let entry = Entry(memory.read(table.start().offset(index * 8)));
            if let Some(next) = entry.next_table().filter(|_| level > 1) {
                reached.push(next);
                todo.push((next, level - 1, ENTRIES));
            }
        }
    }
    reached.sort();
    assert!(
        reached.iter().eq(&supply.taken),
        "tables reached {reached:?}, taken {:?}",
        supply.taken
    );
    for index in 256..512 {
        assert_eq!(
            memory.read(ROOT.start().offset(index * 8)),
            kernel_entry(index as usize)
        );
    }
}

fn teardown(memory: &FakeMemory, tables: Tables, supply: &mut FakeSupply<'_>, budget: u32) -> u32 {
    let (mut progress, mut steps) = (Teardown::default(), 1);
    while !tables.teardown(memory, &mut progress, budget, supply) {
        steps += 1;
        check_tables(memory, supply);
    }
    assert!(
        tables.teardown(memory, &mut progress, budget, supply),
        "done stays done"
    );
    steps
}

#[test]
fn a_page_is_where_it_was_mapped() {
    let memory = FakeMemory::new(1 + TABLES as usize);
    let (tables, mut supply) = space(&memory);
    let at = page(PROGRAM_BASE);
    assert_eq!(
        tables.map(
            &memory,
            at,
            Frame(7),
            Access::Execute,
            Kind::Ram,
            &mut supply
        ),
        Ok(())
    );
    assert_eq!(
        tables.map(&memory, at, Frame(8), Access::Read, Kind::Ram, &mut supply),
        Err(Error::Overlap)
    );
    let found = Translation {
        at: PhysAddr(0x7123),
        writable: false,
        executable: true,
        kind: Kind::Ram,
        page_bytes: PAGE_SIZE,
    };
    assert_eq!(
        tables.translate(&memory, UserAddr(PROGRAM_BASE + 0x123)),
        Some(found)
    );
    for nothing in [
        0,
        PROGRAM_BASE - 1,
        PROGRAM_BASE | 1 << 48,
        PROGRAM_BASE + PAGE_SIZE,
        HALF_END,
        1 << 63,
        u64::MAX,
        0xffff_8000_0000_0000,
    ] {
        assert_eq!(tables.translate(&memory, UserAddr(nothing)), None);
    }
    assert_eq!(tables.unmap(&memory, at), Some(Frame(7)));
    assert_eq!(tables.unmap(&memory, at), None);
    assert_eq!(
        tables.protect(&memory, at, Access::Read),
        Err(Error::NotMapped)
    );
    check_tables(&memory, &supply);
    assert_eq!(supply.taken.len(), 3);
    tables.prune(&memory, at, &mut supply);
    assert!(supply.taken.is_empty());
    check_tables(&memory, &supply);
}

#[test]
fn devices_are_uncached_and_never_executable() {
    let memory = FakeMemory::new(1 + TABLES as usize);
    let (tables, mut supply) = space(&memory);
    let (at, frame) = (page(USER_START), Frame(0xfee00));
    let refused = tables.map(
        &memory,
        at,
        frame,
        Access::Execute,
        Kind::Device,
        &mut supply,
    );
    assert_eq!(refused, Err(Error::BadArgument));
    tables
        .map(&memory, at, frame, Access::Write, Kind::Device, &mut supply)
        .unwrap();
    assert_eq!(
        tables.protect(&memory, at, Access::Execute),
        Err(Error::BadArgument)
    );
    tables.protect(&memory, at, Access::Read).unwrap();
    let found = tables.translate(&memory, UserAddr(USER_START)).unwrap();
    assert_eq!(
        (found.kind, found.writable, found.executable),
        (Kind::Device, false, false)
    );
}

/// Wherever the supply runs dry, the space is whole: the next try goes on, and the teardown finds every table.
#[test]
fn running_out_of_tables_midway_leaves_a_whole_space() {
    for left in 0..=3 {
        let memory = FakeMemory::new(1 + TABLES as usize);
        let (tables, mut supply) = space(&memory);
        supply.starve(left);
        let result = tables.map(
            &memory,
            page(INFO_PAGE),
            Frame(7),
            Access::Read,
            Kind::Ram,
            &mut supply,
        );
        assert_eq!(result.is_ok(), left == 3, "{result:?}");
        assert_eq!(
            tables.translate(&memory, UserAddr(INFO_PAGE)).is_some(),
            left == 3
        );
        check_tables(&memory, &supply);
        // What was made can be used: a page beside it needs what the first one lacked.
        assert_eq!(tables.unmap(&memory, page(INFO_PAGE)).is_some(), left == 3);
        if left % 2 == 0 {
            tables.prune(&memory, page(INFO_PAGE), &mut supply);
        } else {
            teardown(&memory, tables, &mut supply, 1000);
        }
        assert!(supply.taken.is_empty(), "{left}: {:?}", supply.taken);
        check_tables(&memory, &supply);
    }
}

#[test]
fn large_pages_are_read_and_no_table_is_seen_in_them() {
    let memory = FakeMemory::new(1 + TABLES as usize);
    let (tables, mut supply) = space_with_a_page(&memory);
    let third = Entry(memory.read(ROOT.start())).next_table().unwrap();
    let second = Entry(memory.read(third.start())).next_table().unwrap();
    // 1 GiB at 1 GiB, with a PAT bit; 2 MiB at 2 MiB, not for users at first.
    memory.write(third.start().offset(8), 0x8000_0001_4000_1087);
    memory.write(second.start().offset(8), 0x0060_0083);
    let found = tables.translate(&memory, UserAddr(0x4abc_def0)).unwrap();
    assert_eq!(
        (found.at, found.writable, found.executable),
        (PhysAddr(0x1_4abc_def0), true, false)
    );
    assert_eq!(tables.translate(&memory, UserAddr(0x20_0000)), None);
    memory.write(second.start().offset(8), 0x0060_0085);
    let found = tables.translate(&memory, UserAddr(0x3f_ffff)).unwrap();
    assert_eq!(
        (found.at, found.writable, found.executable),
        (PhysAddr(0x7f_ffff), false, true)
    );
    for address in [0x20_0000, 0x4000_0000] {
        let refused = tables.map(
            &memory,
            page(address),
            Frame(1),
            Access::Read,
            Kind::Ram,
            &mut supply,
        );
        assert_eq!(refused, Err(Error::Overlap));
        assert_eq!(tables.unmap(&memory, page(address)), None);
    }
    teardown(&memory, tables, &mut supply, 7);
    assert!(supply.taken.is_empty());
}

/// A level that withholds a right withholds it from all below.
#[test]
fn the_least_access_on_the_way_counts() {
    let memory = FakeMemory::new(1 + TABLES as usize);
    let (tables, _) = space_with_a_page(&memory);
    let root_entry = memory.read(ROOT.start());
    let seen = |entry| {
        memory.write(ROOT.start(), entry);
        tables.translate(&memory, UserAddr(USER_START))
    };
    assert!(seen(root_entry).unwrap().writable);
    assert!(!seen(root_entry & !2).unwrap().writable);
    tables
        .protect(&memory, page(USER_START), Access::Execute)
        .unwrap();
    assert!(seen(root_entry).unwrap().executable);
    assert!(!seen(root_entry | 1 << 63).unwrap().executable);
    assert_eq!(seen(root_entry & !4), None);
    assert_eq!(seen(root_entry & !1), None);
}

#[test]
fn a_fault_is_stale_when_the_access_is_allowed_now() {
    let memory = FakeMemory::new(1 + TABLES as usize);
    let (tables, mut supply) = space(&memory);
    let at = page(PROGRAM_BASE);
    let stale = |error| tables.fault_is_stale(&memory, UserAddr(PROGRAM_BASE + 5), error);
    let (read, write, fetch, reserved) = (4, 4 | 2, 4 | 16, 4 | 8 | 1);
    assert!(![read, write, fetch, reserved].into_iter().any(stale));
    tables
        .map(&memory, at, Frame(7), Access::Read, Kind::Ram, &mut supply)
        .unwrap();
    for (access, allowed) in [
        (Access::Read, [true, false, false, false]),
        (Access::Write, [true, true, false, false]),
        (Access::Execute, [true, false, true, false]),
    ] {
        tables.protect(&memory, at, access).unwrap();
        assert_eq!(
            [read, write, fetch, reserved].map(stale),
            allowed,
            "{access:?}, not there"
        );
        assert_eq!(
            [read, write, fetch, reserved].map(|error| stale(error | 1)),
            allowed,
            "{access:?}, there"
        );
        assert!(
            ![read, write, fetch, reserved]
                .into_iter()
                .any(|error| stale(error & !4)),
            "{access:?}, by the CPU for itself"
        );
    }
}

#[test]
fn a_teardown_step_is_bounded_by_its_budget() {
    let memory = FakeMemory::new(1 + TABLES as usize);
    let (tables, mut supply) = space(&memory);
    for address in [USER_START, PROGRAM_BASE, 1 << 30, 1 << 39, INFO_PAGE] {
        tables
            .map(
                &memory,
                page(address),
                Frame(1),
                Access::Read,
                Kind::Ram,
                &mut supply,
            )
            .unwrap();
    }
    let steps = teardown(&memory, tables, &mut supply, 100);
    assert!(supply.taken.is_empty());
    // 256 root entries of which 3 lead to 512, of which 4 in all lead to 512.
    assert_eq!(steps, (253 + 3 * 512 - 4 + 4 * 512_u32).div_ceil(100));
}

#[derive(Clone, Debug)]
enum Step {
    Map(u64, u32, Access, Kind),
    Unmap(u64, bool),
    Protect(u64, Access),
    Starve(usize),
}

/// Few places, at all distances, so that tables are shared, filled and emptied.
fn address() -> impl Strategy<Value = u64> {
    let high = prop_oneof![Just(0), Just(1u64 << 39), Just(255 << 39)];
    let (middle, low) = (
        prop_oneof![Just(0u64), Just(1 << 30), Just(3 << 30)],
        prop_oneof![Just(0u64), Just(5 << 21)],
    );
    (
        high,
        middle,
        low,
        prop_oneof![Just(16u64), Just(17), Just(511), Just(100)],
    )
        .prop_map(|(high, middle, low, index)| high + middle + low + index * PAGE_SIZE)
}

fn access() -> impl Strategy<Value = Access> {
    prop_oneof![
        Just(Access::Read),
        Just(Access::Write),
        Just(Access::Execute)
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop_oneof![4 => Just(Kind::Ram), 1 => Just(Kind::Device)];
    prop_oneof![
        40 => (address(), any::<u32>(), access(), kind).prop_map(|(at, frame, access, kind)| Step::Map(at, frame, access, kind)),
        20 => (address(), any::<bool>()).prop_map(|(at, prune)| Step::Unmap(at, prune)),
        20 => (address(), access()).prop_map(|(at, access)| Step::Protect(at, access)),
        1 => (0..30usize).prop_map(Step::Starve),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn a_space_is_a_map_from_pages_to_frames(steps in prop::collection::vec(step(), 0..120), budget in 1..200u32) {
        let memory = FakeMemory::new(1 + TABLES as usize);
        let (tables, mut supply) = space(&memory);
        let mut model: BTreeMap<u64, (Frame, Access, Kind)> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Map(at, frame, access, kind) => {
                    let result = tables.map(&memory, page(at), Frame(frame), access, kind, &mut supply);
                    let expected = match model.contains_key(&at) {
                        _ if (access, kind) == (Access::Execute, Kind::Device) => Err(Error::BadArgument),
                        true => Err(Error::Overlap),
                        // The supply alone knows whether there are frames left.
                        false if result.is_err() => Err(Error::QuotaExceeded),
                        false => Ok(()),
                    };
                    prop_assert_eq!(result, expected);
                    if result.is_ok() {
                        model.insert(at, (Frame(frame), access, kind));
                    }
                }
                Step::Unmap(at, prune) => {
                    let was = model.remove(&at).map(|(frame, ..)| frame);
                    prop_assert_eq!(tables.unmap(&memory, page(at)), was);
                    if prune {
                        tables.prune(&memory, page(at), &mut supply);
                    }
                }
                Step::Protect(at, access) => {
                    let result = tables.protect(&memory, page(at), access);
                    match model.get_mut(&at) {
                        None => prop_assert_eq!(result, Err(Error::NotMapped)),
                        Some((_, _, Kind::Device)) if access == Access::Execute => prop_assert_eq!(result, Err(Error::BadArgument)),
                        Some((_, was, _)) => {
                            prop_assert_eq!(result, Ok(()));
                            *was = access;
                        }
                    }
                }
                Step::Starve(left) => supply.starve(left),
            }
        }
        check_tables(&memory, &supply);
        for (&at, &(frame, access, kind)) in &model {
            let found = Translation {
                at: frame.start().offset(0xabc),
                writable: access == Access::Write,
                executable: access == Access::Execute,
                kind,
                page_bytes: PAGE_SIZE,
            };
            prop_assert_eq!(tables.translate(&memory, UserAddr(at + 0xabc)), Some(found));
            for beside in [at - PAGE_SIZE, at + PAGE_SIZE] {
                prop_assert_eq!(tables.translate(&memory, UserAddr(beside)).is_some(), model.contains_key(&beside));
            }
        }
        // Unmapping everything with pruning, or tearing down what is mapped, brings every table back.
        if budget % 2 == 0 {
            for &at in model.keys() {
                tables.unmap(&memory, page(at));
                tables.prune(&memory, page(at), &mut supply);
            }
            prop_assert!(model.keys().all(|&at| tables.translate(&memory, UserAddr(at)).is_none()));
        }
        teardown(&memory, tables, &mut supply, budget * 20);
        prop_assert!(supply.taken.is_empty());
    }
}

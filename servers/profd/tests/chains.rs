//! Chains in the report's text, and the marks of what they lack.

mod support;

use ipc::abi::profile::flags;
use profd::atlas::Atlas;
use profd::chain::chain;
use profd::fold::Table;
use profd::report::report;
use profd::resolve::resolve;
use support::fold::{SHORT, profile};
use support::record::Record;
use support::{KERNEL, World, process};

/// The lines below the one of the hottest leaf.
fn below_leaf(text: &str) -> impl Iterator<Item = &str> {
    text.lines().skip_while(|line| !line.contains('`')).skip(1)
}

#[test]
fn what_is_cut_is_counted_and_what_is_missing_is_marked() {
    let deep = |callers: u64| {
        let mut frames = vec![0x40_1110];
        frames.extend((0..callers).map(|n| 0x40_1010 + n));
        Record::new(12, &frames)
    };
    let flagged = |record: Record, flags: u16| Record { flags, ..record };
    let one = |record: Record, depth: u8| {
        let text = report(&profile(&World::new(), depth, &[record]), SHORT);
        below_leaf(&text)
            .map(|line| line.trim_start().to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(one(deep(2), 2), ["<- shares`main+0x10", "<- ... (1 more)"]);
    assert_eq!(
        one(deep(2), 3),
        ["<- shares`main+0x10", "<- shares`main+0x11"]
    );
    assert_eq!(one(deep(15), 1), ["<- ... (15 more)"]);
    let truncated = flags::TRUNCATED | flags::incomplete(1);
    let cut = flags::CUT | flags::incomplete(1);
    assert_eq!(one(flagged(deep(15), truncated), 2)[1], "<- ... (14+ more)");
    assert_eq!(one(flagged(deep(1), truncated), 2)[1], "<- ...");
    assert_eq!(
        one(flagged(deep(1), cut), 8),
        ["<- shares`main+0x10", "<- ?"]
    );
    assert_eq!(one(flagged(deep(2), cut), 2)[1], "<- ... (1+ more)");
    assert_eq!(
        one(flagged(deep(1), flags::CHANGED), 8),
        ["<- shares`main+0x10", "<= ?"]
    );
}

#[test]
fn what_is_missing_is_marked_where_it_is_missing() {
    let served = |flags: u16| {
        let record = Record {
            flags: flags::KERNEL | flags,
            clients: vec![(12, vec![0x40_1110]), (20, vec![0x40_105c])],
            ..Record::new(21, &[KERNEL + 0x112, KERNEL + 0x25a, 0x40_1044])
        };
        let text = report(&profile(&World::new(), 8, &[record]), SHORT);
        let callers = below_leaf(&text).map(str::trim_start);
        callers
            .take_while(|line| line.starts_with('<'))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let [kernel, own, one, other] = [
        "<- kernel`syscall_entry+0x5a",
        "<- net`sockets::send+0x44",
        "<= shares`share_a+0x10",
        "<= netload`main+0x5c",
    ];
    let (cut, truncated) = (flags::CUT, flags::TRUNCATED);
    let at = flags::incomplete;
    for (flags, expected) in [
        (0, format!("{kernel} {own} {one} {other}")),
        (cut | at(0), format!("{kernel} <- ? {own} {one} {other}")),
        (cut | at(1), format!("{kernel} {own} <- ? {one} {other}")),
        (cut | at(2), format!("{kernel} {own} {one} <- ? {other}")),
        (cut | at(3), format!("{kernel} {own} {one} {other} <- ?")),
        // A client whose registers make no sense, and clients for which there was no room.
        (cut | at(4), format!("{kernel} {own} {one} {other} <= ?")),
        (
            truncated | at(4),
            format!("{kernel} {own} {one} {other} <- ..."),
        ),
        // Frames for which there was no room, with and without others behind them.
        (
            truncated | at(1),
            format!("{kernel} {own} <- ? {one} {other}"),
        ),
        (
            truncated | at(3),
            format!("{kernel} {own} {one} {other} <- ..."),
        ),
        (
            truncated | at(3) | at(4),
            format!("{kernel} {own} {one} {other} <- ? <- ..."),
        ),
        (
            cut | truncated | at(0) | at(3),
            format!("{kernel} <- ? {own} {one} {other} <- ?"),
        ),
        (flags::CHANGED, format!("{kernel} {own} {one} {other} <= ?")),
    ] {
        assert_eq!(served(flags), expected, "{flags:#x}");
    }
}

#[test]
fn chains_that_differ_in_what_was_cut_off_are_one() {
    let deep = |callers: u64| {
        let mut frames = vec![0x40_1110];
        frames.extend((0..callers).map(|n| 0x40_1010 + n));
        Record::new(12, &frames)
    };
    let text = report(&profile(&World::new(), 2, &[deep(3), deep(9)]), SHORT);
    assert!(text.contains("100.0% 2 shares`share_a+0x10\n        <- shares`main+0x10\n        <- ... (2..8 more)\n"), "{text}");
}

#[test]
fn a_call_at_the_end_of_a_function_belongs_to_it() {
    // The return address of a call that does not return can be the first byte of the next function.
    let text = report(
        &profile(
            &World::new(),
            8,
            &[Record::new(12, &[0x40_1210, 0x40_1200])],
        ),
        SHORT,
    );
    assert!(
        text.contains("shares`share_b+0x10\n        <- shares`share_a+0x100\n"),
        "{text}"
    );
}

#[test]
fn places_without_a_symbol_are_addresses() {
    let mut world = World::new();
    world.processes.start(30, process("ghost"));
    let records = [
        Record::new(30, &[0x40_1000, 0x40_2000]),
        Record::new(31, &[0x40_1000]),
        Record::new(12, &[0x999]),
    ];
    let text = report(&profile(&world, 8, &records), SHORT);
    for part in [
        "33.3% 1 ghost`0x401000\n        <- ghost`0x402000\n",
        "pid31`0x401000\n",
        "shares`0x999\n",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(
        text.contains("no symbols of ghost: not in the boot archive\n"),
        "{text}"
    );
}

#[test]
fn a_process_that_init_tells_of_late_still_gets_its_name() {
    let mut world = World::new();
    let records = [
        Record::new(40, &[0x40_1110, 0x40_1061]),
        Record::new(40, &[0x40_1120, 0x40_1061]),
    ];
    let catalog = world.catalog();
    let atlas = Atlas {
        catalog: &catalog,
        processes: &world.processes,
    };
    let mut table = Table::new(512);
    records
        .iter()
        .for_each(|record| table.add(chain(&record.sample(), 8, atlas)));
    drop(catalog);
    world.processes.start(40, process("shares"));
    let catalog = world.catalog();
    let resolved = resolve(
        &table,
        None,
        Atlas {
            catalog: &catalog,
            processes: &world.processes,
        },
    );
    assert_eq!(resolved.chains.len(), 1);
    assert_eq!(
        (
            resolved.chains[0].count,
            resolved.chains[0].leaf.offset,
            resolved.chains[0].high
        ),
        (2, 0x10, 0x20)
    );
}

/// A program that jumped into the kernel's half is not the kernel.
#[test]
fn who_jumped_astray_is_not_the_kernel() {
    let astray = Record {
        flags: flags::CUT | flags::incomplete(1),
        ..Record::new(21, &[KERNEL + 3])
    };
    let text = report(&profile(&World::new(), 8, &[astray]), SHORT);
    assert!(
        text.contains("100.0% 1 net`0xffffffff80001003\n        <- ?\n"),
        "{text}"
    );
}

//! The report's text, from samples to lines.

mod support;

use ipc::abi::profile::{Phase, Source, flags};
use ipc::proto::profd::Request;
use profd::atlas::Atlas;
use profd::chain::chain;
use profd::fold::Table;
use profd::process::Fate;
use profd::profile::{Counts, Filter, Profile};
use profd::report::{Options, report};
use profd::resolve::resolve;
use profd::session::{Progress, Session};
use profd::stacks::stacks;
use support::driver::{Fake, memory};
use support::record::Record;
use support::{KERNEL, MS, World, clock, process};

const SHORT: Options = Options {
    chains: 8,
    verbose: false,
};

/// Folds records that were all taken in the window.
fn profile(world: &World, depth: u8, records: &[Record]) -> Profile {
    let catalog = world.catalog();
    let atlas = Atlas {
        catalog: &catalog,
        processes: &world.processes,
    };
    let mut table = Table::new(512);
    for record in records {
        table.add(chain(&record.sample(), depth, atlas));
    }
    let resolved = resolve(&table, None, atlas);
    Profile {
        asked_ms: 1000,
        profiled_ms: 1000,
        source: Source::TimerNmi,
        frequency: 1000,
        depth,
        filter: None,
        cpus: 4,
        asked_cpus: 4,
        unconfirmed: 0,
        counts: Counts {
            taken: records.len() as u64,
            reported: records.len() as u64,
            table: 512,
            cost_ns: 800 * records.len() as u64,
            ..Counts::default()
        },
        strings: resolved.strings,
        accounts: resolved.accounts,
        images: resolved.images,
        chains: resolved.chains,
        addresses: resolved.addresses,
    }
}

/// The lines below the one of the hottest leaf.
fn below_leaf(text: &str) -> impl Iterator<Item = &str> {
    text.lines().skip_while(|line| !line.contains('`')).skip(1)
}

fn repeat(count: usize, record: impl Fn(u64) -> Record) -> impl Iterator<Item = Record> {
    (0..count as u64).map(record)
}

/// The samples behind the example of the design.
fn example() -> Vec<Record> {
    let idle = repeat(2998, |_| Record::new(0, &[KERNEL + 3]));
    let share = repeat(594, |n| {
        Record::new(12 + (n % 2) as u32, &[0x40_1110 + n % 0x1d, 0x40_1061])
    });
    let transfer = repeat(203, |n| Record {
        clients: vec![(20, vec![0x40_105c])],
        ..Record::new(21, &[KERNEL + 0x112 + n % 0x37, KERNEL + 0x25a, 0x40_1044])
    });
    let rest = repeat(192, |n| Record::new(12, &[0x40_1200 + n]));
    idle.chain(share).chain(transfer).chain(rest).collect()
}

#[test]
fn the_example_of_the_design_reads_as_there() {
    let profile = profile(&World::new(), 8, &example());
    let text = report(
        &profile,
        Options {
            chains: 3,
            verbose: false,
        },
    );
    assert_eq!(
        text,
        "profiled 1000 ms\n\
         3987 samples on 4 cpus, 0 dropped, source timer/nmi\n\
         sampling took 800 ns a sample, 0.08% of the window\n\
         75.2% 2998 kernel`idle+0x3\n\
         14.9% 594 shares`share_a+0x10..0x2c\n        \
         <- shares`main+0x61\n \
         5.1% 203 kernel`ipc::transfer+0x12..0x48\n        \
         <- kernel`syscall_entry+0x5a\n        \
         <- net`sockets::send+0x44\n        \
         <= netload`main+0x5c\n\
         not shown: 1 chain, 192 samples\n"
    );
}

#[test]
fn one_chain_with_every_sample_is_a_hundred_percent() {
    let records: Vec<_> = repeat(400, |_| Record::new(0, &[KERNEL + 3])).collect();
    let mut profile = profile(&World::new(), 8, &records);
    (profile.source, profile.frequency) = (Source::Tick, 100);
    assert_eq!(
        report(&profile, SHORT),
        "profiled 1000 ms\n400 samples on 4 cpus, 0 dropped, source tick\n\
         sampling took 800 ns a sample, 0.01% of the window\n100.0% 400 kernel`idle+0x3\n\
         the tick cannot see inside the kernel: its time is at the return from the call\n"
    );
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

#[test]
fn an_empty_report_explains_itself() {
    let explain = |change: fn(&mut Profile)| {
        let mut profile = profile(&World::new(), 8, &[]);
        change(&mut profile);
        let text = report(&profile, SHORT);
        assert!(stacks(&profile, 8).starts_with("# no samples"));
        text.lines().skip(2).collect::<Vec<_>>().join(" ")
    };
    assert!(
        explain(|profile| profile.source = Source::PmuIntel)
            .contains("the counter stands still while a cpu is halted")
    );
    assert!(explain(|profile| profile.profiled_ms = 1).contains("1 ms may be too short"));
    assert!(explain(|_| {}).contains("did not deliver any"));
    assert!(
        explain(|profile| {
            profile.filter = Some(Filter {
                pid: 12,
                name: "shares".into(),
                fate: Fate::Live,
            });
            profile.counts.other_tasks = 5;
        })
        .contains("pid 12 (shares) did not run, it may have slept")
    );
    assert!(
        explain(|profile| profile.filter = Some(Filter {
            pid: 12,
            name: "shares".into(),
            fate: Fate::Ended
        }))
        .contains("pid 12 (shares) has ended")
    );
    assert!(
        explain(|profile| profile.filter = Some(Filter {
            pid: 9,
            name: String::new(),
            fate: Fate::Unknown
        }))
        .contains("pid 9 is not a process")
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

#[test]
fn losses_are_in_the_header_and_by_name() {
    let mut profile = profile(&World::new(), 8, &[Record::new(0, &[KERNEL])]);
    profile.counts = Counts {
        taken: 9,
        overwritten: 2,
        corrupt: 1,
        outside: 4,
        missed: 5,
        beyond_table: 0,
        ..profile.counts
    };
    let text = report(&profile, SHORT);
    assert!(
        text.contains("1 samples on 4 cpus, 3 dropped, source timer/nmi\n"),
        "{text}"
    );
    assert!(
        text.ends_with(
            "odd: overwritten 2, corrupt 1, missed 5, unaccounted 1\n\
             taken 9: 1 reported, 0 of other tasks, 4 outside the window, 3 dropped\n"
        ),
        "{text}"
    );
    profile.counts = Counts {
        taken: 1,
        reported: 1,
        ..Counts::default()
    };
    assert!(!report(&profile, SHORT).contains("odd:"));
    let all = report(
        &profile,
        Options {
            verbose: true,
            ..SHORT
        },
    );
    assert!(
        all.contains("overwritten 0")
            && all.contains("throttled 0")
            && all.ends_with(
                "taken 1: 1 reported, 0 of other tasks, 0 outside the window, 0 dropped\n"
            )
    );
}

#[test]
fn the_head_tells_the_rate_the_cost_and_the_delay_where_they_matter() {
    let mut profile = profile(&World::new(), 8, &[Record::new(0, &[KERNEL])]);
    let mut head = |counts: Counts, verbose: bool| {
        profile.counts = Counts {
            other_tasks: counts.taken - 1,
            reported: 1,
            ..counts
        };
        let text = report(&profile, Options { verbose, ..SHORT });
        let head = text.lines().skip(2);
        let head = head.take_while(|line| !line.contains('`'));
        head.map(String::from).collect::<Vec<_>>()
    };
    let counts = |taken| Counts {
        taken,
        cost_ns: taken * 2_345,
        ..Counts::default()
    };
    // 4 CPUs, a second, 1000 a second on each: 3600 are 90 %.
    assert_eq!(
        head(counts(3600), false),
        ["sampling took 2345 ns a sample, 0.21% of the window"]
    );
    assert_eq!(
        head(counts(3599), false)[1],
        "true rate 899 a second on each cpu, 89% of the nominal 1000"
    );
    assert_eq!(
        head(counts(4000), true)[1],
        "true rate 1000 a second on each cpu, 100% of the nominal 1000"
    );
    let delayed = |mean: u64| Counts {
        asked: 4000,
        delay_ns: mean * 4000,
        delay_max_ns: 7_654_321,
        ..counts(4000)
    };
    assert_eq!(head(delayed(100_000), false).len(), 1);
    assert_eq!(
        head(delayed(101_000), false)[1..],
        ["asked for 101 us late on average, at most 7654, by cpus with interrupts off"]
    );
    assert_eq!(head(delayed(0), true).len(), 3);
    let wild = Counts {
        taken: u64::MAX,
        cost_ns: u64::MAX,
        overwritten: u64::MAX,
        asked: 1,
        delay_ns: u64::MAX,
        ..Counts::default()
    };
    assert!(head(wild, true).len() > 2, "no overflow");
}

#[test]
fn folded_stacks_begin_at_the_root_and_lose_nothing() {
    let profile = profile(&World::new(), 8, &example());
    let text = stacks(&profile, 3);
    assert_eq!(
        text,
        "kernel`idle 2998\nshares`main;shares`share_a 594\n\
         netload`main;net`sockets::send;kernel`syscall_entry;kernel`ipc::transfer 203\n(other chains) 192\n"
    );
}

#[test]
fn a_profile_of_one_process_says_how_many_were_taken() {
    let world = World::new();
    let memory = memory(2);
    let mut fake = Fake::new(&memory);
    let catalog = world.catalog();
    let atlas = Atlas {
        catalog: &catalog,
        processes: &world.processes,
    };
    let request = Request {
        window_ms: 100,
        pid: Some(12),
        ..Request::default()
    };
    let mut session = Session::start(request, clock(), atlas, &mut fake, 0).unwrap();
    fake.open(10 * MS);
    for n in 0..6 {
        let record = Record {
            cpu: (n % 2) as u8,
            tsc: (20 + n) * MS,
            ..Record::new(12 + (n % 2) as u32, &[0x40_1110])
        };
        fake.take(&record);
    }
    session.poll(atlas, &mut fake, 10 * MS).unwrap();
    session.poll(atlas, &mut fake, 110 * MS).unwrap();
    assert_eq!(fake.status.phase, Phase::Disarming as u64);
    fake.idle();
    let Ok(Progress::Done(profile)) = session.poll(atlas, &mut fake, 111 * MS) else {
        panic!("not done")
    };
    let text = report(&profile, SHORT);
    assert!(
        text.starts_with(
            "profiled 100 ms\n3 samples (of 6 taken) on 1 cpus, 0 dropped, source tick\n"
        ),
        "{text}"
    );
    assert!(text.contains("\n100.0% 3 shares`share_a+0x10\n"), "{text}");
}

//! The report's text, from samples to lines.

mod support;

use ipc::abi::profile::Source;
use profd::profile::Profile;
use profd::report::{Options, report};
use profd::stacks::stacks;
use support::fold::{SHORT, profile};
use support::record::Record;
use support::{KERNEL, World};

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
fn cpus_without_a_counter_and_time_without_work_are_told() {
    let told = |change: fn(&mut Profile)| {
        let mut profile = profile(&World::new(), 8, &[]);
        profile.source = Source::PmuIntel;
        (profile.asked_cpus, profile.counting) = (8, 8);
        profile.counts.reported = 8000;
        profile.counts.beyond_table = 8000;
        profile.counts.taken = 8000;
        change(&mut profile);
        report(&profile, SHORT)
    };
    let all = told(|_| ());
    assert!(
        all.contains(" source pmu/nmi intel fixed-ctr1\n") && !all.contains("halted"),
        "{all}"
    );
    let some = told(|profile| profile.counting = 6).replace("\n  ", " ");
    assert!(
        some.contains("source pmu/nmi intel fixed-ctr1 on 6 cpus, timer/nmi on 2\n"),
        "{some}"
    );
    let few = told(|profile| {
        profile.counts.reported = 80;
        profile.counts.beyond_table = 80;
        profile.counts.taken = 80;
    });
    assert!(
        few.contains(
            "\nthe counter stands still while a cpu is halted: idle time is not sampled\n"
        ),
        "{few}"
    );
    // Those that have none are sampled by the timer, whether they are idle or not.
    let half = told(|profile| {
        profile.counting = 6;
        profile.counts.reported = 80;
        profile.counts.beyond_table = 80;
        profile.counts.taken = 80;
    })
    .replace("\n  ", " ");
    assert!(
        half.contains(" is halted: idle time is sampled on 2 of 8 cpus\n"),
        "{half}"
    );
    let none = told(|profile| {
        profile.counting = 6;
        profile.counts = Default::default();
        profile.chains.clear();
    });
    assert!(
        none.contains("\nno samples: the source did not deliver any"),
        "{none}"
    );
}

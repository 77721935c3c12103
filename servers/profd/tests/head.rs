//! The head of a report and its notes: what was measured, what is missing, and why.

mod support;

use ipc::abi::profile::Source;
use ipc::proto::profd::Request;
use profd::process::Fate;
use profd::profile::{Counts, Filter, Profile};
use profd::report::{Options, report};
use profd::stacks::stacks;
use support::course::course;
use support::fold::{SHORT, profile};
use support::record::Record;
use support::{KERNEL, World};

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
    let stalled = Counts {
        cost_ns: 3600 * 2_000_000,
        ..counts(3600)
    };
    assert_eq!(
        head(stalled, false),
        ["sampling took 2000000 ns a sample, 100.00% of the window"]
    );
    assert_eq!(
        head(counts(3599), false)[1],
        "true rate 899 a second on each cpu, 89% of the nominal 1000"
    );
    assert_eq!(
        head(counts(4000), true)[1],
        "true rate 1000 a second on each cpu, 100% of the nominal 1000"
    );
    // Three times as many were taken; when those that are gone were, nobody knows.
    let dropping = Counts {
        overwritten: 8_000,
        ..counts(3599)
    };
    assert_eq!(
        head(dropping, false),
        [
            "sampling took 2345 ns a sample, at least 0.21% of the window",
            "true rate at least 899 a second on each cpu, 89% of the nominal 1000"
        ]
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
        ["asked for 101 us late on average, at most 7654: interrupts off, or not run"]
    );
    assert_eq!(head(delayed(0), true).len(), 4);
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
fn an_empty_report_explains_itself() {
    let explain = |change: fn(&mut Profile)| {
        let mut profile = profile(&World::new(), 8, &[]);
        change(&mut profile);
        let text = report(&profile, SHORT);
        assert!(stacks(&profile, 8).starts_with("# no samples"));
        text.lines().skip(2).collect::<Vec<_>>().join(" ")
    };
    assert!(
        explain(|profile| {
            profile.source = Source::PmuIntel;
            profile.counting = profile.asked_cpus;
        })
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

#[test]
fn a_profile_of_one_process_says_how_many_were_taken() {
    let request = Request {
        pid: Some(12),
        ..Request::default()
    };
    let records: Vec<Record> = (0..6)
        .map(|n| Record {
            cpu: n % 2,
            ..Record::new(12 + u32::from(n % 2), &[0x40_1110])
        })
        .collect();
    let profile = course(request, 2, &records, |_| {});
    let text = report(&profile, SHORT);
    assert!(
        text.starts_with(
            "profiled 100 ms\n3 samples (of 6 taken) on 1 cpus, 0 dropped, source tick\n"
        ),
        "{text}"
    );
    assert!(text.contains("\n100.0% 3 shares`share_a+0x10\n"), "{text}");
}

#[test]
fn the_head_tells_where_samples_are_missing() {
    // CPU 2 gave half of what the others gave.
    let records: Vec<Record> = (0..350)
        .map(|n| [0, 1, 3, 0, 1, 3, 2][n % 7])
        .map(|cpu| Record {
            cpu,
            ..Record::new(0, &[KERNEL])
        })
        .collect();
    let profile = course(Request::default(), 5, &records, |_| {});
    assert_eq!(profile.came.0, [100, 100, 50, 100, 0]);
    let uneven = "uneven: cpu 4 has 0 samples, cpu 3 has 100: shares on cpu 4 are too small\n";
    let text = report(&profile, SHORT);
    assert!(
        text.contains(uneven) && !text.contains("of each cpu"),
        "{text}"
    );
    let verbose = Options {
        verbose: true,
        ..SHORT
    };
    let text = report(&profile, verbose);
    assert!(
        text.contains("of each cpu, 10 due: 100 100 50 100 0\n"),
        "{text}"
    );
    let others = Request {
        pid: Some(12),
        ..Request::default()
    };
    let of_others = course(others, 5, &records, |_| {});
    assert_eq!(of_others.came, profile.came);
    let even = course(Request::default(), 2, &records[..2], |_| {});
    assert!(!report(&even, SHORT).contains("uneven"));
}

//! `trace` against the fake system.

use ipc::abi::exit::ExitReason;
use ipc::abi::info::ThreadState;
use ipc::abi::trace::{InterruptKind, TRACE_RECORDS, TraceKind, TraceRecord};
use ipc::abi::{NEVER, Tag};
use ipc::proto::init::Ending;
use proptest::prelude::*;

use super::super::tests::Bench;

fn event(kind: TraceKind, detail: u32, words: [u64; 2]) -> TraceRecord {
    TraceRecord {
        event: kind as u64 | u64::from(detail) << 32,
        words,
        ..TraceRecord::default()
    }
}

/// Numbers records as a CPU's ring does.
fn numbered(records: impl IntoIterator<Item = TraceRecord>) -> Vec<TraceRecord> {
    let numbered = (1..)
        .zip(records)
        .map(|(sequence, record)| TraceRecord { sequence, ..record });
    numbered.collect()
}

fn bench(trace: Vec<Vec<TraceRecord>>) -> Bench {
    let mut bench = Bench::default();
    bench.system.cpus = vec![Default::default(); trace.len()];
    bench.system.kernel.process(9, "chain");
    bench.system.end(8, "sleep", Ending::Exited, 0);
    bench.system.kernel.tracing = true;
    bench.system.kernel.trace = trace.into_iter().map(numbered).collect();
    bench
}

#[test]
fn events_of_all_cpus_are_merged_by_time() {
    let at = |tsc, who, record| TraceRecord { tsc, who, ..record };
    let tag = Tag::new(3, 20, 0).raw();
    let ended = event(TraceKind::ProcessEnd, ExitReason::Exited as u32, [7, 0]);
    let first = vec![
        at(
            2_000_000,
            9 | 14 << 32,
            event(TraceKind::Call, 0, [0x1000c, tag]),
        ),
        at(2_000_004_000, 0, event(TraceKind::Idle, 0, [0; 2])),
    ];
    let second = vec![at(2_000_002_000, 8, ended)];
    assert_eq!(
        bench(vec![first, second]).run("trace"),
        "\
3 of 3 events, 0 overwritten
        TIME CPU EVENT    WHO                  WHAT
    0.001000   0 call     9/14 chain           on 0x1000c, op 3, 20 bytes
    1.000001   1 exit     8 sleep              exited with 7
    1.000002   0 idle     -
"
    );
}

#[test]
fn every_kind_of_event_says_what_it_is() {
    let tag = Tag::new(2, 0, 1).raw();
    let sleeping = ThreadState::Sleeping as u32;
    for (record, said) in [
        (
            event(TraceKind::Receive, 0, [14, tag]),
            "receive|from tid 14, op 2, 1 handle",
        ),
        (event(TraceKind::Reply, 0, [14, 0]), "reply|to tid 14, op 0"),
        (
            event(TraceKind::Transfer, 0, [14, 0]),
            "transfer|to tid 14, op 0",
        ),
        (event(TraceKind::Switch, 20, [0, 0]), "switch|priority 20"),
        (event(TraceKind::Wake, 3, [0, 0]), "wake|for cpu 3"),
        (
            event(TraceKind::Block, sleeping, [1_500_000, 0]),
            "block|sleep until 0.001500",
        ),
        (
            event(TraceKind::Block, 3, [NEVER, 0x2000c]),
            "block|recv on 0x2000c",
        ),
        (
            event(TraceKind::Fault, 14 | 6 << 8, [0, 0x400010]),
            "fault|#PF 0x6 at 0x0 rip 0x400010",
        ),
        (
            event(TraceKind::Fault, 6, [0, 0x400010]),
            "fault|vector 6 error 0x0 rip 0x400010",
        ),
        (
            event(TraceKind::Interrupt, InterruptKind::Timer as u32, [0, 0]),
            "irq|timer",
        ),
        (
            event(TraceKind::Interrupt, InterruptKind::Line as u32, [4, 0]),
            "irq|line 4",
        ),
        (event(TraceKind::Interrupt, 99, [0, 0]), "irq|kind 99"),
        (
            event(TraceKind::ProcessStart, 0, [1, 0]),
            "process|made by pid 1",
        ),
        (
            event(TraceKind::ProcessEnd, ExitReason::Killed as u32, [0, 0]),
            "exit|killed",
        ),
        (
            event(TraceKind::ProcessEnd, ExitReason::Faulted as u32, [0, 0]),
            "exit|faulted",
        ),
        (
            event(TraceKind::ThreadStart, 0, [0x400000, 0x213000]),
            "thread|rip 0x400000 rsp 0x213000",
        ),
        (event(TraceKind::ThreadEnd, 0, [0, 0]), "ended|"),
        (
            TraceRecord {
                event: 77,
                words: [1, 2],
                ..TraceRecord::default()
            },
            "?|kind 77 0x0 0x1 0x2",
        ),
    ] {
        let text = bench(vec![vec![record]]).run("trace");
        let (name, what) = said.split_once('|').unwrap();
        let row = format!("    0.000000   0 {name:<8} {:<20} {what}", "-");
        assert!(
            text.ends_with(&format!("{}\n", row.trim_end())),
            "{said}: {text}"
        );
    }
}

#[test]
fn a_line_that_does_not_fit_goes_on_behind_two_blanks() {
    let longest = event(TraceKind::Fault, u32::MAX << 8 | 14, [u64::MAX, u64::MAX]);
    let text = bench(vec![vec![longest]]).run("trace");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    assert_eq!(text.matches("0xffffffffffffffff").count(), 2, "{text}");
}

#[test]
fn on_and_off_turn_it_on_and_off() {
    let mut bench = bench(vec![Vec::new()]);
    assert_eq!(bench.run("trace off"), "");
    assert!(!bench.system.kernel.tracing);
    let off = "tracing is off; `trace on` turns it on\n";
    assert_eq!(bench.run("trace"), off);
    assert_eq!(bench.run("trace on"), "");
    assert!(bench.system.kernel.tracing);
    assert_eq!(bench.run("trace"), "0 of 0 events, 0 overwritten\n");
    // What was kept can be looked at.
    bench.system.kernel.trace = vec![numbered([event(TraceKind::Idle, 0, [0; 2])])];
    bench.run("trace off");
    let text = bench.run("trace");
    assert!(
        text.starts_with(off) && text.contains("1 of 1 event,"),
        "{text}"
    );
}

#[test]
fn bad_input_is_told_what_is_allowed() {
    for word in ["0", "1025", "ON", "-1", "+1", "on1"] {
        let said = format!("trace: `{word}`: on, off, or 1 to 1024 events\n");
        assert_eq!(bench(Vec::new()).run(&format!("trace {word}")), said);
    }
    let said = "trace: `1` is too much; usage: trace [on|off|n]\n";
    assert_eq!(bench(Vec::new()).run("trace on 1"), said);
}

#[test]
fn ctrl_c_ends_the_list() {
    let idle = event(TraceKind::Idle, 0, [0; 2]);
    let mut bench = bench(vec![vec![idle; 500]]);
    bench.session.interrupt_after = Some(9);
    let text = bench.run("trace 500");
    assert!(text.lines().count() < 20, "{text}");
}

proptest! {
    /// The newest of all CPUs, in order, and every other event counted.
    #[test]
    fn the_newest_are_shown_and_the_others_counted(
        counts in prop::collection::vec(0..3 * TRACE_RECORDS, 1..4),
        strides in prop::collection::vec(1..50u64, 4),
        count in 1..=TRACE_RECORDS,
    ) {
        let trace: Vec<Vec<TraceRecord>> = counts.iter().zip(&strides).enumerate().map(|(cpu, (&count, stride))| {
            let tsc = |number| number * stride * 2_000_000 + cpu as u64 * 2000;
            numbered((0..count as u64).map(|number| TraceRecord {
                tsc: tsc(number),
                ..event(TraceKind::Idle, 0, [0; 2])
            }))
        }).collect();
        let all: usize = counts.iter().sum();
        let mut expected: Vec<u64> = trace.iter().flatten().map(|record| record.tsc).collect();
        expected.sort_unstable();
        let expected = &expected[all.saturating_sub(count)..];
        let overwritten: usize = counts.iter().map(|count| count.saturating_sub(TRACE_RECORDS)).sum();
        let text = bench(trace).run(&format!("trace {count}"));
        let mut lines = text.lines();
        let first = lines.next().unwrap();
        let start = format!("{} of {all} event", expected.len());
        prop_assert!(first.starts_with(&start), "{first}");
        let end = format!(", {overwritten} overwritten");
        prop_assert!(first.ends_with(&end), "{first}");
        let times: Vec<&str> = lines.skip(1).filter_map(|line| line.split_whitespace().next()).collect();
        let expected: Vec<String> = expected.iter().map(|tsc| super::Timestamp(tsc / 2).to_string()).collect();
        prop_assert_eq!(times, expected);
    }
}

#[test]
fn a_trace_that_is_refused_is_told_once_by_repeat() {
    let mut bench = Bench::default();
    // A CPU that the kernel tells nothing of.
    bench.system.cpus = vec![Default::default()];
    assert_eq!(bench.run("trace").lines().count(), 1);
    assert_eq!(bench.run("repeat 3 trace"), bench.run("trace"));
}

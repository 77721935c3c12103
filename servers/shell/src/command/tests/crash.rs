//! How the end of a program is told.

use ipc::abi::exit::{BACKTRACE_MAX, BacktraceEnd, FaultKind};
use ipc::abi::startup::STACK_GUARD;
use ipc::proto::init::{Crash, Ending};

use super::Bench;
use crate::fake::FakeSystem;

fn crash(kind: FaultKind, error_code: u64, address: u64) -> Crash {
    let mut backtrace = [0; BACKTRACE_MAX];
    backtrace[..3].copy_from_slice(&[0x40_1012, 0x40_2000, 0x40_3000]);
    let mut registers = [0; 18];
    registers[0] = 0x40_1012;
    Crash {
        kind: kind as u8,
        tid: 1,
        error_code,
        address,
        registers,
        frames: 3,
        backtrace,
        end: 0,
    }
}

fn crashed(crash: Crash) -> String {
    let mut bench = Bench::default();
    bench.system.end(7, "crash", Ending::Faulted, 0);
    bench.system.ended.get_mut(&7).unwrap().crash = Some(crash);
    bench
        .system
        .names
        .insert(0x40_1012, "crash`null+0x12".into());
    // The name of a return address is that of the call before it.
    bench
        .system
        .names
        .insert(0x40_1fff, "crash`main+0x61".into());
    bench.run("run crash null")
}

#[test]
fn a_fault_is_told_with_what_where_and_how_it_got_there() {
    assert_eq!(
        crashed(crash(FaultKind::Page, 0b110, 0)),
        "\
crash: page fault: write to 0x0 at crash`null+0x12 (pid 7)
        <- crash`main+0x61
        <- crash`0x403000
"
    );
    for (kind, code, expected) in [
        (FaultKind::Page, 0b100, "page fault: read of 0x10 at"),
        (
            FaultKind::Page,
            0b10101,
            "page fault: execution (not allowed) at",
        ),
        (FaultKind::Divide, 0, "divide error at"),
        (FaultKind::InvalidOpcode, 0, "invalid instruction at"),
        (FaultKind::Protection, 0, "general protection fault at"),
        (FaultKind::NoFpu, 0, "floating-point or SSE instruction at"),
        (FaultKind::Breakpoint, 0, "panic at"),
    ] {
        let text = crashed(crash(kind, code, 16));
        assert!(
            text.starts_with(&format!("crash: {expected} crash`null")),
            "{text}"
        );
    }
}

#[test]
fn equal_callers_are_one_line() {
    let mut crash = crash(FaultKind::Page, 0b110, STACK_GUARD);
    crash.frames = 16;
    crash.backtrace = [0x40_2000; BACKTRACE_MAX];
    crash.backtrace[..2].copy_from_slice(&[0x40_1012, 0x40_3000]);
    crash.end = BacktraceEnd::More as u8;
    assert_eq!(
        crashed(crash),
        "\
crash: stack overflow (page fault: write) at crash`null+0x12 (pid 7)
        <- crash`0x403000
        <- crash`main+0x61 (14 times)
        <- ...
"
    );
}

#[test]
fn the_report_of_a_crash_is_as_wide_as_a_row() {
    for (name, pid, address, rows) in [
        ("crash", 7, 0x10, 1),
        ("anameofsixteenby", u32::MAX, 0xffff_8000_0000_0000, 2),
    ] {
        let mut crash = crash(FaultKind::Page, 0b101, address);
        crash.frames = 4;
        crash.backtrace[1..4].copy_from_slice(&[0x40_2000; 3]);
        let place = format!("{name}`{}::f+0x1234", "path::to".repeat(20));
        let mut bench = Bench::default();
        let names = [0x40_1012, 0x40_1fff].map(|address| (address, place.clone()));
        bench.system.names.extend(names);
        let mut report = FakeSystem::report(pid, name, Ending::Faulted, 0);
        report.crash = Some(crash);
        bench.system.ended.insert(7, report);
        let text = bench.run(&format!("run {name}"));
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert_eq!(text.lines().count(), rows + 1, "{text}");
        assert!(text.ends_with("::f+0x1234 (3 times)\n"), "{text}");
    }
}

#[test]
fn a_backtrace_that_is_not_whole_says_so() {
    for (end, line) in [
        (BacktraceEnd::More, "        <- ...\n"),
        (BacktraceEnd::Cut, "        <- ?\n"),
    ] {
        let mut crash = crash(FaultKind::Divide, 0, 0);
        crash.end = end as u8;
        let expected = format!("        <- crash`0x403000\n{line}");
        assert!(crashed(crash).ends_with(&expected), "{end:?}");
    }
}

#[test]
fn a_panic_is_where_the_program_was_and_not_where_it_said_so() {
    let mut bench = Bench::default();
    let mut crash = crash(FaultKind::Breakpoint, 0, 0);
    crash.frames = 5;
    crash.backtrace[..5].copy_from_slice(&[0x40_1012, 0x40_2000, 0x40_2800, 0x40_3000, 0x40_4000]);
    bench.system.end(7, "crash", Ending::Faulted, 0);
    bench.system.ended.get_mut(&7).unwrap().crash = Some(crash);
    bench.system.names.extend(
        [
            (0x40_1012, "crash`__rustc::rust_begin_unwind+0xe2"),
            (0x40_1fff, "crash`core::panicking::panic_fmt+0x2c"),
            (0x40_27ff, "crash`core::option::unwrap_failed+0x13"),
            (0x40_2fff, "crash`deep+0xea"),
            (0x40_3fff, "crash`main+0x61"),
        ]
        .map(|(address, name)| (address, name.into())),
    );
    assert_eq!(
        bench.run("run crash panic"),
        "\
crash: panic at crash`deep+0xea (pid 7)
        <- crash`main+0x61
"
    );
}

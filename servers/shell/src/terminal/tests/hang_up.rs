//! The end of a session: its user leaves, or its stream is gone.

use super::{Bench, COMMANDS, LEAVE};
use crate::protocol::{Asked, Completion, Front, NextLine, Stop};
use crate::session::Leave;

fn hang_up(bench: &mut Bench) -> Stop {
    bench.terminal.hang_up(&mut bench.desk)
}

fn asks_in_vain(bench: &mut Bench) -> bool {
    matches!(
        bench.call::<NextLine>(COMMANDS, &Completion::Nothing),
        Some(Err(1))
    )
}

#[test]
fn what_runs_is_ended_and_so_is_whatever_it_begins_next() {
    let mut bench = Bench::new();
    bench.guard(Stop::Process(9));
    assert_eq!(hang_up(&mut bench), Stop::Process(9));
    assert!(bench.print("x\n"), "its output has ended");
    for _ in 0..3 {
        assert!(bench.guard(Stop::Process(10)));
    }
    assert!(asks_in_vain(&mut bench));
}

#[test]
fn who_waits_for_a_line_hears_that_there_is_none() {
    let mut bench = Bench::new();
    bench.next_line();
    assert_eq!(hang_up(&mut bench), Stop::Nothing);
    assert_eq!(bench.desk.refused, [1]);
    assert!(asks_in_vain(&mut bench));
}

#[test]
fn who_waits_for_held_output_hears_that_nobody_will_see_it() {
    let mut bench = Bench::new();
    bench.typed(b"\x13");
    assert_eq!(bench.try_print("two\n"), None);
    assert!(!bench.try_program("three\n"));
    hang_up(&mut bench);
    assert_eq!(bench.desk.refused, [1, 2]);
    assert_eq!(bench.shown(), "");
}

#[test]
fn a_completion_comes_to_nothing() {
    let mut bench = Bench::new();
    bench.next_line();
    bench.typed(b"ki\t");
    assert_eq!(hang_up(&mut bench), Stop::Nothing);
    assert!(asks_in_vain(&mut bench));
}

#[test]
fn ctrl_d_leaves_a_session_that_can_be_left() {
    let mut bench = Bench::new();
    bench.terminal.leave = Leave {
        ends: true,
        ..LEAVE
    };
    bench.next_line();
    bench.typed(b"x\x04");
    assert_eq!(bench.desk.asked, None, "there is a line to be deleted from");
    bench.typed(b"\x15\x04ps\n");
    assert_eq!(bench.desk.asked.take(), Some(Asked::Leave));
}

//! Output page by page.

use super::super::output::{MARK, PAGE_ROWS};
use super::Bench;
use crate::protocol::{COMMANDS, Page, Stop};

const HIDE: &str = "\r\x1b[K";

/// A command that wants pages.
fn paged() -> Bench {
    let mut bench = Bench::new();
    bench.typed(b"x\n");
    bench.next_line();
    bench.shown();
    bench.call::<Page>(COMMANDS, &true);
    bench
}

fn rows(count: usize) -> String {
    (0..count).map(|row| format!("{row}\n")).collect()
}

#[test]
fn a_page_is_followed_by_the_next_on_request() {
    for key in [&b"\r"[..], b"\n", b"\r\n", b" "] {
        let mut bench = paged();
        assert_eq!(bench.try_print(&rows(50)), None);
        assert_eq!(bench.shown(), rows(PAGE_ROWS) + MARK);
        bench.typed(key);
        let two = rows(2 * PAGE_ROWS).split_off(rows(PAGE_ROWS).len());
        assert_eq!(bench.shown(), format!("{HIDE}{two}{MARK}"), "{key:?}");
        bench.typed(key);
        assert_eq!(bench.shown(), format!("{HIDE}46\n47\n48\n49\n"));
        assert_eq!(bench.desk.answered, [(1, Some(false))]);
        assert_eq!(bench.next_line(), None);
    }
}

#[test]
fn output_that_fits_a_page_just_ends() {
    let mut bench = paged();
    assert!(!bench.print(&rows(PAGE_ROWS)));
    assert_eq!(bench.next_line(), None);
    assert_eq!(bench.shown(), rows(PAGE_ROWS) + "\r> \x1b[K");
}

#[test]
fn q_and_ctrl_c_end_the_command() {
    for (key, echo) in [(&b"q"[..], ""), (b"Q", ""), (b"\x03", "^C\n")] {
        let mut bench = paged();
        bench.guard(Stop::Process(9));
        bench.try_print(&rows(24));
        bench.shown();
        assert_eq!(bench.typed(key), Stop::Process(9));
        assert_eq!(bench.shown(), format!("{HIDE}{echo}"));
        assert_eq!(bench.desk.answered, [(1, Some(true))]);
        assert!(bench.print("more\n"));
        assert_eq!(bench.next_line(), None);
        bench.typed(b"ps\n");
        assert_eq!(bench.line().as_deref(), Some("ps"));
    }
}

#[test]
fn who_has_pressed_ctrl_c_wants_no_more_pages() {
    let mut bench = paged();
    bench.guard(Stop::Process(9));
    bench.typed(b"\x03");
    assert!(bench.guard(Stop::Nothing));
    assert!(!bench.print(&rows(50)));
}

#[test]
fn what_began_on_one_page_goes_on_on_the_next() {
    let mut bench = paged();
    bench.try_print(&rows(50));
    bench.try_program("other\n");
    bench.typed(b" ");
    bench.shown();
    bench.typed(b" ");
    assert!(bench.shown().ends_with("49\nother\n"));
    assert_eq!(bench.desk.answered, [(1, Some(false)), (2, None)]);
}

#[test]
fn other_keys_mean_nothing_and_what_was_typed_before_is_kept() {
    let mut bench = paged();
    bench.typed(b"mem\n");
    bench.try_print(&rows(24));
    bench.shown();
    bench.typed(b"x\x1b[B");
    assert_eq!(bench.shown(), "\x07\x07");
    // What comes with the key, behind it, is for the prompt.
    bench.typed(b" ps\n");
    assert_eq!(bench.shown(), format!("{HIDE}23\n"));
    assert_eq!(bench.next_line().as_deref(), Some("mem"));
    assert_eq!(bench.next_line().as_deref(), Some("ps"));
}

#[test]
fn a_page_can_end_in_the_middle_of_a_line() {
    let mut bench = paged();
    bench.print(&rows(PAGE_ROWS - 1));
    bench.shown();
    assert_eq!(bench.try_print(&"x".repeat(81)), None);
    assert_eq!(bench.shown(), "x".repeat(80) + "\n" + MARK);
    bench.typed(b" ");
    assert_eq!(bench.shown(), format!("{HIDE}x"));
}

#[test]
fn what_programs_write_is_on_the_pages_too() {
    let mut bench = paged();
    assert!(!bench.try_program(&rows(24)));
    bench.shown();
    // The command is over; a page of a program in the background is not waited for.
    assert_eq!(bench.next_line(), None);
    assert_eq!(bench.shown(), format!("{HIDE}23\n\r> \x1b[K"));
    assert_eq!(bench.desk.answered, [(1, None)]);
}

#[test]
fn pages_end_with_their_command() {
    let mut bench = paged();
    bench.call::<Page>(COMMANDS, &false);
    assert!(!bench.print(&rows(24)));
    let mut bench = paged();
    bench.next_line();
    bench.typed(b"y\n");
    assert!(!bench.print(&rows(24)));
}

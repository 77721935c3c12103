//! Ctrl-S, and what goes on.

use proptest::prelude::*;

use super::super::output::{HELD_MAX, MARK};
use super::Bench;
use crate::line::view::CLEAR_ROW;
use crate::protocol::{COMMANDS, Page, Stop};

#[test]
fn output_is_held_until_a_key_goes_on() {
    let mut bench = Bench::new();
    for (key, rest) in [(&b"\x11"[..], ""), (b" ", " "), (b"x", "x")] {
        bench.print("one\n");
        bench.typed(b"\x13");
        bench.shown();
        assert_eq!(bench.try_print("two\n"), None);
        assert!(!bench.try_program("three\n"));
        bench.typed(b"\x13");
        assert_eq!(bench.shown(), "");
        bench.typed(key);
        assert_eq!(bench.shown(), "two\nthree\n");
        let mut answers = bench.desk.answered.drain(..);
        assert!(matches!(
            (answers.next(), answers.next(), answers.next()),
            (Some((_, Some(false))), Some((_, None)), None)
        ));
        drop(answers);
        // Ctrl-Q is nothing else; any other key is also itself.
        assert_eq!(bench.next_line(), None);
        bench.shown();
        bench.typed(b"\n");
        assert_eq!(bench.line().unwrap_or_default(), rest.trim());
        if rest.trim().is_empty() {
            bench.typed(b"ps\n");
            bench.line();
        }
        bench.shown();
    }
}

#[test]
fn ctrl_c_ends_a_command_whose_output_is_held() {
    for typed in [&b"\x03"[..], b"\x03\x13", b"\x13\x03"] {
        let mut bench = Bench::new();
        bench.guard(Stop::Process(9));
        bench.typed(b"\x13");
        assert_eq!(bench.try_print("held\n"), None);
        assert_eq!(bench.typed(typed), Stop::Process(9));
        assert_eq!(bench.desk.answered.len(), 1, "{typed:?}");
        // The program's own end is told, once the output goes on.
        bench.typed(b"\x11");
        assert!(bench.guard(Stop::Nothing));
        assert!(!bench.print("killed\n"));
        assert!(bench.shown().ends_with("killed\n"));
    }
}

#[test]
fn programs_that_write_while_output_is_held_wait_and_lose_nothing() {
    let mut bench = Bench::new();
    bench.next_line();
    bench.typed(b"half\x13");
    bench.shown();
    for number in 0..HELD_MAX {
        assert!(!bench.try_program(&format!("{number}\n")));
    }
    assert_eq!(bench.shown(), "");
    // With no room for another one that waits, its output is shown.
    bench.program("too many\n");
    assert_eq!(bench.shown(), "\r\x1b[Ktoo many\n\r> half\x1b[K");
    bench.typed(b"\x11");
    let shown = bench.shown();
    for number in 0..HELD_MAX {
        assert!(shown.contains(&format!("\x1b[K{number}\n")), "{number}");
    }
    assert_eq!(bench.desk.answered.len(), HELD_MAX);
    bench.typed(b"\n");
    assert_eq!(bench.line().as_deref(), Some("half"));
}

#[test]
fn a_line_can_be_typed_while_output_is_held() {
    let mut bench = Bench::new();
    bench.next_line();
    bench.typed(b"\x13");
    assert!(!bench.try_program("tick\n"));
    bench.typed(b"ps\n");
    assert_eq!(bench.line().as_deref(), Some("ps"));
    assert!(bench.shown().contains("tick\n"));
}

proptest! {
    /// However often output is held, by keys and by pages: all of it is shown, once and in order.
    #[test]
    fn held_output_is_shown_whole_and_in_order(
        paging: bool,
        writes in prop::collection::vec(("([a-z]{0,9}\n){0,30}", any::<bool>(), any::<bool>()), 0..12),
    ) {
        let mut bench = Bench::new();
        bench.call::<Page>(COMMANDS, &paging);
        let mut written = String::new();
        for (text, hold, program) in writes {
            if hold {
                bench.typed(b"\x13");
            }
            written.push_str(&text);
            let waits = match program {
                true => !bench.try_program(&text),
                false => bench.try_print(&text).is_none(),
            };
            // One goes on, one for each page that is full.
            let mut keys = 0;
            while waits && bench.desk.answered.is_empty() {
                prop_assert!(keys < 30, "{text:?} is never shown");
                bench.typed(b" ");
                keys += 1;
            }
            bench.desk.answered.clear();
        }
        let shown = bench.shown().replace(MARK, "").replace(CLEAR_ROW, "");
        prop_assert_eq!(shown, written);
    }
}

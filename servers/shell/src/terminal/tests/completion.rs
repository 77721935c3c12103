//! Tab: the command thread is asked, and typing waits for it.

use ipc::proto::Text;
use proptest::prelude::*;

use super::{Bench, line};
use crate::protocol::{Asked, Completion, Line};

fn insert(text: &str) -> Completion {
    Completion::Insert(Text::cut(text))
}

fn asked(before: &str, again: bool) -> Asked {
    Asked::Completion {
        before: Line::cut(before),
        again,
    }
}

/// A session at whose prompt this was typed.
fn typed(bytes: &[u8]) -> Bench {
    let mut bench = Bench::new();
    bench.next_line();
    bench.typed(bytes);
    bench.shown();
    bench
}

#[test]
fn what_is_typed_behind_the_tab_comes_behind_what_it_inserts() {
    let mut bench = typed(b"ru\tsle\t 5\n");
    assert_eq!(bench.desk.asked.take(), Some(asked("ru", false)));
    bench.typed(b"mem\n");
    assert_eq!(bench.shown(), "", "nothing before the completion");
    assert_eq!(bench.next(insert("n ")), Some(asked("run sle", false)));
    assert_eq!(
        bench.next(insert("ep")),
        Some(Asked::Line(Line::cut("run sleep 5")))
    );
    assert_eq!(bench.next_line().as_deref(), Some("mem"));
}

#[test]
fn a_second_tab_asks_for_the_choice_and_another_key_makes_it_a_first_one() {
    let mut bench = typed(b"re\t");
    assert_eq!(bench.desk.asked.take(), Some(asked("re", false)));
    assert_eq!(bench.next(Completion::Nothing), None);
    assert_eq!(bench.shown(), "\x07");
    bench.typed(b"\t");
    assert_eq!(bench.desk.asked.take(), Some(asked("re", true)));
    bench.print("reboot  repeat\n");
    assert_eq!(bench.shown(), "\r\x1b[Kreboot  repeat\n\r> re\x1b[K");
    assert_eq!(bench.next(Completion::Shown), None);
    assert_eq!(bench.shown(), "");
    bench.typed(b"p\x7f\t");
    assert_eq!(bench.desk.asked.take(), Some(asked("re", false)));
}

#[test]
fn a_word_in_the_middle_of_a_line_is_completed() {
    let mut bench = typed(b"hel ps\x01\x1b[C\x1b[C\x1b[C\t");
    assert_eq!(bench.desk.asked.take(), Some(asked("hel", false)));
    assert_eq!(bench.next(insert("p")), None);
    bench.typed(b"\n");
    assert_eq!(bench.line().as_deref(), Some("help ps"));
}

#[test]
fn ctrl_c_gives_a_prompt_at_once_and_the_completion_is_forgotten() {
    let mut bench = typed(b"kil\tlost");
    bench.desk.asked.take();
    bench.typed(b"\x03");
    assert_eq!(bench.shown(), "^C\n\r> \x1b[K");
    bench.typed(b"ps\n");
    assert!(bench.print("too late\n"));
    assert_eq!(bench.next(insert("l ")), Some(Asked::Line(Line::cut("ps"))));
    assert!(!bench.shown().contains("too late"));
}

#[test]
fn what_programs_write_meanwhile_goes_above_the_line() {
    let mut bench = typed(b"ab\t");
    bench.program("tick\n");
    assert_eq!(bench.shown(), "\r\x1b[Ktick\n\r> ab\x1b[K");
}

#[test]
fn a_line_without_room_for_it_is_left_alone() {
    let full = vec![b'x'; crate::line::LINE_MAX];
    let mut bench = typed(&[&full[..], b"\t"].concat());
    bench.shown();
    assert_eq!(bench.next(insert("yz ")), None);
    assert_eq!(bench.shown(), "\x07");
    bench.typed(b"\n");
    assert_eq!(bench.line().map(|line| line.len()), Some(full.len()));
}

/// What the command thread does until there is nothing more to do: takes lines, and completes nothing.
fn serve(bench: &mut Bench, asking: &mut bool, lines: &mut Vec<String>) {
    loop {
        let asked = match *asking {
            true => bench.desk.asked.take(),
            false => bench.next(Completion::Nothing),
        };
        *asking = asked.is_none();
        match asked {
            Some(Asked::Completion { .. }) => {}
            Some(asked) => lines.push(line(asked)),
            None => return,
        }
    }
}

proptest! {
    /// Tabs that complete nothing change nothing, wherever they are and however long a completion takes.
    #[test]
    fn typing_goes_through_completions_whole_and_in_order(
        pieces in prop::collection::vec(("[a-z \t\n]{0,40}", any::<bool>()), 0..20),
    ) {
        let (mut bench, mut asking, mut lines) = (Bench::new(), false, Vec::new());
        let mut typed = String::new();
        for (piece, done) in pieces {
            bench.typed(piece.as_bytes());
            typed.extend(piece.chars().filter(|&character| character != '\t'));
            if done {
                serve(&mut bench, &mut asking, &mut lines);
            }
        }
        bench.typed(b"\nend\n");
        serve(&mut bench, &mut asking, &mut lines);
        let last = lines.pop();
        prop_assert_eq!(last.as_deref(), Some("end"));
        let entered = typed.split('\n').filter(|line| !line.trim().is_empty());
        prop_assert!(lines.iter().map(String::as_str).eq(entered), "{lines:?}");
    }
}

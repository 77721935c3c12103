//! `echo`, `clear` and `exit`.

use super::{Bench, run};

#[test]
fn echo_prints_its_words() {
    assert_eq!(run("echo  one   \"two  three\" &"), "one two  three &\n");
    assert_eq!(run("echo"), "\n");
}

#[test]
fn clear_clears_and_takes_nothing() {
    assert_eq!(run("clear"), "\x1b[H\x1b[2J");
    assert_eq!(run("clear all"), "clear: `all` is too much; usage: clear\n");
}

#[test]
fn exit_ends_a_session_that_can_be_left() {
    let mut bench = Bench::default();
    assert_eq!(bench.run("exit"), "exit: leave by another door\n");
    bench.session.left = Some(0);
    assert_eq!(bench.run("exit now").lines().count(), 1);
    assert_eq!(bench.session.left, Some(0));
    assert_eq!(bench.run("exit"), "");
    assert_eq!(bench.session.left, Some(1));
}

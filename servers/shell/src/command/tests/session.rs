//! `echo` and `clear`.

use super::run;

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

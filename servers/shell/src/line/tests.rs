//! The editor against a model of a line and a model of a terminal's row.

use proptest::prelude::*;

use super::view::{COLUMNS, PROMPT};
use super::{Decoder, Editor, Event, Key, LINE_MAX};

/// One row of a terminal: what the editor's output leaves there.
#[derive(Default)]
struct Row {
    cells: Vec<char>,
    column: usize,
}

impl Row {
    fn feed(&mut self, text: &str) {
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            match character {
                '\r' => self.column = 0,
                '\n' => *self = Self::default(),
                '\x1b' => {
                    assert_eq!(characters.next(), Some('['), "only control sequences");
                    let mut number = String::new();
                    let last = loop {
                        match characters.next().expect("a whole sequence") {
                            digit @ '0'..='9' => number.push(digit),
                            last => break last,
                        }
                    };
                    let number = number.parse::<usize>().ok();
                    match (last, number) {
                        ('K', None) => self.cells.truncate(self.column),
                        ('C', Some(columns)) => self.column += columns,
                        ('H', None) => self.column = 0,
                        ('J', Some(2)) => self.cells.clear(),
                        other => panic!("not plain: {other:?}"),
                    }
                }
                shown => {
                    if self.cells.len() <= self.column {
                        self.cells.resize(self.column + 1, ' ');
                    }
                    self.cells[self.column] = shown;
                    self.column += 1;
                    assert!(self.column < 80, "a character in the last column may wrap");
                }
            }
        }
    }

    /// That the row is the prompt and a window of the text, marked where the text is cut, and the cursor where it belongs.
    fn check(&self, text: &str, before: &str) {
        let text: Vec<char> = text.chars().collect();
        let cursor = before.chars().count();
        let column = self
            .column
            .checked_sub(PROMPT.len())
            .expect("past the prompt");
        let first = cursor
            .checked_sub(column)
            .expect("a window inside the text");
        let window = &text[first..];
        let expected: String = match first {
            0 => PROMPT.chars(),
            _ => "><".chars(),
        }
        .chain(window.iter().copied().take(COLUMNS))
        .chain((window.len() > COLUMNS).then_some('>'))
        .collect();
        let row: String = self.cells.iter().collect();
        assert_eq!(row.trim_end(), expected.trim_end());
    }
}

/// The line as the simplest thing that could hold it.
#[derive(Default)]
struct Model {
    text: Vec<char>,
    cursor: usize,
    lost: bool,
    lines: Vec<String>,
}

impl Model {
    fn bytes(&self) -> usize {
        self.text.iter().map(|c| c.len_utf8()).sum()
    }
    fn word_start(&self) -> usize {
        let mut at = self.cursor;
        while at > 0 && self.text[at - 1] == ' ' {
            at -= 1;
        }
        while at > 0 && self.text[at - 1] != ' ' {
            at -= 1;
        }
        at
    }
    fn clear(&mut self) {
        self.text.clear();
        self.cursor = 0;
        self.lost = false;
    }
    /// Applies a key other than Up and Down, which the history's own tests cover.
    fn key(&mut self, key: Key) {
        let end = self.text.len();
        match key {
            Key::Char(c) if self.bytes() + c.len_utf8() > LINE_MAX => self.lost = true,
            Key::Char(c) => {
                self.text.insert(self.cursor, c);
                self.cursor += 1;
            }
            Key::Enter => {
                let line: String = self.text.iter().collect();
                if !self.lost && !line.trim().is_empty() {
                    self.lines.push(line);
                }
                self.clear();
            }
            Key::Interrupt => self.clear(),
            Key::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.text.remove(self.cursor);
            }
            Key::Delete | Key::EndOfInput if self.cursor < end => {
                self.text.remove(self.cursor);
            }
            Key::Left => self.cursor = self.cursor.saturating_sub(1),
            Key::Right => self.cursor = end.min(self.cursor + 1),
            Key::Home => self.cursor = 0,
            Key::End => self.cursor = end,
            Key::WordLeft => self.cursor = self.word_start(),
            Key::WordRight => {
                while self.cursor < end && self.text[self.cursor] == ' ' {
                    self.cursor += 1;
                }
                while self.cursor < end && self.text[self.cursor] != ' ' {
                    self.cursor += 1;
                }
            }
            Key::KillToEnd => self.text.truncate(self.cursor),
            Key::KillToStart => {
                self.text.drain(..self.cursor);
                self.cursor = 0;
                self.lost &= !self.text.is_empty();
            }
            Key::KillWord => {
                let start = self.word_start();
                self.text.drain(start..self.cursor);
                self.cursor = start;
            }
            _ => {}
        }
    }
}

fn key() -> impl Strategy<Value = Key> {
    use Key::*;
    prop_oneof![
        8 => prop_oneof![Just(' '), Just('a'), Just('é'), Just('→')].prop_map(Char),
        4 => prop::sample::select(vec![
            Backspace, Delete, Left, Right, WordLeft, WordRight, Home, End, KillToEnd, KillToStart,
            KillWord, Clear, EndOfInput,
        ]),
        1 => prop::sample::select(vec![Enter, Interrupt]),
    ]
}

/// Runs of the same key: long lines and long ways across them.
fn keys() -> impl Strategy<Value = Vec<Key>> {
    let run = (key(), prop_oneof![4 => 1..6usize, 1 => 1..700usize]);
    prop::collection::vec(run, 1..30).prop_map(|runs| {
        let repeat = |(key, count)| std::iter::repeat_n(key, count);
        runs.into_iter().flat_map(repeat).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_line_and_the_row_follow_the_model(keys in keys()) {
        let (mut editor, mut model, mut row) = (Editor::default(), Model::default(), Row::default());
        let (mut out, mut lines) = (String::new(), Vec::new());
        editor.show(&mut out);
        for key in keys {
            if let Some(Event::Line(line)) = editor.key(key, &mut out) {
                lines.push(line);
                editor.show(&mut out);
            }
            model.key(key);
            row.feed(&std::mem::take(&mut out));
            let (text, before) = editor.line();
            prop_assert_eq!(text, model.text.iter().collect::<String>());
            prop_assert_eq!(before.chars().count(), model.cursor);
            row.check(text, before);
        }
        prop_assert_eq!(lines, model.lines);
    }

    /// Whatever came before, Ctrl-C and then a line gives that line.
    #[test]
    fn no_bytes_jam_the_editor(bytes in prop::collection::vec(any::<u8>(), 0..4000)) {
        let (mut decoder, mut editor, mut out) = (Decoder::default(), Editor::default(), String::new());
        let mut lines = Vec::new();
        for &byte in bytes.iter().chain(b"\x03mem\r") {
            for key in decoder.feed(byte).into_iter().flatten() {
                if let Some(Event::Line(line)) = editor.key(key, &mut out) {
                    prop_assert!(line.len() <= LINE_MAX && !line.contains(char::is_control));
                    lines.push(line);
                }
            }
        }
        prop_assert_eq!(lines.last().map(String::as_str), Some("mem"));
        prop_assert!(!out.contains('\0'));
    }
}

fn enter(editor: &mut Editor, bytes: &[u8]) -> (Vec<String>, String) {
    let (mut decoder, mut out, mut lines) = (Decoder::default(), String::new(), Vec::new());
    for &byte in bytes {
        for key in decoder.feed(byte).into_iter().flatten() {
            if let Some(Event::Line(line)) = editor.key(key, &mut out) {
                lines.push(line);
            }
        }
    }
    (lines, out)
}

#[test]
fn a_line_of_ten_thousand_bytes_gets_one_error_and_a_fresh_prompt() {
    let mut editor = Editor::default();
    let mut bytes = vec![b'x'; 10_000];
    bytes.extend(b"\rps\r");
    let (lines, out) = enter(&mut editor, &bytes);
    assert_eq!(lines, ["ps"]);
    assert_eq!(
        out.matches("line too long: at most 1024 bytes\n").count(),
        1
    );
    assert!(out.len() < 8_000, "{} bytes of echo", out.len());
}

#[test]
fn a_line_of_exactly_the_limit_is_entered() {
    let mut bytes = vec![b'x'; LINE_MAX];
    bytes.push(b'\r');
    assert_eq!(enter(&mut Editor::default(), &bytes).0[0].len(), LINE_MAX);
}

#[test]
fn a_wide_character_at_an_edge_is_blank_there() {
    let mut editor = Editor::default();
    // 38 wide characters: the last one is half outside.
    enter(&mut editor, "字".repeat(38).as_bytes());
    let (_, out) = enter(&mut editor, b"\x1b[H");
    let shown = "字".repeat(37);
    assert_eq!(out, format!("\r> {shown} >\x1b[K\r\x1b[2C"));
    // From the end the window begins in the middle of one.
    let (_, out) = enter(&mut editor, b"\x1b[F");
    let shown = "字".repeat(18);
    assert_eq!(out, format!("\r>< {shown}\x1b[K"));
}

#[test]
fn history_recalls_and_edits() {
    let mut editor = Editor::default();
    let (lines, _) = enter(&mut editor, b"one\rtwo\r\x1b[A\x1b[A\x1b[B!\r");
    assert_eq!(lines, ["one", "two", "two!"]);
}

#[test]
fn echo_of_plain_typing_is_plain() {
    let mut editor = Editor::default();
    assert_eq!(enter(&mut editor, b"ps\r").1, "ps\n");
    assert_eq!(enter(&mut editor, b"x\x03").1, "x^C\n\r> \x1b[K");
}

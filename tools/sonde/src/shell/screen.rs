//! What of the machine's output is shown, and when it waits for a line.

use super::row::{Row, is_echo};

/// What the machine's shell is doing, as far as its output tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// A command runs, or the session begins: all is shown as it is.
    Running,
    /// A line was sent, whose echo is still to come.
    Echo,
    /// It waits for a line, which is edited here.
    Prompt,
}

/// The machine's output so far.
#[derive(Debug)]
pub struct Screen {
    row: Row,
    phase: Phase,
}

/// What is to be shown of a piece of output.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Rows that ended while a line is edited or its echo awaited: output of programs in the background.
    pub above: Vec<String>,
    /// Bytes for the terminal, as they are.
    pub bytes: Vec<u8>,
}

impl Default for Screen {
    fn default() -> Self {
        Self {
            row: Row::default(),
            phase: Phase::Running,
        }
    }
}

impl Screen {
    /// Takes a piece of output.
    pub fn output(&mut self, bytes: &[u8]) -> Shown {
        let mut shown = Shown::default();
        for &byte in bytes {
            let ended = self.row.feed(byte);
            match (self.phase, ended) {
                (Phase::Running, _) => shown.bytes.push(byte),
                (Phase::Echo, Some(row)) if is_echo(&row) => self.phase = Phase::Running,
                (Phase::Echo | Phase::Prompt, Some(row)) => shown.above.push(row),
                (Phase::Echo | Phase::Prompt, None) => {}
            }
        }
        shown
    }

    /// Whether the machine waits for a line, and nobody edits one yet. If so, gives what was typed ahead, and from now on its prompt is not shown.
    pub fn prompt(&mut self) -> Option<String> {
        if self.phase != Phase::Running || !self.row.is_prompt() {
            return None;
        }
        self.phase = Phase::Prompt;
        Some(self.row.typed())
    }

    /// A line, or Ctrl-C, was sent to the prompt.
    pub fn sent(&mut self) {
        self.phase = Phase::Echo;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use shell::line::{Decoder, Editor, Event};

    const PROMPT: &[u8] = b"\r> \x1b[K";

    /// A screen whose machine waits for its first line.
    fn at_prompt() -> Screen {
        let mut screen = Screen::default();
        let shown = screen.output(&[b"Sonde\r\n", PROMPT].concat());
        assert_eq!(shown.bytes, [b"Sonde\r\n", PROMPT].concat());
        assert_eq!(screen.prompt().as_deref(), Some(""));
        screen
    }

    #[test]
    fn the_echo_of_a_line_is_left_out_and_its_output_is_not() {
        let mut screen = at_prompt();
        screen.sent();
        assert_eq!(screen.output(b"\r> \x1b[K\r> \x1b[Kps"), Shown::default());
        let shown = screen.output(b"\r\nPID NAME\r\n");
        assert_eq!(shown.bytes, b"PID NAME\r\n");
        assert_eq!(screen.prompt(), None);
        screen.output(PROMPT);
        assert_eq!(screen.prompt().as_deref(), Some(""));
        assert_eq!(screen.prompt(), None, "once is enough");
    }

    #[test]
    fn output_of_programs_in_the_background_comes_above_the_line() {
        let mut screen = at_prompt();
        let shown = screen.output(b"\r\x1b[Ktick\r\n\r> \x1b[K");
        assert_eq!(shown.above, ["tick"]);
        assert_eq!(shown.bytes, b"");
        screen.sent();
        // It comes in the middle of the echo, too.
        let shown = screen.output(b"> p\r\x1b[Ktock\r\n\r> p\x1b[Ks\r\nPID\r\n");
        assert_eq!(shown.above, ["tock"]);
        assert_eq!(shown.bytes, b"PID\r\n");
    }

    #[test]
    fn what_was_typed_ahead_is_to_be_edited() {
        let mut screen = Screen::default();
        screen.output(b"\r> pro\x1b[K");
        assert_eq!(screen.prompt().as_deref(), Some("pro"));
    }

    #[test]
    fn an_interrupted_line_leaves_a_fresh_prompt() {
        let mut screen = at_prompt();
        screen.sent();
        assert_eq!(screen.output(b"^C\r\n\r> \x1b[K").above, [""; 0]);
        assert_eq!(screen.prompt().as_deref(), Some(""));
    }

    /// What the shell's own editor draws for these keys, as it goes to a terminal, and the line that it takes them for.
    fn drawn(editor: &mut Editor, keys: &[u8]) -> (Vec<u8>, Option<Event>) {
        let (mut decoder, mut out, mut event) = (Decoder::default(), String::new(), None);
        for &byte in keys {
            for key in decoder.feed(byte).into_iter().flatten() {
                event = event.or(editor.key(key, &mut out));
            }
        }
        (out.replace('\n', "\r\n").into_bytes(), event)
    }

    #[test]
    fn the_shells_own_echo_is_left_out_whatever_the_line() {
        let mut editor = Editor::default();
        for line in [
            "ps".to_owned(),
            "echo für größe 漢字".to_owned(),
            "x".repeat(74),
            "x".repeat(75),
            "x".repeat(76),
            "echo ".to_owned() + &"long line ".repeat(90),
            "> ps".to_owned(),
        ] {
            let mut screen = at_prompt();
            // Somebody typed ahead, and the cursor is in the middle of it.
            let (ahead, _) = drawn(&mut editor, b"typed ahead\x1b[D\x1b[D");
            assert_eq!(screen.output(&ahead), Shown::default());
            screen.sent();
            let (mut output, entered) = drawn(&mut editor, &super::super::entered(&line));
            assert_eq!(entered, Some(Event::Line(line.clone())));
            output.extend_from_slice(b"PID\r\n");
            let shown = screen.output(&output);
            assert_eq!(
                (&shown.bytes[..], &shown.above[..]),
                (&b"PID\r\n"[..], &[][..]),
                "{line}"
            );
            let mut prompt = String::new();
            editor.show(&mut prompt);
            screen.output(prompt.as_bytes());
            assert_eq!(screen.prompt().as_deref(), Some(""), "{line}");
        }
    }
}

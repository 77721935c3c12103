//! A session's terminal, driven as its threads, its user and its programs drive it.

mod completion;
mod hang_up;
mod hold;
mod pages;

use ipc::abi::Error;
use ipc::proto::stream::{CHUNK_MAX, Chunk, Flush, Read, Write};
use ipc::proto::{Disposition, Message, Operation, Responder, Text};
use proptest::prelude::*;

use crate::protocol::{
    Asked, COMMANDS, Completion, Guard, INPUT, Input, NextLine, PROGRAMS, Page, Print, Stop, serve,
};
use crate::session::Leave;
use crate::terminal::{AHEAD_MAX, Closed, Sink, Terminal};

/// As on the console.
const LEAVE: Leave = Leave {
    how: "leave so",
    ends: false,
};

#[derive(Default)]
struct Screen {
    text: String,
    closed: bool,
}

impl Sink for Screen {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        if self.closed {
            return Err(Closed);
        }
        self.text.push_str(&String::from_utf8_lossy(bytes));
        Ok(())
    }
}

/// Keeps the calls that a terminal parks, by number, and their answers.
#[derive(Default)]
struct Desk {
    parked: usize,
    /// What the command thread was asked for, if that was answered later.
    asked: Option<Asked>,
    /// The other calls answered later: their numbers, and a command's answer.
    answered: Vec<(usize, Option<bool>)>,
    /// Those that were refused later.
    refused: Vec<usize>,
}

impl Responder for Desk {
    type Handle = ();
    type Parked = usize;
    fn park(&mut self) -> Result<usize, Error> {
        self.parked += 1;
        Ok(self.parked)
    }
    fn answer(&mut self, call: usize, message: &mut Message<()>) -> Result<(), Error> {
        match message.bytes.len() {
            _ if message.op != 0 => self.refused.push(call),
            0 => self.answered.push((call, None)),
            1 => match message.get() {
                Ok(ended) => self.answered.push((call, Some(ended))),
                Err(_) => self.asked = Some(Asked::Leave),
            },
            _ => self.asked = Some(message.get().expect("what is asked for")),
        }
        Ok(())
    }
}

struct Bench {
    terminal: Terminal<SharedScreen, Desk>,
    screen: SharedScreen,
    desk: Desk,
}

#[derive(Clone, Default)]
struct SharedScreen(std::rc::Rc<std::cell::RefCell<Screen>>);

impl Sink for SharedScreen {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        self.0.borrow_mut().write(bytes)
    }
}

impl Bench {
    fn new() -> Self {
        let screen = SharedScreen::default();
        Self {
            terminal: Terminal::new(screen.clone(), LEAVE),
            screen,
            desk: Desk::default(),
        }
    }
    /// A call; `None` if it is parked, the status if it was refused.
    fn call<O: Operation>(
        &mut self,
        badge: u64,
        request: &O::Request,
    ) -> Option<Result<O::Reply, u16>> {
        let mut message = Message::new();
        message.put(O::NUMBER, request).expect("it fits");
        match serve(&mut self.terminal, &mut self.desk, badge, &mut message) {
            Disposition::Parked => None,
            Disposition::Reply if message.op == 0 => Some(Ok(message.get().expect("a reply"))),
            Disposition::Reply => Some(Err(message.op)),
        }
    }
    fn typed(&mut self, bytes: &[u8]) -> Stop {
        let mut stop = Stop::Nothing;
        for chunk in bytes.chunks(CHUNK_MAX) {
            let chunk = Chunk::try_from(chunk).expect("a chunk");
            match self
                .call::<Input>(INPUT, &chunk)
                .expect("at once")
                .expect("served")
            {
                Stop::Nothing => {}
                other => stop = other,
            }
        }
        stop
    }
    /// The command thread asks for a line; `None` if it waits.
    fn next_line(&mut self) -> Option<String> {
        self.next(Completion::Nothing).map(line)
    }
    fn next(&mut self, completion: Completion) -> Option<Asked> {
        Some(
            self.call::<NextLine>(COMMANDS, &completion)?
                .expect("served"),
        )
    }
    /// The line that the command thread waited for.
    fn line(&mut self) -> Option<String> {
        self.desk.asked.take().map(line)
    }
    fn print(&mut self, text: &str) -> bool {
        self.try_print(text).expect("at once")
    }
    /// `None` if the command waits.
    fn try_print(&mut self, text: &str) -> Option<bool> {
        let chunk = Chunk::try_from(text.as_bytes()).expect("a chunk");
        Some(self.call::<Print>(COMMANDS, &chunk)?.expect("served"))
    }
    fn guard(&mut self, stop: Stop) -> bool {
        self.call::<Guard>(COMMANDS, &stop)
            .expect("at once")
            .expect("served")
    }
    fn program(&mut self, text: &str) {
        assert!(self.try_program(text), "at once");
    }
    /// `false` if the program waits.
    fn try_program(&mut self, text: &str) -> bool {
        let chunk = Chunk::try_from(text.as_bytes()).expect("a chunk");
        let answer = self.call::<Write>(PROGRAMS, &chunk);
        answer.map(|answer| answer.expect("served")).is_some()
    }
    fn shown(&self) -> String {
        std::mem::take(&mut self.screen.0.borrow_mut().text)
    }
}

fn line(asked: Asked) -> String {
    match asked {
        Asked::Line(line) => line.as_str().into(),
        other => panic!("no line: {other:?}"),
    }
}

#[test]
fn a_prompt_a_line_and_its_output() {
    let mut bench = Bench::new();
    bench.print("banner\n");
    assert!(!bench.terminal.is_at_prompt());
    assert_eq!(bench.next_line(), None);
    assert_eq!(bench.shown(), "banner\n\r> \x1b[K");
    assert!(bench.terminal.is_at_prompt());
    bench.typed(b"ps\r\n");
    assert!(!bench.terminal.is_at_prompt());
    assert_eq!(bench.line().as_deref(), Some("ps"));
    bench.print("PID\nno end");
    assert_eq!(bench.next_line(), None);
    assert_eq!(bench.shown(), "ps\nPID\nno end\n\r> \x1b[K");
}

#[test]
fn what_is_typed_while_a_command_runs_comes_at_the_prompt() {
    let mut bench = Bench::new();
    assert_eq!(bench.typed(b"one\ntwo\nthr"), Stop::Nothing);
    assert_eq!(bench.shown(), "");
    assert_eq!(bench.next_line().as_deref(), Some("one"));
    assert_eq!(bench.next_line().as_deref(), Some("two"));
    assert_eq!(bench.next_line(), None);
    bench.typed(b"ee\n");
    assert_eq!(bench.line().as_deref(), Some("three"));
}

#[test]
fn too_much_typed_ahead_is_lost_and_announced() {
    let mut bench = Bench::new();
    bench.typed(&vec![b'\n'; AHEAD_MAX + 7]);
    assert_eq!(bench.next_line(), None);
    let announced = format!("lost 7 bytes typed meanwhile: at most {AHEAD_MAX} are kept\n");
    assert!(bench.shown().starts_with(&announced));
    bench.typed(b"mem\n");
    assert_eq!(bench.line().as_deref(), Some("mem"));
}

#[test]
fn ctrl_c_ends_what_the_command_said_and_forgets_what_was_typed_before() {
    let mut bench = Bench::new();
    assert!(!bench.guard(Stop::Process(9)));
    assert_eq!(bench.typed(b"lost\n\x03kept\n"), Stop::Process(9));
    assert_eq!(bench.shown(), "^C\n");
    assert!(bench.print("x\n"));
    assert_eq!(bench.shown(), "", "its output has ended");
    assert!(bench.guard(Stop::Nothing), "the command hears of it");
    assert!(!bench.print("how it ended\n"), "once");
    assert_eq!(bench.next_line().as_deref(), Some("kept"));
    assert!(!bench.print("a new command\n"));
    assert!(!bench.guard(Stop::Nothing));
    assert_eq!(bench.typed(b"\x03"), Stop::Nothing);
}

#[test]
fn ctrl_c_is_seen_when_no_more_can_be_kept() {
    let mut bench = Bench::new();
    bench.guard(Stop::Profile(5));
    bench.typed(&vec![b'x'; AHEAD_MAX + 1]);
    assert_eq!(bench.typed(b"\x03"), Stop::Profile(5));
    assert_eq!(bench.next_line(), None);
    assert_eq!(bench.shown(), "^C\n\r> \x1b[K");
}

#[test]
fn ctrl_c_in_the_same_bytes_as_the_line_is_for_its_command() {
    let mut bench = Bench::new();
    bench.next_line();
    assert_eq!(bench.typed(b"profile\n\x03"), Stop::Nothing);
    assert_eq!(bench.line().as_deref(), Some("profile"));
    assert!(bench.guard(Stop::Profile(5)));
    // The same, typed ahead.
    bench.typed(b"\x03run spin\n");
    assert_eq!(bench.next_line().as_deref(), Some("run spin"));
    assert!(!bench.guard(Stop::Process(1)));
}

#[test]
fn ctrl_c_at_the_prompt_gives_a_fresh_one() {
    let mut bench = Bench::new();
    bench.next_line();
    bench.shown();
    assert_eq!(bench.typed(b"half\x03"), Stop::Nothing);
    assert_eq!(bench.shown(), "half^C\n\r> \x1b[K");
    bench.typed(b"\x04");
    assert_eq!(bench.shown(), "\nleave so\n\r> \x1b[K");
}

#[test]
fn output_at_the_prompt_goes_above_the_line() {
    let mut bench = Bench::new();
    bench.next_line();
    bench.typed(b"ab");
    bench.shown();
    bench.program("tick\n");
    assert_eq!(bench.shown(), "\r\x1b[Ktick\n\r> ab\x1b[K");
    bench.program("no end");
    assert_eq!(bench.shown(), "\r\x1b[Kno end\n\r> ab\x1b[K");
}

#[test]
fn programs_can_write_and_flush_and_nothing_else() {
    let mut bench = Bench::new();
    let chunk = Chunk::new();
    assert!(matches!(bench.call::<Read>(PROGRAMS, &1), Some(Err(1))));
    assert!(matches!(bench.call::<Flush>(PROGRAMS, &()), Some(Ok(()))));
    assert!(matches!(
        bench.call::<Input>(PROGRAMS, &chunk),
        Some(Err(1))
    ));
    assert!(matches!(
        bench.call::<NextLine>(PROGRAMS, &Completion::Nothing),
        Some(Err(1))
    ));
    assert!(matches!(bench.call::<Print>(INPUT, &chunk), Some(Err(1))));
    assert!(matches!(
        bench.call::<Guard>(PROGRAMS, &Stop::Profile(5)),
        Some(Err(1))
    ));
}

#[test]
fn a_session_that_is_gone_fails_its_writers() {
    let mut bench = Bench::new();
    bench.screen.0.borrow_mut().closed = true;
    let chunk = Chunk::try_from(&b"x"[..]).expect("a chunk");
    assert!(matches!(
        bench.call::<Write>(PROGRAMS, &chunk),
        Some(Err(1))
    ));
    assert!(matches!(
        bench.call::<NextLine>(COMMANDS, &Completion::Nothing),
        Some(Err(1))
    ));
}

#[test]
fn sessions_do_not_touch_each_other() {
    let (mut one, mut two) = (Bench::new(), Bench::new());
    one.next_line();
    two.next_line();
    one.typed(b"mem");
    two.typed(b"ps\n");
    one.program("for one\n");
    assert_eq!((one.line(), two.line().as_deref()), (None, Some("ps")));
    assert!(!two.shown().contains("for one"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is typed, in whatever pieces, while commands print, in pages or not, or words are completed: afterwards Ctrl-C
    /// and a line give that line.
    #[test]
    fn no_bytes_jam_a_session(
        pieces in prop::collection::vec((typed_bytes(), 0..5u8), 0..16),
    ) {
        let mut bench = Bench::new();
        // What the command thread waits for.
        let (mut asking, mut printing) = (false, false);
        for (bytes, step) in pieces {
            bench.typed(&bytes);
            asking &= bench.desk.asked.take().is_none();
            printing &= bench.desk.answered.pop().is_none();
            if asking || printing {
                continue;
            }
            match step {
                0 => printing = bench.try_print(&"row\n".repeat(200)).is_none(),
                1 => drop(bench.call::<Page>(COMMANDS, &true)),
                2 => drop(bench.guard(Stop::Process(9))),
                3 => asking = bench.next(Completion::Insert(Text::cut("ps "))).is_none(),
                _ => asking = bench.next(Completion::Nothing).is_none(),
            }
        }
        bench.typed(b"\x03mem\n");
        if printing {
            prop_assert!(bench.desk.answered.pop().is_some());
        }
        let asked = if asking { bench.desk.asked.take() } else { bench.next(Completion::Nothing) };
        let last = asked.map(line);
        prop_assert_eq!(last.as_deref(), Some("mem"));
    }
}

/// Bytes, those that mean something here among them.
fn typed_bytes() -> impl Strategy<Value = Vec<u8>> {
    let key = prop::sample::select(&b"\t\x13\x11\x03\r\n q"[..]);
    prop::collection::vec(prop_oneof![any::<u8>(), key], 0..400)
}

//! What is said of bad input and of what is refused: a line that names it.

use ipc::abi::Error;
use ipc::abi::monitor::{Interface, Verdict};
use ipc::proto::CallError;
use ipc::proto::init::{Ending, InitError, Name};
use ipc::proto::profd::{Holder, Refusal, SessionName, Source};
use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

use super::super::COMMANDS;
use super::{Bench, run};
use crate::line::view::CLEAR_SCREEN;

#[test]
fn an_unknown_command_points_to_help() {
    assert_eq!(
        run("frobnicate 1"),
        "no command `frobnicate`; `help` lists what there is\n"
    );
    let long = run(&"é".repeat(500));
    assert!(long.chars().count() < 80 && long.contains("..`"), "{long}");
    assert_eq!(run("ps \"x"), "ps: a quote has no end\n");
}

/// None can be typed at a terminal; a session of one command brings its line as it is.
#[test]
fn control_characters_are_shown_to_nobody() {
    for line in ["ps\nkill 7", "echo \u{1b}[2J", "\t", "ps \u{9b}"] {
        assert_eq!(run(line), "no command: a line has no control characters\n");
    }
}

/// A refusal of each kind, each with the longest of what it names.
fn refusals() -> Vec<Refusal> {
    let pid = u32::MAX;
    let holder = Holder {
        pid: 99_999,
        program: Name::cut(&"p".repeat(99)),
        session: SessionName::cut(&"s".repeat(99)),
    };
    vec![
        Refusal::BadRequest,
        Refusal::Busy { holder },
        Refusal::NoSource {
            asked: Source::Timer,
        },
        Refusal::NoProcess { pid },
        Refusal::ProcessEnded { pid },
        Refusal::NotArmed {
            cpus: 0xff,
            waited_ms: 500,
        },
        Refusal::Driver { error: u64::MAX },
        Refusal::Driver {
            error: Error::MissingRight as u64,
        },
        Refusal::Stopped,
        Refusal::NoMemory,
        Refusal::NoCounter {
            cpu: 63,
            interface: Interface::Intel as u8,
            verdict: Verdict::Implausible as u8,
        },
    ]
}

/// Every error of init, by its number on the wire.
fn init_errors() -> Vec<InitError> {
    let errors = (0..=u8::MAX).map_while(|number| {
        let bytes = [number, Error::MissingRight as u8];
        postcard::from_bytes(&bytes).ok()
    });
    errors.collect()
}

#[test]
fn an_error_is_one_line_that_fits_a_row() {
    let long = "x".repeat(99);
    let mut texts: Vec<String> = [
        "LONG",
        "help LONG",
        "help a LONG",
        "profile LONG",
        "profile 1 LONG",
        "profile 1 all LONG",
        "profile 1 all 1 LONG",
        "profile depth",
        "profile depth LONG",
        "profile source",
        "profile source LONG",
        "profile -LONG",
        "ps LONG",
        "run",
        "run LONG",
        "demo LONG",
        "demo stop",
        "demo stop LONG",
        "kill",
        "kill LONG",
        "kill 1 LONG",
        "mem LONG",
        "uptime LONG",
        "dmesg LONG 1",
        "dmesg 1 2 LONG",
        "version LONG",
        "poweroff LONG",
        "clear LONG",
        "repeat",
        "repeat LONG",
        "repeat 0 ps",
        "repeat 1000001 ps",
        "repeat -1 ps",
        "repeat 3",
        "repeat 3 LONG",
        "repeat 3 repeat 3 ps",
        "time",
        "time LONG",
        "time time ps",
        "time ps LONG",
        "more",
        "more LONG",
        "more run LONG &",
        "\"LONG",
    ]
    .iter()
    .map(|line| run(&line.replace("LONG", &long)))
    .collect();
    let errors = init_errors();
    assert!(errors.len() > 12, "{errors:?}");
    for error in errors {
        let mut bench = Bench::default();
        for line in ["run anameofsixteenby", "kill 4294967295", "demo"] {
            bench.system.refuse = Some(CallError::Service(error));
            texts.push(bench.run(line));
        }
    }
    for refusal in refusals() {
        let mut bench = Bench::default();
        bench.system.profile = Some(Err(CallError::Service(refusal)));
        texts.push(bench.run("profile"));
    }
    for text in texts {
        let fits = text.lines().all(|line| line.width() <= 80);
        assert!(text.lines().count() == 1 && fits, "{text}");
    }
}

#[test]
fn an_error_that_is_longer_goes_on_behind_two_blanks() {
    let mut bench = Bench::default();
    let not_armed = Refusal::NotArmed {
        cpus: u64::MAX,
        waited_ms: 500,
    };
    bench.system.profile = Some(Err(CallError::Service(not_armed)));
    let text = bench.run("profile");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    assert!(text.lines().skip(1).all(|line| line.starts_with("  ")));
    assert!(text.ends_with(" 63\n"), "{text}");
}

proptest! {
    /// Whatever is typed, a command answers with whole lines, and nothing is ended or powered off that was not named.
    #[test]
    fn any_line_is_answered(words in prop::collection::vec(
        prop_oneof![
            (0..COMMANDS.len()).prop_map(|index| COMMANDS[index].name.to_string()),
            "[0-9]{1,12}", "&", "all", "source", "\"", "\\PC{0,12}",
        ],
        0..6,
    )) {
        let mut bench = Bench::default();
        bench.system.profile = Some(Ok("profiled\n".into()));
        bench.system.end(7, "x", Ending::Exited, 0);
        let text = bench.run(&words.join(" "));
        prop_assert!(text.is_empty() || text.ends_with('\n') || text.ends_with(CLEAR_SCREEN), "{text:?}");
        // What is echoed is as wide as it was typed.
        let echoes = words.contains(&"echo".to_string());
        prop_assert!(echoes || text.lines().all(|line| line.width() <= 80), "{text}");
        prop_assert!(!bench.system.powered_off || words.contains(&"poweroff".to_string()));
    }
}

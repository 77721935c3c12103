//! The bytes of every message, and what they are made of.

use super::*;
use crate::abi::exit::FaultKind;

fn bytes<T: Serialize>(value: &T) -> Vec<u8> {
    let mut buffer = [0; 2048];
    postcard::to_slice(value, &mut buffer).unwrap().to_vec()
}

fn name(text: &str) -> Name {
    Name::try_from(text).unwrap()
}

#[test]
fn args_are_kept_apart() {
    let mut args = Args::new();
    for arg in ["60", "", "a b"] {
        args.push(arg).unwrap();
    }
    assert!(args.iter().eq(["60", "", "a b"]));
    assert_eq!(args.push("a\0b"), Err(TooLong));
    assert_eq!(args.push(&"x".repeat(ARGS_MAX)), Err(TooLong));
    assert_eq!(args.iter().count(), 3);
    assert_eq!(Args::new().iter().count(), 0);
}

#[test]
fn wire_bytes_of_requests_are_pinned() {
    let mut args = Args::new();
    args.push("60").unwrap();
    let spawn = Spawn {
        program: name("shares"),
        args,
        held: true,
    };
    assert_eq!(bytes(&spawn), b"\x06shares\x0360\0\x01");
    assert_eq!(bytes(&300_u32), [0xac, 2]);
    assert_eq!(
        OPERATIONS,
        [
            (1, "spawn"),
            (2, "release"),
            (3, "wait"),
            (4, "kill"),
            (5, "next"),
            (6, "subscribe"),
            (7, "next_event"),
            (8, "next_program"),
            (9, "command_line"),
        ]
    );
}

#[test]
fn wire_bytes_of_answers_are_pinned() {
    let report = ExitReport {
        pid: 7,
        name: name("ab"),
        ending: Ending::Faulted,
        code: 300,
        crash: None,
        cpu_ns: 128,
    };
    assert_eq!(bytes(&report), b"\x07\x02ab\x02\xac\x02\x00\x80\x01");
    let crash = Crash::from(&abi::exit::CrashReport {
        kind: 4,
        tid: 9,
        frames: 99,
        end: 1,
        ..Default::default()
    });
    assert_eq!(crash.fault(), Some(FaultKind::Divide));
    let mut expected = vec![4, 9, 0, 0];
    expected.extend([0; 18]);
    expected.push(16);
    expected.extend([0; 16]);
    expected.push(1);
    assert_eq!(bytes(&crash), expected);
    let info = ProcessInfo {
        pid: 7,
        name: name("ab"),
        state: 2,
        cpu: Some(1),
        threads: 3,
        cpu_ns: 128,
        pages: 5,
        quota_pages: 6,
    };
    assert_eq!(bytes(&info), b"\x07\x02ab\x02\x01\x01\x03\x80\x01\x05\x06");
}

#[test]
fn wire_bytes_of_events_are_pinned() {
    let started = Event {
        position: 1,
        tsc: 2,
        pid: 3,
        what: Happening::Started {
            name: name("ab"),
            file: Text::cut("bin/ab"),
            image: 4,
            build_id: [5; BUILD_ID_MAX],
            load_bias: 0,
        },
    };
    let mut expected = b"\x01\x02\x03\x00\x02ab\x06bin/ab\x04".to_vec();
    expected.extend([5; BUILD_ID_MAX]);
    expected.push(0);
    assert_eq!(bytes(&started), expected);
    let ended = Happening::Ended {
        ending: Ending::Killed,
        code: 1,
    };
    assert_eq!(bytes(&ended), [1, 1, 1]);
}

#[test]
fn wire_numbers_of_errors_are_pinned() {
    let errors = [
        InitError::NoSuchProgram,
        InitError::BadImage,
        InitError::AlreadyRuns,
        InitError::ArgsTooLong,
        InitError::QuotaExceeded,
        InitError::OutOfMemory,
        InitError::TooManyPrograms,
        InitError::TooManyWait,
        InitError::NoSuchProcess,
        InitError::NotHeld,
        InitError::Ended,
        InitError::Refused,
    ];
    for (number, error) in errors.iter().enumerate() {
        assert_eq!(bytes(error), [number as u8]);
    }
    assert_eq!(bytes(&InitError::Kernel(abi::Error::WrongType)), [12, 3]);
    assert_eq!(bytes(&InitError::Damaged), [13]);
    assert_eq!(
        InitError::Kernel(abi::Error::TimedOut).to_string(),
        "timed out"
    );
}

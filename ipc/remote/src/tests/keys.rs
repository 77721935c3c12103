//! Key files, and what a key is good for.

use std::time::Duration;

use proptest::prelude::*;

use super::link::{Faults, World, key, ring};
use crate::{ClientEvent, Key, KeyError, KeyRing, LineError, Mode, Purpose, ServerMode, Status};

#[test]
fn a_key_has_one_text_form() {
    let text = "00112233445566778899aabbccddeeff".repeat(2);
    let key = Key::parse(&text).unwrap();
    assert_eq!(key.to_hex(), text);
    assert_eq!(Key::parse(&text.to_uppercase()), Ok(key.clone()));
    assert_eq!(Key::parse("00"), Err(KeyError::Length(2)));
    assert_eq!(Key::parse(&"0g".repeat(32)), Err(KeyError::Digit));
    assert_eq!(Key::parse(&"é".repeat(32)), Err(KeyError::Digit));
    assert_eq!(format!("{key:?}"), "Key(..)");
}

#[test]
fn a_file_that_is_wrong_anywhere_gives_no_key_and_says_where() {
    let (one, two) = (key(1).to_hex(), key(2).to_hex());
    let parse = |text: &str| KeyRing::parse(text.as_bytes());
    let good = format!("# the owner's\n\ncontrol {one} # all\r\n  observe\t{two}\n");
    assert_eq!(parse(&good), Ok(ring()));
    assert_eq!(parse("# none\n"), Err(LineError::Empty));
    assert_eq!(parse(&format!("root {one}")), Err(LineError::Line(1)));
    assert_eq!(
        parse(&format!("\ncontrol {one} x")),
        Err(LineError::Line(2))
    );
    assert_eq!(parse("control"), Err(LineError::Line(1)));
    assert_eq!(
        parse("control 12"),
        Err(LineError::Key(1, KeyError::Length(2)))
    );
    let twice = format!("control {one}\nobserve {one}");
    assert_eq!(parse(&twice), Err(LineError::Twice(2)));
    let three = format!("control {one}\nobserve {two}\nobserve {}", key(3).to_hex());
    assert_eq!(parse(&three), Err(LineError::TooMany(3)));
    assert_eq!(KeyRing::parse(&[0xff]), Err(LineError::NotText));
    let line = LineError::Key(3, KeyError::Length(2)).to_string();
    assert_eq!(line, "line 3: a key is 64 hexadecimal digits, not 2");
}

proptest! {
    #[test]
    fn any_file_is_parsed_or_refused(bytes: Vec<u8>, text in "(control|observe|#| |\n|[0-9a-f]{64}|[0-9]){0,12}") {
        let _ = KeyRing::parse(&bytes);
        let _ = KeyRing::parse(text.as_bytes());
        let _ = Key::parse(&text);
    }
}

#[test]
fn a_client_without_the_key_hears_nothing() {
    for mode in [Mode::Keyed(key(3)), Mode::Open] {
        let mut world = World::new(ServerMode::Keyed(ring()), Faults::default(), 5);
        let begin = world.now;
        let index = world.client(mode, Purpose::Shell);
        assert_eq!(world.client_event(index), ClientEvent::Silent);
        // The link's clock goes on by a millisecond where nothing is due.
        let took = world.now.since(begin);
        assert!(took >= Duration::from_secs(5) && took < Duration::from_millis(5_010));
        assert!(world.seen.to_server.len() > 3);
        assert!(world.seen.to_clients.is_empty());
        assert!(world.server.event().is_none());
        let statistics = world.server.statistics();
        let dropped = statistics.unauthenticated + statistics.wrong_mode;
        assert_eq!(dropped as usize, world.seen.to_server.len());
    }
}

#[test]
fn nothing_that_is_typed_or_shown_can_be_read_on_the_wire() {
    let mut world = World::new(ServerMode::Keyed(ring()), Faults::default(), 6);
    let index = world.client(Mode::Keyed(key(1)), super::link::exec("the-secret-command"));
    world.server_event();
    world
        .server
        .write(1, crate::Stream::Text, b"the-secret-output");
    world.server.finish(world.now, 1, Status::Success);
    world.until(|world| {
        world.clients[index]
            .event()
            .filter(|event| *event == ClientEvent::Finished(Status::Success))
    });
    let all = world.seen.to_server.iter().chain(&world.seen.to_clients);
    for (_, bytes) in all {
        assert!(!bytes.windows(10).any(|window| window == b"the-secret"));
    }
}

#[test]
fn the_same_session_twice_has_other_keys() {
    let firsts = [1, 2].map(|seed| {
        let mut world = World::new(ServerMode::Keyed(ring()), Faults::default(), seed);
        world.client(Mode::Keyed(key(1)), super::link::exec("ps"));
        world.server_event();
        world.seen.to_server.last().unwrap().1.clone()
    });
    assert_eq!(firsts[0].len(), firsts[1].len());
    assert_ne!(firsts[0][24..], firsts[1][24..]);
}

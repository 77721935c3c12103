//! Lines of text in the open mode.

use std::time::Duration;

use super::link::{Faults, World, address, exec, ring};
use crate::{End, Role, ServerEvent, ServerMode, Status, Stream};

#[test]
fn a_line_is_a_command_and_its_output_comes_as_text() {
    let mut world = World::new(ServerMode::Open, Faults::default(), 1);
    assert!(world.ask(address(1), b"ps -l\r\n").is_empty());
    let opened = ServerEvent::Opened {
        number: 1,
        role: Role::Observe,
        purpose: exec("ps -l"),
        peer: address(1),
    };
    assert_eq!(world.server.event(), Some(opened));
    // Another one of the same peer has to wait.
    world.ask(address(1), b"mem");
    assert_eq!(world.server.event(), None);
    let text: Vec<u8> = (0..500)
        .flat_map(|n| format!("line {n}\n").into_bytes())
        .collect();
    let mut written = 0;
    while written < text.len() {
        written += world.server.write(1, Stream::Binary, &text[written..]);
        world.step();
    }
    world.server.finish(world.now, 1, Status::Success);
    world.pass(Duration::from_secs(1));
    let datagrams = &world.seen.to_clients;
    assert!(datagrams.iter().all(|(peer, bytes)| *peer == address(1)
        && bytes.starts_with(b"\r")
        && bytes.ends_with(b"\n")
        && bytes.len() <= 1400));
    let rows = datagrams.iter().flat_map(|(_, bytes)| &bytes[1..]);
    assert!(rows.eq(&text));
    assert_eq!(world.server.write(1, Stream::Binary, b"more"), 0);
    world.ask(address(1), b"mem");
    assert!(matches!(
        world.server.event(),
        Some(ServerEvent::Opened { number: 2, .. })
    ));
    world.server.close(world.now, 2, End::Failed);
}

/// What a line's peer is sent from now on, until the line is closed and nothing more comes.
fn until_cut(world: &mut World, mut each: impl FnMut(&mut World)) -> Vec<u8> {
    let before = world.seen.to_clients.len();
    let closed = world.until(|world| {
        each(world);
        world.server.event()
    });
    assert_eq!(closed, ServerEvent::Closed(1, End::Left));
    world.pass(Duration::from_secs(1));
    let seen = &world.seen.to_clients[before..];
    seen.iter().flat_map(|(_, bytes)| bytes.clone()).collect()
}

#[test]
fn a_line_that_does_not_end_is_cut() {
    let mut world = World::new(ServerMode::Open, Faults::default(), 1);
    world.ask(address(1), b"repeat 1000000 profile 2000");
    assert!(matches!(world.server_event(), ServerEvent::Opened { .. }));
    let begin = world.now;
    let said = until_cut(&mut world, |_| {});
    assert!(world.now.since(begin) < Duration::from_secs(12));
    assert!(said.starts_with(b"\r\n... cut: "), "{said:?}");

    let mut world = World::new(ServerMode::Open, Faults::default(), 1);
    world.ask(address(1), b"repeat 1000000 dmesg");
    assert!(matches!(world.server_event(), ServerEvent::Opened { .. }));
    let said = until_cut(&mut world, |world| {
        world.server.write(1, Stream::Binary, &[b'x'; 1000]);
    });
    assert_eq!(said.iter().filter(|&&byte| byte == b'x').count(), 64 * 1024);
    // Another one may come.
    world.ask(address(1), b"ps");
    assert!(matches!(world.server_event(), ServerEvent::Opened { .. }));
}

/// An answer of one row is text like any line, and would be one if it could.
#[test]
fn an_answer_is_no_line() {
    let mut world = World::new(ServerMode::Open, Faults::default(), 1);
    world.ask(address(1), b"x");
    assert!(matches!(world.server_event(), ServerEvent::Opened { .. }));
    let long = [b'x'; 2000];
    for (text, answers) in [
        (&b"no command `x`\n"[..], 1),
        (b"no line feed", 2),
        (&long, 4),
    ] {
        assert_eq!(world.server.write(1, Stream::Binary, text), text.len());
        world.until(|world| (world.seen.to_clients.len() == answers).then_some(()));
    }
    let answers = world.seen.to_clients.clone();
    for (_, answer) in answers {
        world.ask(address(5555), &answer);
        assert_eq!(world.server.event(), None, "{answer:?}");
    }
}

#[test]
fn what_is_no_line_is_dropped_and_lines_are_few() {
    let mut world = World::new(ServerMode::Open, Faults::default(), 2);
    for bytes in [
        &b""[..],
        b"\n",
        b"  \n",
        b"ps\nps\n",
        b"p\0s",
        b"\xff\xfe",
        &[b'x'; 1025],
    ] {
        world.ask(address(1), bytes);
        assert_eq!(world.server.event(), None, "{bytes:?}");
    }
    for port in 1..100 {
        world.ask(address(port), b"ps\n");
    }
    let opened = core::iter::from_fn(|| world.server.event()).count();
    assert_eq!(opened, 4);
    let mut world = World::new(ServerMode::Keyed(ring()), Faults::default(), 3);
    world.ask(address(1), b"ps\n");
    assert_eq!(world.server.event(), None);
}

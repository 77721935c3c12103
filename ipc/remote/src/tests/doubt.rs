//! A client that hears nothing asks whether its session is still there.

use std::time::Duration;

use super::link::{Faults, World, address, modes, random, ring};
use crate::packet::Kind;
use crate::{ClientEvent, End, Mode, Purpose, Server, ServerEvent, ServerMode, Stream};

/// From an unanswered frame, or from the last word of a server that says nothing by itself, to the end of a session that the server has
/// no more: both with the exchange of hellos.
const ANSWER: Duration = Duration::from_millis(1100);
const QUIET: Duration = Duration::from_millis(2600);

/// A world with one open session, in which all that happened so far was taken.
fn opened(server: ServerMode, client: Mode) -> World {
    let delay = (1_000, 2_000);
    let faults = Faults {
        delay,
        ..Faults::default()
    };
    let mut world = World::new(server, faults, 1);
    let index = world.client(client, Purpose::Shell);
    assert!(matches!(world.server_event(), ServerEvent::Opened { .. }));
    let event = world.client_event(index);
    assert!(matches!(event, ClientEvent::Connected { .. }));
    world.pass(Duration::from_secs(1));
    assert_eq!(world.server.write(1, Stream::Text, b"> "), 2);
    let event = world.client_event(index);
    assert!(matches!(event, ClientEvent::Output(..)));
    world
}

/// A server that knows nothing of what was before.
fn start_again(world: &mut World, mode: ServerMode) {
    world.server = Server::new(mode, random(99));
}

fn mode_again(mode: &Mode) -> ServerMode {
    match mode {
        Mode::Open => ServerMode::Open,
        Mode::Keyed(_) => ServerMode::Keyed(ring()),
    }
}

#[test]
fn who_types_to_a_server_that_started_again_knows_within_a_second() {
    for (server, client) in modes() {
        let mut world = opened(server, client.clone());
        start_again(&mut world, mode_again(&client));
        let typed = world.now;
        assert_eq!(world.clients[0].send(b"ps\r"), 3);
        let forgotten = ClientEvent::Closed(End::Forgotten);
        assert_eq!(world.client_event(0), forgotten);
        assert!(world.now.since(typed) < ANSWER);
        assert!(world.clients[0].is_over());
        assert_eq!(world.server.statistics().questions, 1);
    }
}

#[test]
fn who_waits_for_a_server_that_started_again_knows_soon_after_its_next_word_is_due() {
    for (server, client) in modes() {
        let mut world = opened(server, client.clone());
        let last = world.now;
        start_again(&mut world, mode_again(&client));
        let forgotten = ClientEvent::Closed(End::Forgotten);
        assert_eq!(world.client_event(0), forgotten);
        assert!(world.now.since(last) < QUIET);
    }
}

#[test]
fn a_server_that_is_not_there_for_a_while_is_waited_for() {
    for (server, client) in modes() {
        let mut world = opened(server, client);
        world.faults.loss = 100;
        assert_eq!(world.clients[0].send(b"ps\r"), 3);
        world.pass(Duration::from_secs(10));
        assert_eq!(world.clients[0].event(), None);
        world.faults.loss = 0;
        world.faults.lost_down = Some(Kind::Welcome);
        assert_eq!(world.server_event(), ServerEvent::Input(1));
        world.pass(Duration::from_secs(1));
        // What it hears answers its question, too.
        world.seen.to_server.clear();
        world.pass(Duration::from_secs(60));
        assert_eq!(world.clients[0].event(), None);
        let is_hello = |bytes: &[u8]| bytes.get(4) == Some(&(Kind::Hello as u8));
        assert!(!world.seen.to_server.iter().any(|(_, it)| is_hello(it)));
    }
}

#[test]
fn who_hears_nothing_but_that_its_session_is_there_goes_on() {
    for (server, client) in modes() {
        let mut world = opened(server, client);
        world.faults.lost_down = Some(Kind::Frame);
        world.pass(Duration::from_secs(60));
        assert_eq!(world.clients[0].event(), None);
        // It asks each time that a word is overdue, and not all the time.
        let questions = world.server.statistics().questions;
        assert!((20..30).contains(&questions), "{questions}");
    }
}

#[test]
fn a_session_whose_first_frame_is_lost_is_there_until_it_is_given_up() {
    for (server, client) in modes() {
        let mut world = World::new(server, Faults::default(), 1);
        world.faults.lost_up = Some(Kind::Frame);
        let index = world.client(client, Purpose::Shell);
        let event = world.client_event(index);
        assert!(matches!(event, ClientEvent::Connected { .. }));
        world.pass(Duration::from_secs(5));
        assert_eq!(world.clients[index].event(), None);
        assert!(world.server.statistics().questions > 0);
        let forgotten = ClientEvent::Closed(End::Forgotten);
        assert_eq!(world.client_event(index), forgotten);
    }
}

#[test]
fn nobody_asks_while_the_server_speaks() {
    for (server, client) in modes() {
        let mut world = opened(server, client);
        for _ in 0..60 {
            assert_eq!(world.clients[0].send(b"p"), 1);
            world.pass(Duration::from_secs(5));
        }
        assert_eq!(world.server.statistics().questions, 0);
    }
}

#[test]
fn an_answer_to_an_earlier_question_ends_no_session() {
    let [_, (server, client)] = modes();
    let mut world = opened(server, client.clone());
    let old = core::mem::replace(
        &mut world.server,
        Server::new(mode_again(&client), random(99)),
    );
    world.seen.to_clients.clear();
    world.faults.lost_down = Some(Kind::Welcome);
    let is_welcome = |bytes: &[u8]| bytes.get(4) == Some(&(Kind::Welcome as u8));
    let recorded = world.until(|world| {
        let (_, last) = world.seen.to_clients.last()?;
        is_welcome(last).then(|| last.clone())
    });
    world.server = old;
    world.faults.lost_down = None;
    world.pass(Duration::from_secs(10));
    world.faults.loss = 100;
    world.pass(Duration::from_secs(3));
    let now = world.now;
    world.clients[0].receive(now, &recorded);
    world.faults.loss = 0;
    world.pass(Duration::from_secs(10));
    assert_eq!(world.clients[0].event(), None);
    assert_eq!(world.server.sessions(), 1);
}

#[test]
fn a_session_is_there_for_its_peer_alone() {
    for (server, client) in modes() {
        let mut world = opened(server, client);
        // The client has another port from now on.
        let client = world.clients.remove(0);
        world.ping(Mode::Open);
        world.clients.push(client);
        let forgotten = ClientEvent::Closed(End::Forgotten);
        assert_eq!(world.client_event(1), forgotten);
        assert_ne!(address(0), address(1));
    }
}

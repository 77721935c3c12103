//! Hellos: versions, floods, forged sources, and how much comes back for what is sent.

use std::iter;
use std::net::SocketAddrV4;
use std::time::Duration;

use fastrand::Rng;

use super::link::{Faults, World, address, exec, key, modes, ring};
use crate::hello::{Answer, Ask, Cookie, Hello, Refusal, read_challenge};
use crate::packet::{Header, Kind};
use crate::{
    ClientEvent, End, Mode, Purpose, SESSIONS_MAX, ServerEvent, ServerMode, Status, Stream,
};

fn bytes(datagrams: &[(std::net::SocketAddrV4, Vec<u8>)]) -> usize {
    datagrams.iter().map(|(_, bytes)| bytes.len()).sum()
}

#[test]
fn a_client_of_another_version_is_told_the_servers() {
    for (server, client) in modes() {
        let mut world = World::new(server, Faults::default(), 1);
        let keyed = matches!(client, Mode::Keyed(_));
        let header = Header {
            version: 2,
            ..Hello::header(keyed, 77)
        };
        let mut cookie = Cookie::default();
        let mut ask = |cookie| {
            let hello = Hello {
                ask: Ask::Session,
                cookie,
            };
            let (packet, state) = match &client {
                Mode::Open => (hello.open(&header), None),
                Mode::Keyed(key) => {
                    let (packet, state) = hello.keyed(&header, key, [9; 32]).unwrap();
                    (packet, Some(state))
                }
            };
            let [(_, answer)] = &world.ask(address(1), &packet)[..] else {
                panic!("no answer")
            };
            (answer.clone(), state)
        };
        let (challenge, _) = ask(cookie);
        let (header, body) = Header::parse(&challenge).unwrap();
        assert_eq!((header.kind, header.version), (Kind::Challenge, 1));
        cookie = read_challenge(&header, body).unwrap();
        let (welcome, state) = ask(cookie);
        let (header, body) = Header::parse(&welcome).unwrap();
        let answer = match state {
            None => Answer::read_open(&header, body),
            Some(mut state) => Answer::read_keyed(body, &mut state),
        };
        assert_eq!(answer, Some(Answer::Refused(Refusal::Version(1))));
        assert_eq!(world.server.statistics().other_version, 1);
        assert_eq!(world.server.half_open(), 0);
    }
}

#[test]
fn a_recorded_session_is_good_for_nothing_and_gets_less_back_than_it_sends() {
    for (server, client) in modes() {
        let mut world = World::new(server, Faults::default(), 2);
        let index = world.client(client, exec("reboot"));
        world.server_event();
        world.server.finish(world.now, 1, Status::Success);
        world.until(|world| {
            world.clients[index]
                .event()
                .filter(|e| *e == ClientEvent::Finished(Status::Success))
        });
        let recorded = world.seen.to_server.clone();
        for wait in [0, 1, 15, 60] {
            world.pass(Duration::from_secs(wait));
            // From its own address, and from others, which a forger may have chosen.
            for peer in [address(0), address(9), "192.168.7.7:53".parse().unwrap()] {
                for (_, datagram) in &recorded {
                    let answers = world.ask(peer, datagram);
                    assert!(bytes(&answers) <= datagram.len(), "{answers:?}");
                }
            }
        }
        assert_eq!(world.server.event(), None);
        assert_eq!(world.server.statistics().opened, 1);
    }
}

#[test]
fn who_has_not_proved_its_address_gets_no_more_than_it_sends() {
    for (server, client) in modes() {
        let keyed = matches!(client, Mode::Keyed(_));
        let mut world = World::new(server, Faults::default(), 3);
        // A hello that is as good as it can be from a forged address: only the cookie is missing.
        let hello = Hello {
            ask: Ask::Session,
            cookie: Cookie::default(),
        };
        let mut rng = Rng::with_seed(3);
        let (mut sent, mut back, mut count) = (0, 0, 0);
        for port in 1..2000 {
            let header = Hello::header(keyed, rng.u64(..));
            let mut seed = [0; 32];
            rng.fill(&mut seed);
            let mut packet = match &client {
                Mode::Open => hello.open(&header),
                Mode::Keyed(key) => hello.keyed(&header, key, seed).unwrap().0,
            };
            match port % 4 {
                0 => {}
                1 => packet.truncate(rng.usize(..packet.len())),
                2 => {
                    let at = rng.usize(..packet.len());
                    packet[at] ^= 1 << rng.u8(..8);
                }
                _ => packet
                    .iter_mut()
                    .skip(5)
                    .for_each(|byte| *byte = rng.u8(..)),
            }
            let answers = world.ask(address(port), &packet);
            assert!(bytes(&answers) <= packet.len());
            sent += packet.len();
            back += bytes(&answers);
            count += answers.len();
        }
        println!(
            "keyed {keyed}: {sent} bytes sent, {back} back, factor {:.2}",
            back as f64 / sent as f64
        );
        // It is limited as well: no time has passed, so the first 64 at most, as all are from one network.
        assert!(count > 0 && count <= 64, "{count}");
        assert_eq!((world.server.half_open(), world.server.sessions()), (0, 0));
        // Who comes a second later gets in.
        world.pass(Duration::from_secs(1));
        world.client(client, Purpose::Shell);
        assert!(matches!(world.server_event(), ServerEvent::Opened { .. }));
    }
}

/// Who has recorded a hello can send it from any address; the networks that it claims to be in share 16 groups.
#[test]
fn a_recorded_hello_keeps_nobody_of_another_group_out() {
    for (server, client) in modes() {
        let mut world = World::new(server, Faults::default(), 8);
        world.client(client, Purpose::Shell);
        // It comes to the server, and is answered.
        world.step();
        world.step();
        let (_, hello) = world.seen.to_server[0].clone();
        let from = |network: u8| SocketAddrV4::new([10, 0, network, 9].into(), 5555);
        // Of one network no more than its share is answered, in all groups together no more than that of each.
        let flood = |world: &mut World, network: u8| -> usize {
            let answers = (0..100).map(|_| world.ask(from(network), &hello).len());
            answers.sum()
        };
        assert_eq!(flood(&mut world, 1), 64);
        let free = (2..=255).filter(|&network| !world.ask(from(network), &hello).is_empty());
        assert!(free.count() > 200);
        let all: usize = (0..=255).map(|network| flood(&mut world, network)).sum();
        assert!(all < 16 * 64, "{all}");
    }
}

#[test]
fn half_open_sessions_are_few_and_short() {
    let mut world = World::new(ServerMode::Keyed(ring()), Faults::default(), 4);
    for round in 0..4 {
        for _ in 0..40 {
            world.client(Mode::Keyed(key(1)), Purpose::Shell);
        }
        // Hellos and cookies, but never a frame: what would be the first is lost.
        for _ in 0..200 {
            world.step();
            for client in &mut world.clients {
                if matches!(client.event(), Some(ClientEvent::Connected { .. })) {
                    let now = world.now;
                    *client = crate::Client::ping(Mode::Open, super::link::random(round), now);
                }
            }
        }
        assert!(world.server.half_open() <= 32);
        world.clients.clear();
        world.pass(Duration::from_secs(7));
    }
    world.client(Mode::Keyed(key(1)), Purpose::Shell);
    assert!(matches!(world.server_event(), ServerEvent::Opened { .. }));
    assert_eq!(world.server.half_open(), 0);
}

#[test]
fn a_full_server_says_so_and_has_room_again() {
    for (server, client) in modes() {
        let mut world = World::new(server, Faults::default(), 5);
        for _ in 0..SESSIONS_MAX {
            world.client(client.clone(), Purpose::Shell);
            assert!(matches!(world.server_event(), ServerEvent::Opened { .. }));
        }
        let index = world.client(client.clone(), Purpose::Shell);
        let busy = ClientEvent::Refused(Refusal::Busy);
        assert_eq!(world.client_event(index), busy);
        let index = world.ping(client.clone());
        assert!(matches!(
            world.client_event(index),
            ClientEvent::Pong { .. }
        ));
        let now = world.now;
        world.clients[0].close(now);
        world.server_event();
        world.client(client, Purpose::Shell);
        assert!(matches!(world.server_event(), ServerEvent::Opened { .. }));
    }
}

#[test]
fn who_loses_the_last_place_to_another_is_told() {
    for (server, client) in modes() {
        let mut world = World::new(server, Faults::default(), 5);
        for _ in 1..SESSIONS_MAX {
            world.client(client.clone(), Purpose::Shell);
            assert!(matches!(world.server_event(), ServerEvent::Opened { .. }));
        }
        // All are let in by the same server at once, which has one place.
        let late: Vec<_> = (0..5)
            .map(|_| world.client(client.clone(), Purpose::Shell))
            .collect();
        assert!(matches!(world.server_event(), ServerEvent::Opened { .. }));
        world.pass(Duration::from_secs(3));
        assert_eq!(world.server.event(), None);
        let mut told = |index: &usize| {
            let mut events = iter::from_fn(|| world.clients[*index].event());
            events.any(|event| {
                matches!(
                    event,
                    ClientEvent::Refused(Refusal::Busy) | ClientEvent::Closed(End::Busy)
                )
            })
        };
        assert_eq!(late.iter().filter(|index| told(index)).count(), 4);
    }
}

#[test]
fn a_full_server_forgets_no_session_whose_end_is_under_way() {
    for (server, client) in modes() {
        let mut world = World::new(server, Faults::default(), 5);
        for _ in 0..SESSIONS_MAX {
            world.client(client.clone(), Purpose::Shell);
            assert!(matches!(world.server_event(), ServerEvent::Opened { .. }));
        }
        let now = world.now;
        assert_eq!(world.server.write(1, Stream::Text, b"bye"), 3);
        world.server.finish(now, 1, Status::Success);
        // The next one comes while nothing gets through to the first, and then all does.
        world.faults.loss = 100;
        world.step();
        world.faults.loss = 0;
        world.client(client, Purpose::Shell);
        let ended = |event: &ClientEvent| matches!(event, ClientEvent::Finished(Status::Success));
        let heard = world.until(|world| world.clients[0].event().filter(ended));
        assert_eq!(heard, ClientEvent::Finished(Status::Success));
    }
}

#[test]
fn the_open_mode_answers_private_addresses_only() {
    let mut world = World::new(ServerMode::Open, Faults::default(), 6);
    let hello = Hello {
        ask: Ask::Session,
        cookie: Cookie::default(),
    };
    let packet = hello.open(&Hello::header(false, 1));
    for (peer, answered) in [
        ("127.0.0.1:1", true),
        ("10.1.2.3:1", true),
        ("172.16.0.1:1", true),
        ("172.32.0.1:1", false),
        ("192.168.0.1:1", true),
        ("169.254.0.1:1", false),
        ("8.8.8.8:53", false),
        ("0.0.0.0:1", false),
        ("255.255.255.255:1", false),
    ] {
        let answers = world.ask(peer.parse().unwrap(), &packet);
        assert_eq!(!answers.is_empty(), answered, "{peer}");
        world.ask(peer.parse().unwrap(), b"ps\n");
        assert_eq!(
            world.server.event().is_some(),
            answered && peer.starts_with("1"),
            "{peer}"
        );
    }
}

//! Bytes of any kind, to both ends and to every parser.

use std::collections::HashSet;

use fastrand::Rng;
use proptest::prelude::*;

use super::link::{Faults, World, address, key, modes};
use crate::control::Control;
use crate::frame::{Ack, Chunk, FRAME_MAX, Frame};
use crate::hello::{Answer, Hello, read_challenge};
use crate::packet::{DATAGRAM_MAX, Header, Kind};
use crate::replay::Replay;
use crate::seal::{Seal, Side, Unsealed, mac};
use crate::server::line;
use crate::{ClientEvent, Purpose, ServerEvent, Stream};

proptest! {
    #[test]
    fn parsers_take_or_refuse_anything(bytes in prop::collection::vec(any::<u8>(), 0..1600)) {
        let _ = Header::parse(&bytes);
        let mut packet = Header::new(Kind::Frame, true, 0, 0).to_bytes().to_vec();
        packet.extend(&bytes);
        prop_assert_eq!(Header::parse(&packet).is_some(), packet.len() <= DATAGRAM_MAX);
        let _ = Control::parse(&bytes);
        if let Some(frame) = Frame::parse(&bytes) {
            let mut buffer = [0; FRAME_MAX];
            let length = frame.write(&mut buffer);
            prop_assert_eq!(Frame::parse(&buffer[..length]), Some(frame));
            prop_assert_eq!(&buffer[..length], &bytes[..]);
        }
    }

    #[test]
    fn bodies_behind_a_right_hash_are_taken_or_refused(
        start in prop_oneof![Just(vec![1]), Just(vec![2]), Just(vec![3]), prop::collection::vec(0u8..6, 0..12), prop::collection::vec(any::<u8>(), 0..300)],
        length in prop_oneof![Just(11), Just(16), Just(216), 0usize..300],
    ) {
        let mut bytes = start;
        bytes.resize(length, 0);
        let body = |kind| {
            let header = Header::new(kind, false, 0, 7);
            (header, [&bytes[..], &mac(b"sonde hello", &[&header.to_bytes(), &bytes])].concat())
        };
        let (header, hello) = body(Kind::Hello);
        if let Some(read) = Hello::read_open(&header, &hello) {
            prop_assert_eq!(read.open(&header), [&header.to_bytes()[..], &hello].concat());
        } else {
            let zeros = if bytes.first() == Some(&3) { 25 } else { 17 };
            prop_assert!(length != 216 || !matches!(bytes[0], 1..=3) || bytes[zeros..].iter().any(|&byte| byte != 0));
        }
        let (header, challenge) = body(Kind::Challenge);
        let cookie = read_challenge(&header, &challenge);
        prop_assert_eq!(cookie.map(Vec::from), (length == 16).then(|| bytes.clone()));
        let (header, welcome) = body(Kind::Welcome);
        let is_answer = length == 11 && bytes[0] < 7 && bytes[1] < 2;
        prop_assert_eq!(Answer::read_open(&header, &welcome).is_some(), is_answer);
    }

    #[test]
    fn a_line_is_a_command_if_it_is_one_line_of_text(
        text in "[ a-z\\t\u{e9}]{0,40}", end in prop_oneof![Just(""), Just("\n"), Just("\r\n"), Just("\n\n"), Just("\u{1b}")],
    ) {
        let is_command = !text.trim().is_empty() && !text.contains('\t') && matches!(end, "" | "\n" | "\r\n");
        let command = line::command(format!("{text}{end}").as_bytes());
        prop_assert_eq!(command.as_ref().map(crate::Command::as_str), is_command.then_some(text.as_str()));
    }

    #[test]
    fn a_frame_is_read_as_it_was_written(
        next: u64, behind: u32, window: u8, sequence: u64, index in 0u16..99, more in 1u16..99,
        bytes in prop::collection::vec(any::<u8>(), 1..1334),
    ) {
        let ack = Ack { next, behind, window };
        let chunk = Chunk { stream: Stream::Text, sequence, index, count: index + more, bytes: &bytes };
        for frame in [Frame { ack, chunk: None }, Frame { ack, chunk: Some(chunk) }] {
            let mut buffer = [0; FRAME_MAX];
            let length = frame.write(&mut buffer);
            prop_assert_eq!(Frame::parse(&buffer[..length]), Some(frame));
        }
    }

    #[test]
    fn the_replay_window_takes_each_number_once(
        // One far ahead makes all others too old, so there are few of those.
        numbers in prop::collection::vec(prop_oneof![300 => 0u64..300, 1 => Just(u64::MAX), 1 => any::<u64>()], 0..300),
    ) {
        let (mut replay, mut taken, mut newest) = (Replay::new(), HashSet::new(), None);
        for number in numbers {
            let too_old = newest.is_some_and(|newest: u64| newest.saturating_sub(number) >= 128);
            let fresh = number != u64::MAX && !taken.contains(&number) && !too_old;
            prop_assert_eq!(replay.is_fresh(number), fresh, "{}", number);
            if fresh {
                replay.take(number);
                taken.insert(number);
                newest = newest.max(Some(number));
            }
        }
    }
}

proptest! {
    // Each case has the handshakes of four sessions, which are slow without optimization.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 6, ..ProptestConfig::default() })]

    /// Frames that an authenticated peer makes up: nonsense in every field, and both channels stay within their bounds.
    #[test]
    fn a_peer_that_has_the_key_can_break_its_own_session_only(
        frames in prop::collection::vec(
            (any::<u8>(), 0u64..80, any::<u32>(), any::<u8>(), 0u64..80, 0u16..9, 1u16..9, prop::collection::vec(any::<u8>(), 1..40)),
            0..60,
        ),
    ) {
        for (server, client) in modes() {
            let mut world = World::new(server, Faults::default(), 1);
            world.client(client.clone(), Purpose::Shell);
            world.server_event();
            for (stream, next, behind, window, sequence, index, more, bytes) in &frames {
                let stream = [Stream::Text, Stream::Binary, Stream::Control][usize::from(stream % 3)];
                let wide = if stream == Stream::Control { u64::MAX - 3 } else { 0 };
                let ack = Ack { next: *next, behind: *behind, window: *window };
                let chunk = Chunk { stream, sequence: wide.saturating_add(*sequence), index: *index, count: index + more, bytes };
                let frame = Frame { ack, chunk: Some(chunk) };
                world.server.inject(world.now, 1, &frame);
                world.step();
            }
            while world.server.event().is_some() {}
            world.client(client, Purpose::Shell);
            let opened = matches!(world.server_event(), ServerEvent::Opened { .. });
            prop_assert!(opened);
        }
    }
}

#[test]
fn garbage_of_every_length_changes_nothing_at_either_end() {
    for (server, client) in modes() {
        let mut world = World::new(server, Faults::default(), 2);
        let index = world.client(client, Purpose::Shell);
        world.server_event();
        assert!(matches!(
            world.client_event(index),
            ClientEvent::Connected { .. }
        ));
        let mut rng = Rng::with_seed(2);
        let good = world.seen.to_server.clone();
        let lengths = (0..=1500).chain([2000, 9000, 65_507]);
        for length in lengths {
            let mut bytes = vec![0; length];
            rng.fill(&mut bytes);
            // Never a line of text, which the open mode would run.
            bytes.iter_mut().for_each(|byte| *byte |= 0x80);
            world.server.receive(world.now, address(0), &bytes);
            let now = world.now;
            world.clients[index].receive(now, &bytes);
            // One that begins like a good one.
            let (_, start) = &good[rng.usize(..good.len())];
            let keep = rng.usize(..=start.len().min(length));
            bytes[..keep].copy_from_slice(&start[..keep]);
            if bytes != *start {
                world.server.receive(world.now, address(0), &bytes);
                world.clients[index].receive(now, &bytes);
            }
            let mut datagram = [0; DATAGRAM_MAX];
            while world.server.transmit(world.now, &mut datagram).is_some() {}
        }
        assert_eq!(world.server.event(), None);
        assert_eq!(world.clients[index].event(), None);
        world.clients[index].send(b"x");
        assert_eq!(world.server_event(), ServerEvent::Input(1));
    }
}

#[test]
fn a_packet_is_taken_once_and_only_as_it_was_sealed() {
    let mut world = World::new(modes().into_iter().nth(1).unwrap().0, Faults::default(), 3);
    world.client(crate::Mode::Keyed(key(1)), Purpose::Shell);
    world.server_event();
    let (peer, packet) = world.seen.to_server.last().unwrap().clone();
    let before = world.server.statistics().replayed;
    world.ask(peer, &packet);
    assert_eq!(world.server.statistics().replayed, before + 1);
    // Of another address the session is not known.
    world.ask(address(99), &packet);
    assert_eq!(world.server.statistics().no_session, 1);

    for at in 0..60 {
        let mut sender = Seal::open(5, Side::Client);
        let mut receiver = Seal::open(5, Side::Server);
        let mut datagram = [0; DATAGRAM_MAX];
        let length = sender.seal(&[7; 20], &mut datagram).unwrap();
        assert_eq!(length, 60);
        datagram[at] ^= 1;
        let opened = Header::parse(&datagram[..length])
            .map(|(header, body)| receiver.unseal(&header, body, &mut [0; FRAME_MAX]));
        assert!(matches!(opened, None | Some(Err(Unsealed::Forged))), "{at}");
    }
    // What comes back from a mirror is not taken.
    let mut sender = Seal::open(5, Side::Client);
    let mut datagram = [0; DATAGRAM_MAX];
    let length = sender.seal(&[7; 20], &mut datagram).unwrap();
    let (header, body) = Header::parse(&datagram[..length]).unwrap();
    let opened = sender.unseal(&header, body, &mut [0; FRAME_MAX]);
    assert_eq!(opened, Err(Unsealed::Forged));
}

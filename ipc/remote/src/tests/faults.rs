//! Links that lose, double, damage, delay and reorder: all arrives, in order, once, and a command is opened once.

use std::time::Duration;

use fastrand::Rng;
use proptest::prelude::*;

use super::link::{Faults, World, exec, key, modes, ring};
use crate::{ClientEvent, End, Mode, Purpose, ServerEvent, ServerMode, Status, Stream};

/// What the issue asks a session to survive.
const BAD: Faults = Faults {
    loss: 20,
    doubled: 10,
    damaged: 5,
    lost_up: None,
    lost_down: None,
    delay: (1_000, 30_000),
};

/// After this the server has forgotten a session whose client nobody hears any more.
const GONE: Duration = Duration::from_secs(21);

/// Sends `down` from the server and `up` from the client at once, and finishes; what arrived on each side.
fn exchange(world: &mut World, index: usize, down: &[u8], up: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut shown, mut typed) = (Vec::new(), Vec::new());
    let (mut written, mut sent) = (0, 0);
    let mut opened = 0;
    let mut finished = false;
    world.until(|world| {
        sent += world.clients[index].send(&up[sent..]);
        while let Some(event) = world.server.event() {
            opened += u32::from(matches!(event, ServerEvent::Opened { .. }));
            assert!(!matches!(event, ServerEvent::Closed(..)), "{event:?}");
        }
        if opened > 0 {
            written += world.server.write(1, Stream::Binary, &down[written..]);
            let mut buffer = [0; 999];
            let length = world.server.read(world.now, 1, &mut buffer);
            typed.extend_from_slice(&buffer[..length]);
            if written == down.len() && typed.len() >= up.len() && !finished {
                finished = true;
                world.server.finish(world.now, 1, Status::Success);
            }
        }
        while let Some(event) = world.clients[index].event() {
            match event {
                ClientEvent::Connected { .. } => {}
                ClientEvent::Output(Stream::Binary, bytes) => shown.extend_from_slice(&bytes),
                ClientEvent::Finished(Status::Success) => return Some(()),
                other => panic!("{other:?}"),
            }
        }
        None
    });
    world.pass(GONE);
    assert_eq!(opened, 1);
    assert_eq!(world.server.sessions(), 0);
    (shown, typed)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 10, ..ProptestConfig::default() })]

    #[test]
    fn all_arrives_in_order_and_once(
        seed: u64,
        loss in 0u8..28,
        doubled in 0u8..30,
        damaged in 0u8..10,
        jitter in 0u64..60_000,
        down in 0usize..60_000,
        up in 0usize..20_000,
    ) {
        let faults = Faults { loss, doubled, damaged, delay: (500, 500 + jitter), ..Faults::default() };
        let mut rng = Rng::with_seed(seed);
        let mut bytes = |length| (0..length).map(|_| rng.u8(..)).collect::<Vec<u8>>();
        let (down, up) = (bytes(down), bytes(up));
        for (server, client) in modes() {
            let mut world = World::new(server, faults, seed);
            let index = world.client(client, exec("ps"));
            let (shown, typed) = exchange(&mut world, index, &down, &up);
            prop_assert!(shown == down);
            prop_assert!(typed == up);
        }
    }
}

/// How many datagrams a loss of 20 % costs. Without loss it is one for each chunk, and fewer than one acknowledgement for two.
#[test]
fn losing_a_fifth_costs_little_more_than_a_fifth() {
    let down = vec![b'x'; 400_000];
    let needed = down.len().div_ceil(1334);
    for faults in [
        Faults {
            delay: (1_000, 1_000),
            ..Faults::default()
        },
        BAD,
    ] {
        let mut world = World::new(ServerMode::Keyed(ring()), faults, 7);
        let index = world.client(Mode::Keyed(key(1)), exec("dmesg"));
        let begin = world.now;
        let (shown, _) = exchange(&mut world, index, &down, &[]);
        assert_eq!(shown.len(), down.len());
        let sent = world.seen.to_clients.len();
        let back = world.seen.to_server.len();
        println!(
            "{} % lost: {sent} datagrams for {needed} chunks, {back} back, {:?}",
            faults.loss,
            world.now.since(begin) - GONE
        );
        // One in (1 - loss)(1 - damage) arrives. A third more than that is for those whose acknowledgement was lost.
        let arrives = f64::from(100 - faults.loss) * f64::from(100 - faults.damaged) / 10_000.0;
        assert!(
            (sent as f64) < needed as f64 / arrives * 1.33,
            "{sent} for {needed}"
        );
        assert!(back < sent + 32, "{back} acknowledgements of {sent}");
    }
}

#[test]
fn twenty_four_sessions_go_on_at_once() {
    for (server, client) in modes() {
        let mut world = World::new(server, BAD, 9);
        for _ in 0..24 {
            world.client(client.clone(), Purpose::Shell);
        }
        let mut numbers = Vec::new();
        let mut output = vec![Vec::new(); 24];
        let mut written = [0; 25];
        let text = |number: u32| format!("{number} ").repeat(5_000).into_bytes();
        world.until(|world| {
            while let Some(event) = world.server.event() {
                match event {
                    ServerEvent::Opened { number, .. } => numbers.push(number),
                    other => panic!("{other:?}"),
                }
            }
            for &number in &numbers {
                let done = &mut written[number as usize];
                *done += world
                    .server
                    .write(number, Stream::Text, &text(number)[*done..]);
            }
            for (client, output) in world.clients.iter_mut().zip(&mut output) {
                while let Some(event) = client.event() {
                    if let ClientEvent::Output(Stream::Text, bytes) = event {
                        output.extend_from_slice(&bytes);
                    }
                }
            }
            (output.iter().all(|output| output.len() >= 10_000)
                && output.iter().map(Vec::len).sum::<usize>()
                    == (1..=24).map(|number| text(number).len()).sum::<usize>())
            .then_some(())
        });
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=24).collect::<Vec<_>>());
        output.sort();
        let mut expected: Vec<_> = (1..=24).map(text).collect();
        expected.sort();
        assert!(output == expected);
    }
}

#[test]
fn a_reader_that_stops_holds_the_writer_and_nothing_else() {
    let mut world = World::new(ServerMode::Open, Faults::default(), 3);
    let index = world.client(Mode::Open, Purpose::Shell);
    assert!(matches!(world.server_event(), ServerEvent::Opened { .. }));
    let up = [b'u'; 100_000];
    let mut sent = 0;
    for _ in 0..200 {
        sent += world.clients[index].send(&up[sent..]);
        world.pass(Duration::from_millis(10));
    }
    // Eight chunks at the server, one more as a question whether there is room, and 16 KiB at the client.
    assert!(sent < 9 * 1334 + 16 * 1024 + 1, "{sent}");
    let mut read = 0;
    world.until(|world| {
        sent += world.clients[index].send(&up[sent..]);
        let mut buffer = [0; 4096];
        read += world.server.read(world.now, 1, &mut buffer);
        (read == up.len()).then_some(())
    });
}

#[test]
fn ends_that_hear_nothing_end() {
    for (server, client) in modes() {
        let mut world = World::new(server, Faults::default(), 4);
        let index = world.client(client, Purpose::Shell);
        assert!(matches!(world.server_event(), ServerEvent::Opened { .. }));
        // Nothing to say for minutes is no reason to end.
        world.pass(Duration::from_secs(300));
        assert_eq!(world.server.sessions(), 1);
        world.faults.loss = 100;
        assert_eq!(world.server_event(), ServerEvent::Closed(1, End::Lost));
        assert!(matches!(
            world.client_event(index),
            ClientEvent::Connected { .. }
        ));
        assert_eq!(world.client_event(index), ClientEvent::Closed(End::Lost));
        assert_eq!(
            (world.server.sessions(), world.server.statistics().lost),
            (0, 1)
        );
    }
}

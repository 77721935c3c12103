//! A cable that loses, repeats, changes and reorders.

use super::*;

/// A datagram with a number, which also says what all its bytes must be.
fn datagram(number: u16) -> Vec<u8> {
    let len = 8 + usize::from(number) * 13 % 1400;
    let mut bytes: Vec<u8> = (0..len).map(|at| (at as u16 ^ number) as u8).collect();
    bytes[..2].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// Whatever the cable does: what arrives is what was sent, and who asks until there is an answer gets them all.
#[test]
fn what_arrives_is_what_was_sent() {
    for seed in 0..20 {
        let mut world = World::new(Faults::BAD, seed);
        let one = world.hosts[0].bind(7).unwrap();
        let two = world.hosts[1].bind(9).unwrap();
        let mut tries = 0;
        for number in 0..60 {
            let sent = datagram(number);
            let mut answered = false;
            while !answered {
                tries += 1;
                assert!(tries < 3000, "seed {seed}: {number} of 60 were answered");
                // What cannot be sent because the host was not found is lost as anything else here.
                let _ = world.send(0, one, at(2, 9), &sent);
                let step = world.now + 200 * MS;
                world.until(step);
                for (from, bytes) in world.receive(1, two) {
                    assert_eq!(from, at(1, 7), "seed {seed}");
                    let number = u16::from_be_bytes([bytes[0], bytes[1]]);
                    assert_eq!(bytes, datagram(number), "seed {seed}");
                    let _ = world.send(1, two, from, &bytes);
                }
                let step = world.now + 200 * MS;
                world.until(step);
                for (from, bytes) in world.receive(0, one) {
                    assert_eq!(from, at(2, 9), "seed {seed}");
                    answered |= bytes == sent;
                }
            }
        }
        let drops = world.hosts.each_mut().map(|host| host.counters().drops);
        let noticed = drops.iter().map(|drops| drops.checksum + drops.malformed);
        assert!(noticed.sum::<u64>() > 0, "seed {seed}: {drops:?}");
        assert!(world.cable.corrupted > 0);
    }
}

/// Nothing is dropped without being counted.
#[test]
fn frames_that_were_changed_are_counted() {
    let corruption = Faults {
        corruption: 1,
        ..Faults::default()
    };
    let mut world = World::new(Faults::default(), 3);
    let one = world.hosts[0].bind(7).unwrap();
    let two = world.hosts[1].bind(9).unwrap();
    world.send(0, one, at(2, 9), b"who is where").unwrap();
    world.settle();
    world.receive(1, two);
    world.cable = Cable::new(world.nics.clone(), corruption, 3);
    let before = world.hosts[1].counters();
    for number in 0..500 {
        world.send(0, one, at(2, 9), &datagram(number)).unwrap();
        // One way: answers would be changed, too.
        world.cable.carry();
        world.hosts[1].poll(0);
        world.nics[1].rings.borrow_mut().sent.clear();
        assert_eq!(
            world.receive(1, two),
            [],
            "a changed datagram was delivered"
        );
    }
    let after = world.hosts[1].counters();
    assert_eq!(after.received - before.received, 500);
    let drops: u64 = after.drops.each().map(|(_, count)| count).sum();
    assert_eq!(drops, 500, "{:?}", after.drops);
    assert!(after.drops.checksum > 400);
}

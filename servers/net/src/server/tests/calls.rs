//! Each operation, and its bounds.

use ipc::proto::net::{Address, Exchange, Exchanged, SLOTS_MAX, SocketStatistics};

use super::*;

#[test]
fn without_a_device_every_call_says_so() {
    let mut bench = Bench::new();
    bench.server.stack = None;
    let ping = Ping {
        host: Address([10, 0, 0, 1]),
        timeout_ms: 1,
        bytes: 0,
    };
    let none = slots(0, 1);
    let exchange = Exchange {
        send: none,
        receive: none,
    };
    let mut client = bench.client();
    assert_eq!(client.status(&()), refused(NetError::NoDevice));
    assert_eq!(client.count(&()), refused(NetError::NoDevice));
    assert_eq!(client.ping(&ping), refused(NetError::NoDevice));
    assert_eq!(client.socket(&1, [0]), refused(NetError::NoDevice));
    assert_eq!(client.next_socket(&0), refused(NetError::NoDevice));
    assert_eq!(client.bind(&1), refused(NetError::NoDevice));
    assert_eq!(client.send(&none), refused(NetError::NoDevice));
    assert_eq!(client.receive(&none), refused(NetError::NoDevice));
    assert_eq!(client.exchange(&exchange), refused(NetError::NoDevice));
    assert_eq!(client.statistics(&()), refused(NetError::NoDevice));
    drop(client);
    assert_eq!(bench.server.deadline(), None);
}

#[test]
fn batches_go_and_come_through_the_slots() {
    let mut bench = Bench::new();
    let (badge, memory) = bench.bound(9);
    for index in 0..4 {
        put(&memory, index, PEER, &[index as u8; 3]);
    }
    assert_eq!(bench.through(badge).send(&slots(1, 3)), Ok(3));
    bench.settle();
    assert_eq!(bench.peer_has(), [[1; 3], [2; 3], [3; 3]]);
    assert_eq!(bench.through(badge).receive(&slots(4, 4)), Err(PARKED));
    bench.peer_sends(b"one");
    assert_eq!(bench.answer::<u16>(), 1);
    assert_eq!(get(&memory, 4), (PEER, b"one".to_vec()));
    bench.peer_sends(b"two");
    bench.peer_sends(b"three");
    assert_eq!(bench.through(badge).receive(&slots(6, 1)), Ok(1));
    assert_eq!(get(&memory, 6), (PEER, b"two".to_vec()));
    assert_eq!(bench.through(badge).receive(&slots(0, 8)), Ok(1));
    assert_eq!(get(&memory, 0), (PEER, b"three".to_vec()));
    let statistics = SocketStatistics {
        received: 3,
        received_bytes: 11,
        sent: 3,
        sent_bytes: 9,
        ..SocketStatistics::default()
    };
    assert_eq!(bench.through(badge).statistics(&()), Ok(statistics));
}

#[test]
fn an_exchange_sends_and_then_waits() {
    let mut bench = Bench::new();
    let (badge, memory) = bench.bound(9);
    put(&memory, 0, PEER, b"ask");
    let exchange = Exchange {
        send: slots(0, 1),
        receive: slots(0, 8),
    };
    assert_eq!(bench.through(badge).exchange(&exchange), Err(PARKED));
    bench.settle();
    assert_eq!(bench.peer_has(), [b"ask"]);
    bench.peer_sends(b"answer");
    let (sent, received) = (1, 1);
    assert_eq!(bench.answer::<Exchanged>(), Exchanged { sent, received });
    assert_eq!(get(&memory, 0), (PEER, b"answer".to_vec()));
    // What is there already needs no wait: it comes into the slot that was just sent.
    bench.peer_sends(b"more");
    let answer = bench.through(badge).exchange(&exchange);
    assert_eq!(answer, Ok(Exchanged { sent, received }));
    assert_eq!(get(&memory, 0).1, b"more");
}

#[test]
fn what_a_caller_that_gave_up_was_to_get_is_not_lost() {
    let mut bench = Bench::new();
    let (badge, memory) = bench.bound(9);
    assert_eq!(bench.through(badge).receive(&slots(0, 8)), Err(PARKED));
    bench.desk.gone.push(bench.desk.parked);
    bench.peer_sends(b"kept");
    assert_eq!(bench.through(badge).receive(&slots(1, 1)), Ok(1));
    assert_eq!(get(&memory, 1).1, b"kept");
}

#[test]
fn a_sender_waits_for_room_in_the_device() {
    let mut bench = Bench::new();
    let (badge, memory) = bench.bound(9);
    put(&memory, 0, PEER, b"x");
    assert_eq!(bench.through(badge).send(&slots(0, 1)), Ok(1));
    bench.settle();
    let set_room = |bench: &Bench, room| bench.nic.rings.borrow_mut().room = room;
    set_room(&bench, 0);
    assert_eq!(bench.through(badge).send(&slots(0, 1)), Err(PARKED));
    bench.server.poll(&mut bench.desk);
    assert!(bench.desk.answers.is_empty());
    set_room(&bench, 1);
    bench.settle();
    assert_eq!(bench.answer::<u16>(), 1);
    // One goes, the next does not: the caller hears of the one.
    for index in 0..3 {
        put(&memory, index, PEER, b"y");
    }
    assert_eq!(bench.through(badge).send(&slots(0, 3)), Ok(1));
    bench.settle();
    let exchange = Exchange {
        send: slots(0, 2),
        receive: slots(4, 1),
    };
    set_room(&bench, 0);
    assert_eq!(bench.through(badge).exchange(&exchange), Err(PARKED));
    set_room(&bench, 1);
    bench.server.poll(&mut bench.desk);
    let (sent, received) = (1, 0);
    assert_eq!(bench.answer::<Exchanged>(), Exchanged { sent, received });
}

#[test]
fn what_cannot_be_sent_is_told_when_it_is_the_first() {
    let mut bench = Bench::new();
    let (badge, memory) = bench.bound(9);
    put(&memory, 0, PEER, b"good");
    let far = SocketAddrV4::new([8, 8, 8, 8].into(), 9);
    put(&memory, 1, far, b"far");
    let (word, _) = Slots::place(2);
    let (peer, len) = (PEER, 1473);
    memory.set_word(word, Header { peer, len }.to_word());
    put(&memory, 3, SocketAddrV4::new([10, 0, 0, 1].into(), 0), b"");
    put(&memory, 4, SocketAddrV4::new([224, 0, 0, 1].into(), 9), b"");
    assert_eq!(bench.through(badge).send(&slots(0, 5)), Ok(1));
    for (index, error) in [
        (1, NetError::Unreachable),
        (2, NetError::TooLarge),
        (3, NetError::BadArgument),
        (4, NetError::BadArgument),
    ] {
        let sent = bench.through(badge).send(&slots(index, 1));
        assert_eq!(sent, refused(error));
    }
    // Four that were the first, and the one that ended the batch.
    let socket = bench.through(5).next_socket(&0).unwrap().unwrap();
    assert_eq!((socket.port, socket.statistics.failed), (Some(9), 5));
    assert_eq!(bench.through(5).next_socket(&1), Ok(None));
}

#[test]
fn a_socket_is_its_owner_s_alone_and_dies_with_its_handle() {
    let mut bench = Bench::new();
    let (badge, memory) = bench.socket(5, 8).unwrap();
    let none = slots(0, 1);
    assert_eq!(
        bench.through(badge).receive(&none),
        refused(NetError::NotBound)
    );
    assert_eq!(
        bench.through(badge).statistics(&()),
        refused(NetError::NotBound)
    );
    assert_eq!(bench.through(badge).bind(&9), Ok(9));
    assert_eq!(bench.through(badge).bind(&10), refused(NetError::Bound));
    for bad in [
        slots(0, 9),
        slots(8, 1),
        slots(0, 0),
        slots(u16::MAX, u16::MAX),
    ] {
        assert_eq!(
            bench.through(badge).send(&bad),
            refused(NetError::BadArgument)
        );
        assert_eq!(
            bench.through(badge).receive(&bad),
            refused(NetError::BadArgument)
        );
    }
    for other in [5, badge + 1, 0] {
        assert_eq!(
            bench.through(other).receive(&none),
            refused(NetError::NotASocket)
        );
    }
    assert_eq!(
        bench.through(badge).socket(&1, [0]),
        refused(NetError::NotASocket)
    );
    let (other, _) = bench.socket(6, 1).unwrap();
    assert_ne!(other, badge);
    assert_eq!(bench.through(other).bind(&9), refused(NetError::PortTaken));
    assert_eq!(Rc::strong_count(&memory.0), 3);
    bench.server.closed(badge);
    assert_eq!(Rc::strong_count(&memory.0), 2, "the server has it no more");
    assert_eq!(
        bench.through(badge).receive(&none),
        refused(NetError::NotASocket)
    );
    assert_eq!(bench.through(other).bind(&9), Ok(9));
}

#[test]
fn sockets_and_their_memory_have_bounds() {
    let mut bench = Bench::new();
    for bad in [0, SLOTS_MAX + 1, u16::MAX] {
        let (handle, _) = bench.memory(SLOTS_MAX);
        assert_eq!(
            bench.through(5).socket(&bad, [handle]),
            refused(NetError::BadArgument)
        );
    }
    let (small, _) = bench.memory(2);
    assert_eq!(
        bench.through(5).socket(&3, [small]),
        refused(NetError::BadArgument)
    );
    assert_eq!(
        bench.through(5).socket(&3, [99]),
        refused(NetError::BadArgument)
    );
    for _ in 0..SOCKETS_OF_PROGRAM_MAX {
        bench.socket(5, 1).unwrap();
    }
    assert_eq!(bench.socket(5, 1).map(drop), refused(NetError::Quota));
    while bench.server.sockets.len() < SOCKETS_MAX {
        bench.socket(6, 1).unwrap();
    }
    assert_eq!(bench.socket(7, 1).map(drop), refused(NetError::Busy));
    assert_eq!(bench.through(5).status(&()).unwrap().sockets, 0);
    let owners: Vec<_> = (0..)
        .map_while(|index| bench.through(5).next_socket(&index).unwrap())
        .map(|socket| (socket.owner, socket.port))
        .collect();
    let (five, six) = owners.split_at(SOCKETS_OF_PROGRAM_MAX);
    assert_eq!(owners.len(), SOCKETS_MAX);
    assert!(five.iter().all(|found| *found == (5, None)));
    assert!(six.iter().all(|found| *found == (6, None)));
}

#[test]
fn echoes_are_answered_when_they_are_over() {
    let mut bench = Bench::new();
    let ping = |host| Ping {
        host: Address([10, 0, 0, host]),
        timeout_ms: 500,
        bytes: 56,
    };
    assert_eq!(bench.through(5).ping(&ping(1)), Err(PARKED));
    bench.settle();
    assert_eq!(bench.answer::<Pong>(), Pong { ns: 0 });
    assert_eq!(bench.through(5).ping(&ping(99)), Err(PARKED));
    bench.pass(499);
    assert!(bench.desk.answers.is_empty());
    bench.pass(1);
    assert_eq!(bench.answer::<NetError>(), NetError::Unreachable);
    for _ in 0..ECHOES_OF_PROGRAM_MAX {
        assert_eq!(bench.through(5).ping(&ping(98)), Err(PARKED));
    }
    assert_eq!(bench.through(5).ping(&ping(1)), refused(NetError::Quota));
    assert_eq!(bench.through(6).ping(&ping(1)), Err(PARKED));
    for timeout_ms in [0, PING_MS_MAX + 1] {
        let bad = Ping {
            timeout_ms,
            ..ping(1)
        };
        assert_eq!(bench.through(7).ping(&bad), refused(NetError::BadArgument));
    }
}

#[test]
fn an_exchange_that_cannot_wait_says_what_was_sent() {
    let mut bench = Bench::new();
    let (badge, memory) = bench.bound(9);
    put(&memory, 0, PEER, b"once");
    bench.desk.is_full = true;
    let exchange = Exchange {
        send: slots(0, 1),
        receive: slots(0, 8),
    };
    let (sent, received) = (1, 0);
    let answer = bench.through(badge).exchange(&exchange);
    assert_eq!(answer, Ok(Exchanged { sent, received }));
    bench.settle();
    assert_eq!(bench.peer_has(), [b"once"]);
    let nothing = bench.through(badge).receive(&slots(0, 8));
    assert_eq!(nothing, refused(NetError::Busy));
}

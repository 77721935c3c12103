//! A device that fails while programs wait, or has no room for seconds: each of them is told.

use ipc::proto::net::{Address, Exchange, Exchanged, Link};

use super::*;
use crate::device::virtio::fake::{N, RECEIVE};
use crate::device::virtio::tests::TestCard;
use crate::device::virtio::tests::working;

const SECOND: u64 = 1_000_000_000;

fn ping(host: u8) -> Ping {
    Ping {
        host: Address([10, 0, 0, host]),
        timeout_ms: 50_000,
        bytes: 8,
    }
}

fn exchange() -> Exchange {
    Exchange {
        send: slots(0, 1),
        receive: slots(4, 1),
    }
}

/// The error that a parked call was refused with.
fn refusal(desk: &mut Desk, parked: u32) -> NetError {
    let place = desk.answers.iter().position(|(call, _)| *call == parked);
    let (_, answer) = desk.answers.swap_remove(place.unwrap());
    answer.get().unwrap()
}

#[test]
fn a_device_that_fails_is_told_to_who_waits_and_to_who_comes() {
    let mut bench = Bench::new();
    let [(sender, one), (receiver, _), (asker, two)] = [9, 10, 11].map(|port| bench.bound(port));
    put(&one, 0, PEER, b"x");
    put(&two, 0, PEER, b"y");
    assert_eq!(bench.through(sender).send(&slots(0, 1)), Ok(1));
    bench.settle();
    // An exchange that has sent, one that waits for an answer, an echo of a host that is not there.
    assert_eq!(bench.through(asker).exchange(&exchange()), Err(PARKED));
    assert_eq!(bench.through(receiver).receive(&slots(0, 1)), Err(PARKED));
    assert_eq!(bench.through(5).ping(&ping(99)), Err(PARKED));
    bench.settle();
    // And one that has left, and is not answered.
    assert_eq!(bench.through(5).ping(&ping(1)), Err(PARKED));
    bench.nic.rings.borrow_mut().room = 0;
    assert_eq!(bench.through(sender).send(&slots(0, 1)), Err(PARKED));
    bench.server.poll(&mut bench.desk);
    assert!(bench.desk.answers.is_empty());
    bench.nic.rings.borrow_mut().has_failed = true;
    bench.server.poll(&mut bench.desk);
    for parked in 2..=5 {
        assert_eq!(refusal(&mut bench.desk, parked), NetError::DeviceFailed);
    }
    // What it sent is known; why there is no answer, the next call says.
    let (sent, received) = (1, 0);
    assert_eq!(bench.answer::<Exchanged>(), Exchanged { sent, received });
    assert_eq!(bench.server.deadline(), None);
    let failed = || refused(NetError::DeviceFailed);
    assert_eq!(bench.through(sender).send(&slots(0, 1)), failed());
    // Also for who is unreachable even so.
    put(&one, 0, SocketAddrV4::new([8, 8, 8, 8].into(), 9), b"x");
    assert_eq!(bench.through(sender).send(&slots(0, 1)), failed());
    let answer = bench.through(asker).exchange(&exchange());
    assert_eq!(answer, refused(NetError::DeviceFailed));
    assert_eq!(
        bench.through(5).ping(&ping(1)),
        refused(NetError::DeviceFailed)
    );
    assert_eq!(bench.through(receiver).receive(&slots(0, 1)), Err(PARKED));
    let parked = bench.desk.parked;
    bench.server.poll(&mut bench.desk);
    assert_eq!(refusal(&mut bench.desk, parked), NetError::DeviceFailed);
    assert_eq!(bench.through(5).status(&()).unwrap().link, Link::Failed);
}

#[test]
fn what_came_before_the_device_failed_is_still_given() {
    let mut bench = Bench::new();
    let (badge, memory) = bench.bound(9);
    bench.peer_sends(b"last");
    bench.nic.rings.borrow_mut().has_failed = true;
    bench.server.poll(&mut bench.desk);
    assert_eq!(bench.through(badge).receive(&slots(0, 8)), Ok(1));
    assert_eq!(get(&memory, 0).1, b"last");
}

#[test]
fn a_device_without_room_is_waited_for_so_long_and_may_go_on() {
    let mut bench = Bench::new();
    let (badge, memory) = bench.bound(9);
    put(&memory, 0, PEER, b"x");
    assert_eq!(bench.through(badge).send(&slots(0, 1)), Ok(1));
    bench.settle();
    bench.nic.rings.borrow_mut().room = 0;
    assert_eq!(bench.through(badge).send(&slots(0, 1)), Err(PARKED));
    let parked = bench.desk.parked;
    assert_eq!(bench.server.deadline(), Some(3 * SECOND));
    bench.pass(2999);
    assert!(bench.desk.answers.is_empty());
    bench.pass(1);
    assert_eq!(refusal(&mut bench.desk, parked), NetError::DeviceStalled);
    assert_eq!(bench.server.deadline(), None, "the device says when");
    let stalled = refused(NetError::DeviceStalled);
    assert_eq!(bench.through(badge).send(&slots(0, 1)), stalled);
    bench.nic.rings.borrow_mut().room = 9;
    assert_eq!(bench.through(badge).send(&slots(0, 1)), Ok(1));
    bench.settle();
    assert_eq!(bench.peer_has(), [b"x", b"x"]);
}

/// The driver itself, and a card that gives back what it does not have.
#[test]
fn a_card_that_breaks_its_promises_ends_no_caller_in_silence() {
    let (device, card) = working();
    let kernel = FakeKernel::default();
    let stack = Stack::new(card, settings(2), 2, 0);
    let mut server = Server::<_, TestCard, _>::new(kernel, Some(stack));
    let mut desk = Desk::default();
    let mut client = Direct(&mut server, &mut desk);
    assert_eq!(Client::new(&mut client).ping(&ping(1)), Err(PARKED));
    server.poll(&mut desk);
    assert!(desk.answers.is_empty());
    device.give_back(RECEIVE, N as u32, 72);
    server.poll(&mut desk);
    assert_eq!(refusal(&mut desk, 1), NetError::DeviceFailed);
    assert_eq!(server.stack().unwrap().report().link, Link::Failed);
}

/// Calls of a program whose badge is 5.
struct Direct<'a>(&'a mut Server<FakeKernel, TestCard, Desk>, &'a mut Desk);

impl Transport for &mut Direct<'_> {
    type Handle = u64;

    fn call(&mut self, message: &mut Message<u64>) -> Result<(), Error> {
        match dispatch(self.0, self.1, 5, message) {
            Disposition::Reply => Ok(()),
            Disposition::Parked => Err(Error::TimedOut),
        }
    }
}

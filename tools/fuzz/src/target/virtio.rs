//! What a network card may leave in the rings and in its registers, at each step of its driver.

use arbitrary::{Arbitrary, Unstructured};
use net::device::Nic;
use net::device::virtio::fake::{N, Shared, TestHal, with_memory};
use net::device::virtio::transport::{Signal, VirtioPci};
use net::device::virtio::{Card, Fault};
use smoltcp::phy::{Device, RxToken, TxToken};
use smoltcp::time::Instant;

use super::acts;

/// What the device says while it is set up.
#[derive(Arbitrary, Debug)]
struct Start {
    /// Changes of the features that a good one has.
    features: u64,
    status_refused: u8,
    status_stuck: u8,
    is_restless: bool,
    refuses_vectors: bool,
    /// Buffers that each queue says that it has; `None`: as many as the driver wants.
    sizes: [Option<u16>; 2],
    messages: Option<u8>,
}

#[derive(Arbitrary, Debug)]
enum Act {
    Arrive(u16),
    Depart(bool),
    GiveBack(bool, Result<u8, u32>, Result<u16, u32>),
    SetUsed(bool, u16),
    Scribble(bool, u8),
    Status(u8),
    Reason(u8),
    Own([u8; 8]),
    Receive,
    Send(u16),
    Interrupt(u8),
    Rest,
}

type TestCard = Card<TestHal, Shared, N>;

fn open(device: &Shared, start: &Start) -> Result<TestCard, Fault> {
    {
        let mut device = device.0.borrow_mut();
        device.features ^= start.features;
        device.status_refused = start.status_refused;
        device.status_stuck = start.status_stuck;
        device.is_restless = start.is_restless;
        device.refuses_vectors = start.refuses_vectors;
        for (queue, size) in device.queues.iter_mut().zip(start.sizes) {
            queue.size = size.unwrap_or(queue.size);
        }
    }
    let signal = match start.messages {
        None => Signal::Line,
        Some(vectors) => Signal::Messages {
            vectors: 1 + vectors % 2,
        },
    };
    Card::new(VirtioPci::new(device.clone(), Shared::layout(), signal)?)
}

/// How the device starts, and what it and its driver do.
pub fn run(bytes: &[u8]) {
    with_memory(bytes, run_driver);
}

fn run_driver(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let Ok(start) = Start::arbitrary(&mut input) else {
        return;
    };
    let device = Shared::new();
    let Ok(mut card) = open(&device, &start) else {
        return;
    };
    // Once it has written over descriptors, the device itself would go astray by them.
    let mut is_sane = true;
    let (mut lent, mut taken) = (0, 0);
    for act in acts(&mut input) {
        let queue = usize::from;
        match act {
            Act::Arrive(bytes) if is_sane => {
                lent += u64::from(device.arrive(&vec![7; usize::from(bytes % 1600)]));
            }
            Act::Depart(gives_back) if is_sane => drop(device.depart(gives_back)),
            Act::Arrive(_) | Act::Depart(_) => {}
            Act::GiveBack(which, place, bytes) => {
                let place = place.map_or_else(|any| any, u32::from);
                let bytes = bytes.map_or_else(|any| any, u32::from);
                device.give_back(queue(which), place, bytes);
                lent += 1;
            }
            Act::SetUsed(which, used) => {
                device.set_used(queue(which), used);
                // It may say that it used as many as it can count.
                lent += 1 << 16;
            }
            Act::Scribble(which, byte) => {
                is_sane = false;
                device.scribble(queue(which), byte);
            }
            Act::Status(status) => device.0.borrow_mut().status = status,
            Act::Reason(reason) => device.0.borrow_mut().reason = reason,
            Act::Own(own) => device.0.borrow_mut().own = own,
            Act::Receive => {
                if let Some((token, _)) = card.receive(Instant::ZERO) {
                    let length = token.consume(<[u8]>::len);
                    assert!((14..=1514).contains(&length), "{length} bytes");
                    taken += 1;
                    assert!(taken <= lent, "a frame that nobody sent");
                }
            }
            Act::Send(bytes) => {
                if let Some(token) = card.transmit(Instant::ZERO) {
                    token.consume(usize::from(bytes % 1515), |room| room.fill(9));
                }
            }
            Act::Interrupt(bits) => card.interrupted(bits.into()),
            Act::Rest => drop(card.rest()),
        }
        if card.fault().is_some() {
            assert!(card.rest(), "a card that failed has nothing more to do");
            assert!(card.receive(Instant::ZERO).is_none());
            assert!(card.transmit(Instant::ZERO).is_none());
            is_sane = false;
        }
        let _ = (card.link(), card.mac(), card.counters());
    }
}

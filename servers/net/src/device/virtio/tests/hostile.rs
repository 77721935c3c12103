//! What a device may leave in the rings.

use ipc::proto::net::Link;
use proptest::prelude::*;

use super::*;
use crate::device::Nic;
use crate::device::virtio::fake::{RECEIVE, TRANSMIT};

/// The device has failed: it was reset, and nothing comes or goes any more.
fn assert_failed(device: &Shared, card: &mut TestCard, fault: Fault) {
    assert_eq!(card.fault(), Some(fault));
    assert_eq!(device.0.borrow().status, 0);
    assert_eq!(card.link(), Link::Failed);
    assert_eq!(receive(card), None);
    assert!(!send(card, &[0; 60]));
    assert!(card.rest(), "nothing more is to be done");
    assert_eq!(card.counters().errors, 1);
}

#[test]
fn a_buffer_that_the_device_does_not_have_ends_it() {
    for place in [N as u32, 0xffff, 0x1_0008] {
        let (device, mut card) = working();
        device.give_back(RECEIVE, place, 72);
        assert_eq!(receive(&mut card), None);
        assert_failed(&device, &mut card, Fault::Buffer);
    }
}

#[test]
fn a_sender_whose_buffers_come_back_wrong_ends_too() {
    let (device, mut card) = working();
    for _ in 0..N {
        assert!(send(&mut card, &[0; 60]));
    }
    device.give_back(TRANSMIT, N as u32, 0);
    assert!(!send(&mut card, &[0; 60]));
    assert!(card.has_failed(), "before the end of the batch");
    assert!(card.rest());
    assert_failed(&device, &mut card, Fault::Buffer);
}

/// It claims the same buffer again and again, which it has again each time: each turn ends all the same.
#[test]
fn entries_without_end_are_followed_a_few_at_a_time() {
    let (device, mut card) = working();
    device.set_used(RECEIVE, 0x8000);
    for turn in 1..10 {
        assert_eq!(receive(&mut card), None);
        assert_eq!(card.counters().errors, turn * N as u64);
        assert!(!card.rest(), "there is more");
    }
}

#[test]
fn lengths_that_cannot_be_are_counted_and_the_buffer_goes_back() {
    let (device, mut card) = working();
    for (errors, bytes) in (1..).zip([0, 11, 12, 25, 1527, 2048, u32::MAX]) {
        device.give_back(RECEIVE, errors % N as u32, bytes);
        assert_eq!(receive(&mut card), None);
        assert_eq!(card.counters().errors, u64::from(errors));
    }
    assert_eq!(card.fault(), None);
}

#[test]
fn what_only_the_driver_may_write_is_not_read_back() {
    let (device, mut card) = working();
    device.scribble(RECEIVE, 0xff);
    device.scribble(TRANSMIT, 0xff);
    for place in 0..N as u32 {
        device.give_back(RECEIVE, place, 72);
        assert_eq!(receive(&mut card).map(|frame| frame.len()), Some(60));
    }
    for _ in 0..N {
        assert!(send(&mut card, &[0; 60]));
    }
    for place in 0..N as u32 {
        device.give_back(TRANSMIT, place, 0);
    }
    for _ in 0..N {
        assert!(send(&mut card, &[0; 60]));
    }
    assert_eq!(card.fault(), None);
}

/// What a device does, and its driver.
#[derive(Clone, Debug)]
enum Act {
    Arrive(usize),
    Depart(bool),
    GiveBack(usize, u32, u32),
    SetUsed(usize, u16),
    Scribble(usize, u8),
    Status(u8),
    Receive,
    Send(usize),
    Interrupt(u64),
    Rest,
}

fn act() -> impl Strategy<Value = Act> {
    let place = prop_oneof![0..2 * N as u32, any::<u32>()];
    let bytes = prop_oneof![0..2048_u32, any::<u32>()];
    prop_oneof![
        4 => (14..1515_usize).prop_map(Act::Arrive),
        4 => any::<bool>().prop_map(Act::Depart),
        2 => (0..2_usize, place, bytes).prop_map(|(q, place, bytes)| Act::GiveBack(q, place, bytes)),
        1 => (0..2_usize, any::<u16>()).prop_map(|(q, used)| Act::SetUsed(q, used)),
        1 => (0..2_usize, any::<u8>()).prop_map(|(q, byte)| Act::Scribble(q, byte)),
        1 => any::<u8>().prop_map(Act::Status),
        6 => Just(Act::Receive),
        6 => (0..3000_usize).prop_map(Act::Send),
        2 => (0..4_u64).prop_map(Act::Interrupt),
        4 => Just(Act::Rest),
    ]
}

proptest! {
    /// The driver neither panics nor goes on for ever, and whatever it delivers is a frame's length.
    #[test]
    fn a_device_may_do_anything(acts in proptest::collection::vec(act(), 1..200)) {
        let (device, mut card) = working();
        // Once it has written over descriptors, the device itself would go astray by them.
        let mut is_sane = true;
        for act in acts {
            match act {
                Act::Arrive(bytes) if is_sane => {
                    device.arrive(&vec![7; bytes]);
                }
                Act::Depart(gives_back) if is_sane => {
                    device.depart(gives_back);
                }
                Act::Arrive(_) | Act::Depart(_) => {}
                Act::GiveBack(queue, place, bytes) => device.give_back(queue, place, bytes),
                Act::SetUsed(queue, used) => device.set_used(queue, used),
                Act::Scribble(queue, byte) => {
                    is_sane = false;
                    device.scribble(queue, byte);
                }
                Act::Status(status) => device.0.borrow_mut().status = status,
                Act::Receive => {
                    if let Some(frame) = receive(&mut card) {
                        prop_assert!((14..=1514).contains(&frame.len()));
                        prop_assert_eq!(card.fault(), None);
                    }
                }
                Act::Send(bytes) => {
                    let bytes = bytes.min(1514);
                    send(&mut card, &vec![9; bytes]);
                }
                Act::Interrupt(bits) => card.interrupted(bits),
                Act::Rest => {
                    let _ = card.rest();
                }
            }
            if card.fault().is_some() {
                prop_assert!(card.rest());
                prop_assert_eq!(receive(&mut card), None);
                is_sane = false;
            }
        }
    }
}

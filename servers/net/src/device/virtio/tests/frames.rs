//! Frames on their way, and when the device interrupts.

use super::*;
use crate::device::Nic;
use crate::device::virtio::fake::{RECEIVE, TRANSMIT};

fn frame(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + bytes) as u8).collect()
}

#[test]
fn frames_of_every_length_go_both_ways() {
    let (device, mut card) = working();
    for bytes in 14..=1514 {
        let frame = frame(bytes);
        assert!(device.arrive(&frame));
        assert_eq!(receive(&mut card), Some(frame.clone()));
        assert_eq!(receive(&mut card), None);
        assert!(send(&mut card, &frame));
        assert_eq!(device.depart(true), Some(frame));
        assert_eq!(device.depart(true), None);
    }
    assert_eq!(card.counters().errors, 0);
}

#[test]
fn all_buffers_are_the_devices_again_after_each_batch() {
    let (device, mut card) = working();
    for batch in 0..5 {
        for _ in 0..N {
            assert!(device.arrive(&frame(60 + batch)));
        }
        assert!(!device.arrive(&frame(60)));
        for _ in 0..N {
            assert_eq!(receive(&mut card), Some(frame(60 + batch)));
        }
        assert_eq!(receive(&mut card), None);
    }
}

#[test]
fn a_batch_is_told_once() {
    let (device, mut card) = working();
    assert!(card.rest());
    let told = |queue: usize| device.0.borrow().queues[queue].told;
    assert_eq!((told(RECEIVE), told(TRANSMIT)), (1, 0));
    for _ in 0..5 {
        device.arrive(&frame(60));
    }
    card.interrupted(1);
    while let Some(frame) = receive(&mut card) {
        assert!(send(&mut card, &frame));
    }
    assert_eq!((told(RECEIVE), told(TRANSMIT)), (1, 0));
    assert!(card.rest());
    assert_eq!((told(RECEIVE), told(TRANSMIT)), (2, 1));
    // Nothing new, nothing told.
    assert!(card.rest());
    assert_eq!((told(RECEIVE), told(TRANSMIT)), (2, 1));
}

#[test]
fn the_device_interrupts_while_the_driver_rests_and_not_otherwise() {
    let (device, mut card) = working();
    assert!(!device.is_armed(RECEIVE));
    assert!(card.rest());
    assert!(device.is_armed(RECEIVE) && !device.is_armed(TRANSMIT));
    card.interrupted(1);
    assert!(!device.is_armed(RECEIVE));
    // A frame came before the driver rested: it must look again.
    device.arrive(&frame(60));
    assert!(!card.rest());
    assert!(!device.is_armed(RECEIVE));
    assert!(receive(&mut card).is_some());
    assert!(card.rest());
    assert_eq!(card.counters().interrupts, 1);
}

#[test]
fn without_room_the_sender_is_waited_for() {
    let (device, mut card) = working();
    for _ in 0..N {
        assert!(send(&mut card, &frame(60)));
    }
    assert!(card.rest());
    // Nobody has wanted more yet.
    assert!(!device.is_armed(TRANSMIT));
    assert!(!send(&mut card, &frame(60)));
    // What comes now stays in the device, as its answer would have no room, and is no reason not to rest.
    device.arrive(&frame(61));
    assert_eq!(receive(&mut card), None);
    assert!(card.rest());
    assert!(device.is_armed(TRANSMIT));
    assert_eq!(device.depart(true), Some(frame(60)));
    assert!(!card.rest(), "there is room, and a frame");
    assert_eq!(receive(&mut card), Some(frame(61)));
    assert!(send(&mut card, &frame(62)));
    assert!(card.rest());
    assert!(!device.is_armed(TRANSMIT));
}

#[test]
fn a_wired_interrupt_falls_when_its_reason_is_read() {
    let device = Shared::new();
    let mut card = open(&device, Signal::Line).unwrap();
    device.0.borrow_mut().reason = 1;
    card.interrupted(1);
    assert_eq!(device.0.borrow().reason, 0);
    device.0.borrow_mut().status |= 0x40;
    card.interrupted(1);
    assert_eq!(card.fault(), None);
    device.0.borrow_mut().reason = 2;
    card.interrupted(1);
    assert_eq!(card.fault(), Some(Fault::NeedsReset));
}

//! The device: what it does late, twice, or not at all.

use super::Bench;
use crate::fake::Shared;
use crate::registers::{Register, Registers};
use crate::uart::{Absent, Counters, RECEIVE_BURST, Uart};

#[test]
fn nothing_at_the_ports_is_said_to_be_absent() {
    let device = Shared::new(16);
    device.0.borrow_mut().absent = true;
    assert_eq!(Uart::start(device).err(), Some(Absent));
}

#[test]
fn counters_name_what_was_lost() {
    let counters = Counters {
        overruns: 2,
        lost_interrupts: 1,
        ..Counters::default()
    };
    assert_eq!(counters.to_string(), "2 overruns, 1 lost interrupts");
}

#[test]
fn a_stuck_transmitter_is_watched_ever_less_often() {
    let mut bench = Bench::new(16);
    bench.device.0.borrow_mut().stuck_transmitter = true;
    bench.write(1, b"x");
    let mut waits = Vec::new();
    for _ in 0..10 {
        waits.push(bench.console.watch().expect("output is pending"));
        bench.watchdog();
    }
    assert!(waits.windows(2).all(|pair| pair[0] <= pair[1]));
    assert_eq!((waits[0], waits[9]), (20_000_000, 1_280_000_000));
    bench.device.0.borrow_mut().stuck_transmitter = false;
    bench.settle();
    assert_eq!(bench.sent(), b"x");
}

#[test]
fn lost_transmitter_interrupts_are_made_up_for_and_counted() {
    let mut bench = Bench::new(16);
    bench.device.0.borrow_mut().lose_every = 2;
    let text = [b'z'; 500];
    assert!(bench.write(1, &text));
    bench.settle();
    assert_eq!(bench.sent(), text);
    assert!(bench.console.counters().lost_interrupts > 0);
}

/// On a busy host the time of the watch may be over while the interrupt is on its way.
#[test]
fn an_interrupt_behind_the_watch_is_late_and_not_lost() {
    for depth in [1, 16] {
        let mut bench = Bench::new(depth);
        let text = [b'z'; 500];
        assert!(bench.write(1, &text));
        while bench.sent().len() < text.len() {
            bench.device.carry();
            bench.watchdog();
            bench.serve_interrupt();
        }
        assert_eq!(bench.sent(), text);
        assert_eq!(bench.console.counters(), Counters::default());
    }
}

#[test]
fn a_stuck_receiver_takes_bounded_work_and_is_counted() {
    let mut bench = Bench::new(16);
    bench.device.0.borrow_mut().stuck_receiver = true;
    bench.read(1, 1000);
    bench.device.arrive(b'x');
    assert!(bench.serve_interrupt());
    assert_eq!(bench.input().len(), RECEIVE_BURST);
    assert_eq!(bench.console.counters().long_bursts, 1);
}

#[test]
fn with_no_reader_the_device_holds_its_peer_off_and_then_overruns() {
    let mut bench = Bench::new(16);
    let mut held = 0;
    while bench.device.room() > 0 {
        bench.device.arrive(held as u8);
        bench.serve_interrupt();
        held += 1;
        assert!(held < 10_000, "bounded");
    }
    bench.device.arrive(b'!');
    let mut got = 0;
    while got < held {
        bench.read(1, 100);
        bench.settle();
        assert!(bench.input().len() > got, "bytes remain");
        got = bench.input().len();
    }
    let expected: Vec<u8> = (0..held).map(|n| n as u8).collect();
    assert_eq!(bench.input(), expected);
    assert_eq!(bench.console.counters().overruns, 1);
}

#[test]
fn an_edge_that_comes_while_the_line_is_masked_is_not_missed() {
    let mut bench = Bench::new(16);
    bench.read(1, 1);
    bench.device.arrive(b'a');
    bench.late = b"b".to_vec();
    bench.settle();
    bench.read(2, 1);
    assert_eq!(bench.input(), b"ab");
}

#[test]
fn what_was_sent_before_the_console_started_is_not_lost() {
    let device = Shared::new(16);
    device.arrive(b'a');
    let mut bench = Bench::with(device.clone());
    bench.read(1, 8);
    // The next byte of a script comes as soon as there is room for it.
    for byte in *b"bc" {
        assert!(bench.serve_interrupt());
        assert_eq!(device.room(), 1, "the FIFOs are still off");
        bench.device.arrive(byte);
        bench.read(2, 8);
    }
    bench.settle();
    assert_eq!(bench.input(), b"abc");
    assert_eq!(device.room(), 16, "the line was quiet: the FIFOs are on");
}

#[test]
fn what_the_kernel_is_still_sending_is_not_lost() {
    let mut device = Shared::new(16);
    device.write(Register::Data, b'k');
    let mut bench = Bench::with(device.clone());
    assert!(bench.console.watch().is_some(), "the FIFOs are off");
    bench.watchdog();
    bench.settle();
    assert_eq!(bench.sent(), b"k");
    assert_eq!(device.room(), 16, "the FIFOs are on");
}

#[test]
fn fifos_that_are_on_are_left_alone() {
    let device = Shared::new(16);
    drop(Bench::with(device.clone()));
    for byte in *b"kept" {
        device.arrive(byte);
    }
    let mut bench = Bench::with(device);
    bench.read(1, 8);
    bench.settle();
    assert_eq!(bench.input(), b"kept");
}

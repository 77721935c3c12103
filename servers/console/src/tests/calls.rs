//! Calls: who is answered, when, and with what.

use ipc::proto::stream::{CHUNK_MAX, Flush, Read};

use super::Bench;
use crate::driver::PARKED_MAX;

#[test]
fn line_feeds_get_a_return() {
    let mut bench = Bench::new(16);
    assert!(bench.write(1, b"a\n\nb\r\n"));
    bench.settle();
    assert_eq!(bench.sent(), b"a\r\n\r\nb\r\r\n");
    assert_eq!(bench.writes, [1]);
}

#[test]
fn a_reader_waits_and_gets_several_bytes_at_once() {
    let mut bench = Bench::new(16);
    assert!(bench.read(1, 64));
    assert!(bench.reads.is_empty());
    for byte in *b"hello" {
        bench.device.arrive(byte);
    }
    bench.settle();
    assert_eq!(bench.reads, [(1, b"hello".to_vec())]);
    for byte in *b"world" {
        bench.device.arrive(byte);
    }
    bench.settle();
    assert!(bench.read(2, 3) && bench.read(3, 64));
    assert_eq!(
        bench.reads[1..],
        [(2, b"wor".to_vec()), (3, b"ld".to_vec())]
    );
}

#[test]
fn bytes_of_a_dead_reader_go_to_the_next() {
    let mut bench = Bench::new(16);
    bench.desk.dead.push(1);
    assert!(bench.read(1, 64) && bench.read(2, 64));
    bench.device.arrive(b'x');
    bench.settle();
    assert_eq!(bench.reads, [(2, vec![b'x'])]);
}

#[test]
fn a_closed_badge_takes_its_readers_along() {
    let mut bench = Bench::new(16);
    assert!(bench.call::<Read>(1, 7, &8) && bench.call::<Read>(2, 8, &8));
    bench.console.closed(7);
    bench.device.arrive(b'x');
    bench.settle();
    assert_eq!(bench.reads, [(2, vec![b'x'])]);
}

#[test]
fn writers_are_parked_in_order_and_then_refused() {
    let mut bench = Bench::new(1);
    bench.device.0.borrow_mut().stuck_transmitter = true;
    let chunk = [b'\n'; CHUNK_MAX];
    let taken = (0..100)
        .take_while(|&call| bench.write(call, &chunk))
        .count();
    let accepted = bench.writes.len();
    assert_eq!(taken, accepted + PARKED_MAX);
    assert!(accepted >= 1 && bench.console.watch().is_some());
    bench.device.0.borrow_mut().stuck_transmitter = false;
    bench.settle();
    assert_eq!(bench.writes, (0..taken as u32).collect::<Vec<_>>());
    assert_eq!(bench.sent().len(), taken * CHUNK_MAX * 2);
}

#[test]
fn a_flush_is_answered_when_the_last_byte_has_left() {
    let mut bench = Bench::new(16);
    assert!(bench.call::<Flush>(1, 0, &()));
    assert_eq!(bench.writes, [1], "nothing to wait for");
    bench.write(2, b"last words");
    assert!(bench.call::<Flush>(3, 0, &()));
    for _ in 0..3 {
        bench.watchdog();
        assert_eq!(bench.writes, [1, 2], "the bytes are in the device still");
    }
    bench.device.carry();
    bench.watchdog();
    assert_eq!(bench.writes, [1, 2, 3]);
    assert_eq!(bench.console.watch(), None);
}

//! A record that is copied while its slot is written again, in every order, and with every value that a relaxed load may return.
//! Run with `RUSTFLAGS="--cfg loom" cargo test --release -p kcore --lib ring::races`.

use super::{Ring, Slot};
use ipc::abi::trace::TraceRecord;
use loom::sync::Arc;
use loom::thread;

const fn record(number: u64) -> TraceRecord {
    TraceRecord {
        sequence: number,
        tsc: number,
        event: number,
        who: number,
        words: [number; 2],
    }
}

/// In a ring of one slot, each record overwrites the last: what is read is whole, and what is not read is counted.
#[test]
fn what_is_read_is_whole() {
    loom::model(|| {
        let slots: &'static [Slot] = Box::leak(Box::new([Slot::default()]));
        let ring = Arc::new(Ring::new(slots));
        let writer = {
            let ring = ring.clone();
            thread::spawn(move || (1..=2).for_each(|number| ring.write(record(number))))
        };
        let mut position = 0;
        for _ in 0..2 {
            let mut out = [record(0)];
            let reading = ring.read(position, &mut out);
            if reading.copied == 1 {
                assert_eq!(out[0], record(reading.next));
            }
            let passed = reading.next - position;
            assert_eq!(passed, reading.copied as u64 + reading.lost);
            position = reading.next;
        }
        writer.join().unwrap();
    });
}

//! Writer against reader under every interleaving, and every value that a relaxed load may return, as loom explores them.
//! Run with `RUSTFLAGS="--cfg loom" cargo test --release -p sample-ring`.

use crate::{AtomicU64, Counts, Geometry, Reader, Writer};
use loom::sync::Arc;
use loom::thread;

/// A ring of two records, of which four words are used: sequence, header, two words of payload.
const SMALL: Geometry = match Geometry::new(9, 2) {
    Some(geometry) => geometry,
    None => panic!("no such ring"),
};
/// Says no more than that the fixed words are used.
const HEADER: u64 = 0;

fn write(writer: &Writer, value: u64) {
    let mut slot = writer.begin();
    assert!(slot.push(value) && slot.push(!value));
    slot.publish(HEADER);
}

/// The same, by two functions that do not hand the slot over.
fn write_in_two_steps(writer: &Writer, value: u64) {
    let mut slot = writer.begin();
    assert!(slot.push(value));
    let used = slot.used();
    let mut slot = writer.resume(used);
    assert!(slot.push(!value));
    slot.publish(HEADER);
}

/// Drains. Every record must carry its own number, twice.
fn drain(reader: &mut Reader) -> u64 {
    let mut whole = 0;
    let mut drain = reader.drain().unwrap();
    while let Some(record) = drain.next_words() {
        let record = record.unwrap();
        assert_eq!((record[2], record[3]), (record[0], !record[0]), "torn");
        whole += 1;
    }
    whole
}

/// Writes `before` records, then `during` more while a reader drains once; then everything must be accounted for.
fn race(before: u64, during: u64, write: fn(&Writer, u64)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let words: Vec<_> = (0..SMALL.words()).map(|_| AtomicU64::new(0)).collect();
        let words = Arc::new(words);
        let writer = Writer::format(&words, SMALL).unwrap();
        let mut reader = Reader::open(words[..].into(), SMALL).unwrap();
        for n in 1..=before {
            write(&writer, n);
        }
        let thread = thread::spawn({
            let words = words.clone();
            move || {
                let writer = Writer::of(&words, SMALL, before).unwrap();
                for n in before + 1..=before + during {
                    write(&writer, n);
                }
            }
        });
        let mut whole = drain(&mut reader);
        thread.join().unwrap();
        whole += drain(&mut reader);
        let Counts { lost, damaged, .. } = reader.counts();
        assert_eq!((whole + lost, damaged), (before + during, 0));
        // Nothing is lost that was not overwritten.
        assert!(lost <= before + during - SMALL.records() as u64);
        assert_eq!(reader.position(), before + during);
    });
}

#[test]
fn an_empty_ring_fills() {
    race(0, 2, write);
}

#[test]
fn a_full_ring_is_overwritten() {
    race(2, 2, write);
}

#[test]
fn the_writer_laps_the_reader() {
    race(1, 4, write);
}

#[test]
fn a_record_is_resumed_over_an_old_one() {
    race(2, 2, write_in_two_steps);
}

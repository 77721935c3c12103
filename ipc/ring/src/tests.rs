//! The ring on the host: accounting as a law, real threads, and hostile memory.

use crate::geometry::{WORD_MAGIC, WORD_RECORDS, WORD_SLOT_WORDS};
use crate::*;
use core::sync::atomic::Ordering::Relaxed;
use ipc::abi::profile::{Header, KIND_SAMPLE, LAYOUT_VERSION, Marker, SLOT_WORDS};
use proptest::prelude::*;
use std::boxed::Box;
use std::vec::Vec;

const SMALL: Geometry = Geometry::new(16, 8).unwrap();

fn memory(geometry: Geometry) -> Vec<AtomicU64> {
    (0..geometry.words()).map(|_| AtomicU64::new(0)).collect()
}

fn header(tagged: usize) -> Header {
    Header {
        version: LAYOUT_VERSION,
        kind: KIND_SAMPLE,
        tagged: tagged as u8,
        ..Header::default()
    }
}

/// Writes a record with `frames` frames whose every word tells `value`.
fn write(writer: &Writer, value: u64, frames: usize) {
    let mut slot = writer.begin();
    for _ in 0..5 + frames {
        assert!(slot.push(value));
    }
    slot.publish(header(frames).pack());
}

fn assert_whole(sample: &Sample, value: u64) {
    let part = sample.parts().next().unwrap();
    assert!(part.frames.iter().all(|&frame| frame == value));
    assert_eq!(
        (sample.tsc(), sample.rsp(), sample.rbp()),
        (value, value, value)
    );
}

#[test]
fn the_kernels_ring_is_made_of_pages_and_lives_in_plain_memory() {
    let geometry = Geometry::KERNEL;
    assert_eq!(geometry.bytes(), 4096 + 1024 * 512);
    let plain: &'static mut [u64] = Box::leak(std::vec![0u64; geometry.words()].into_boxed_slice());
    // SAFETY: the memory is leaked, aligned, of this size, and nothing else uses it.
    let words = unsafe { words(plain.as_ptr(), geometry) };
    let writer = Writer::format(words, geometry).unwrap();
    let mut reader = Reader::open(words.into(), geometry).unwrap();
    write(&writer, 7, 3);
    let sample = reader.drain().unwrap().next().unwrap().unwrap();
    assert_whole(&sample, 7);
    assert_eq!((sample.sequence(), writer.head()), (1, 1));
}

#[test]
fn a_slot_takes_what_it_has_room_for_and_gives_back() {
    let words = memory(SMALL);
    let writer = Writer::format(&words, SMALL).unwrap();
    let mut slot = writer.begin();
    assert_eq!((slot.used(), slot.room()), (2, SLOT_WORDS - 2));
    while slot.room() > 0 {
        assert!(slot.push(1));
    }
    assert!(!slot.push(1));
    slot.rewind(9);
    assert_eq!(slot.used(), 9);
    slot.rewind(40);
    slot.rewind(10);
    assert_eq!(slot.used(), 9, "rewinding never goes forward");
    slot.rewind(0);
    assert_eq!(slot.used(), 2);
}

#[test]
fn a_record_that_is_not_published_costs_the_oldest_one() {
    let words = memory(SMALL);
    let writer = Writer::format(&words, SMALL).unwrap();
    let mut reader = Reader::open(words[..].into(), SMALL).unwrap();
    (1..=8).for_each(|n| write(&writer, n, 1));
    drop(writer.begin());
    let read: Vec<_> = reader
        .drain()
        .unwrap()
        .map(|s| s.unwrap().sequence())
        .collect();
    assert_eq!(read, [2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(
        reader.counts(),
        Counts {
            read: 7,
            lost: 1,
            damaged: 0
        }
    );
}

#[test]
fn parts_are_split_at_markers() {
    let (client, its_client) = (marker(5), marker(9));
    let mut words = [0; SLOT_WORDS];
    let tagged: Vec<u64> = [
        &[10, 11][..],
        &client.pack(),
        &[12],
        &its_client.pack(),
        &[13, 14],
    ]
    .concat();
    words[1] = header(tagged.len()).pack();
    words[3] = 3 | 4 << 32;
    words[4] = 2 | 6 << 32;
    words[7..7 + tagged.len()].copy_from_slice(&tagged);
    let sample = Sample::parse(words).unwrap();
    let owner = Marker {
        pid: 3,
        tid: 4,
        image: 2,
    };
    let part = |owner, frames| Part { owner, frames };
    assert_eq!(sample.weight(), 6);
    assert_eq!(
        sample.parts().collect::<Vec<_>>(),
        [
            part(owner, &[10, 11][..]),
            part(client, &[12]),
            part(its_client, &[13, 14])
        ]
    );
}

fn marker(n: u32) -> Marker {
    Marker {
        pid: n,
        tid: n + 1,
        // The second word looks like the first one of a marker, and must not be taken for it.
        image: 0x4d41_0000 + n,
    }
}

#[test]
fn records_that_make_no_sense_are_named() {
    let parse = |header: Header, tagged: &[u64]| {
        let mut words = [0; SLOT_WORDS];
        words[1] = header.pack();
        words[7..7 + tagged.len()].copy_from_slice(tagged);
        Sample::parse(words).err()
    };
    let good = header(1);
    let [first, second] = marker(1).pack();
    assert_eq!(parse(good, &[1]), None);
    let other = Header { version: 9, ..good };
    assert_eq!(parse(other, &[1]), Some(RecordError::Version(9)));
    let other = Header { kind: 0, ..good };
    assert_eq!(parse(other, &[1]), Some(RecordError::Kind(0)));
    assert_eq!(parse(header(58), &[1]), Some(RecordError::TooLong(65)));
    assert_eq!(parse(header(0), &[]), Some(RecordError::NoFrame));
    assert_eq!(
        parse(header(3), &[first, second, 1]),
        Some(RecordError::NoFrame)
    );
    for bare in [
        &[1, first][..],
        &[1, first, second],
        &[1, first, second, first, second, 1],
    ] {
        assert_eq!(
            parse(header(bare.len()), bare),
            Some(RecordError::BareMarker)
        );
    }
}

#[test]
fn a_header_of_another_ring_is_refused() {
    for word in [WORD_MAGIC, WORD_RECORDS, WORD_SLOT_WORDS] {
        let words = memory(SMALL);
        Writer::format(&words, SMALL).unwrap();
        assert!(Reader::open(words[..].into(), SMALL).is_ok());
        words[word].fetch_xor(1 << 7, Relaxed);
        assert_eq!(
            Reader::open(words[..].into(), SMALL).err(),
            Some(RingError::BadHeader)
        );
    }
    let words = memory(SMALL);
    let short = &words[1..];
    assert!(Writer::format(short, SMALL).is_none());
    assert_eq!(
        Reader::open(short.into(), SMALL).err(),
        Some(RingError::TooSmall)
    );
}

#[test]
fn a_head_that_moves_back_is_refused_and_the_reader_stays() {
    let words = memory(SMALL);
    let writer = Writer::format(&words, SMALL).unwrap();
    (0..3).for_each(|n| write(&writer, n, 1));
    let mut reader = Reader::open(words[..].into(), SMALL).unwrap();
    words[Geometry::HEAD].store(2, Relaxed);
    let expected = RingError::HeadMovedBack {
        head: 2,
        position: 3,
    };
    assert_eq!(reader.drain().err(), Some(expected));
    words[Geometry::HEAD].store(3, Relaxed);
    assert!(reader.drain().unwrap().next().is_none());
}

#[test]
fn a_reader_beside_a_running_writer_gets_whole_records_and_counts_the_rest() {
    const RECORDS: u64 = 200_000;
    let words = memory(SMALL);
    let writer = Writer::format(&words, SMALL).unwrap();
    let mut reader = Reader::open(words[..].into(), SMALL).unwrap();
    std::thread::scope(|scope| {
        let thread =
            scope.spawn(|| (1..=RECORDS).for_each(|n| write(&writer, n, 1 + (n % 49) as usize)));
        loop {
            let last = thread.is_finished();
            for sample in reader.drain().unwrap() {
                let sample = sample.unwrap();
                assert_whole(&sample, sample.sequence());
            }
            if last {
                break;
            }
        }
    });
    let Counts {
        read,
        lost,
        damaged,
    } = reader.counts();
    assert_eq!((read + lost, damaged), (RECORDS, 0));
    assert!(read >= SMALL.records() as u64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Against the obvious model: a reader gets the newest records that fit, in order, and loses exactly the others.
    #[test]
    fn every_record_is_read_or_counted(rounds in prop::collection::vec((0u64..30, 0usize..12, any::<bool>()), 1..20)) {
        let words = memory(SMALL);
        let writer = Writer::format(&words, SMALL).unwrap();
        let mut reader = Reader::open(words[..].into(), SMALL).unwrap();
        let (mut written, mut position, mut counts) = (0, 0, Counts::default());
        for (records, wanted, skip) in rounds {
            for _ in 0..records {
                written += 1;
                write(&writer, written, 1 + written as usize % 49);
            }
            let overwritten = (written - position).saturating_sub(8);
            position += overwritten;
            counts.lost += overwritten;
            for sample in reader.drain().unwrap().take(wanted) {
                position += 1;
                counts.read += 1;
                assert_whole(&sample.unwrap(), position);
            }
            prop_assert_eq!(reader.counts(), counts);
            prop_assert_eq!(reader.position(), position);
            if skip {
                reader.skip();
                (position, counts) = (written, Counts::default());
            }
        }
    }

    /// Memory that no writer made: no panic, a bounded drain, and still every record behind the position is in one count.
    #[test]
    fn hostile_memory_is_an_error_and_never_more(
        holes in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![any::<u64>(), 0u64..40]), 0..60),
        head in prop_oneof![0u64..40, any::<u64>()],
    ) {
        let words = memory(SMALL);
        let writer = Writer::format(&words, SMALL).unwrap();
        let mut reader = Reader::open(words[..].into(), SMALL).unwrap();
        (1..=12).for_each(|n| write(&writer, n, 5));
        for (at, value) in holes {
            words[SMALL.header_words() + at.index(words.len() - SMALL.header_words())].store(value, Relaxed);
        }
        words[Geometry::HEAD].store(head, Relaxed);
        let given: Vec<_> = reader.drain().unwrap().collect();
        prop_assert!(given.len() <= SMALL.records());
        for sample in given.iter().flatten() {
            prop_assert!(sample.parts().all(|part| !part.frames.is_empty()));
            prop_assert!(sample.stack().len() + sample.counters().len() < SLOT_WORDS);
        }
        let counts = reader.counts();
        prop_assert_eq!(counts.read + counts.lost + counts.damaged, head);
        prop_assert_eq!(counts.read + counts.damaged, given.len() as u64);
    }
}

//! Rings that do not hold together: what cannot be read is refused or counted, and told; the rest is reported.

mod support;

use std::sync::atomic::Ordering::Relaxed;

use ipc::abi::profile::{
    FIXED_WORDS, Header, KIND_SAMPLE, LAYOUT_VERSION, Marker, RING_RECORDS, SLOT_WORDS,
};
use ipc::proto::profd::Request;
use profd::profile::Profile;
use profd::report::{Options, report};
use profd::rings::Rings;
use proptest::prelude::*;
use sample_ring::{AtomicU64, Geometry, RingError};
use support::course::course;
use support::driver::{Fake, memory};
use support::record::Record;

/// Samples that are taken before the rings are spoiled.
const SAMPLES: usize = 10;

/// A profile of ten samples of CPU 0, whose ring's memory is spoiled before it is read.
fn spoiled(spoil: impl FnOnce(&[AtomicU64])) -> Profile {
    let records = vec![Record::new(12, &[0x40_1110]); SAMPLES];
    course(Request::default(), 1, &records, spoil)
}

fn text(profile: &Profile) -> String {
    let options = Options {
        chains: 8,
        verbose: false,
    };
    report(profile, options)
}

/// Where the slot of the first record begins.
fn first_slot(memory: &[AtomicU64]) -> usize {
    memory.len() - RING_RECORDS * SLOT_WORDS
}

#[test]
fn a_header_of_another_kind_is_refused() {
    let memory = memory(1);
    // It writes the headers.
    drop(Fake::new(&memory));
    let refused = |word: &AtomicU64| {
        let before = word.fetch_add(1, Relaxed);
        let opened = Rings::open((&memory[..]).into(), Geometry::KERNEL);
        word.store(before, Relaxed);
        opened.err()
    };
    let header = &memory[..first_slot(&memory)];
    let refusals: Vec<RingError> = header.iter().filter_map(refused).collect();
    assert_eq!(
        refusals,
        [RingError::BadHeader; 3],
        "the magic and two sizes"
    );
    let message = refusals[0].to_string();
    assert_eq!(message, "not a sample ring of this version and size");
}

#[test]
fn a_record_that_makes_no_sense_is_dropped_by_name() {
    let header = Header {
        version: LAYOUT_VERSION,
        kind: KIND_SAMPLE,
        tagged: 1,
        ..Header::default()
    };
    let marker = Marker {
        pid: 1,
        tid: 1,
        image: 0,
    };
    let frame = FIXED_WORDS;
    let spoils = [
        ("another number", 0, 7),
        (
            "another version",
            1,
            Header {
                version: 9,
                ..header
            }
            .pack(),
        ),
        ("another kind", 1, Header { kind: 9, ..header }.pack()),
        (
            "too many words",
            1,
            Header {
                tagged: 255,
                ..header
            }
            .pack(),
        ),
        (
            "no frame",
            1,
            Header {
                tagged: 0,
                ..header
            }
            .pack(),
        ),
        ("a marker alone", frame, marker.pack()[0]),
    ];
    for (what, word, value) in spoils {
        let profile = spoiled(|memory| {
            memory[first_slot(memory) + word].store(value, Relaxed);
        });
        let counts = profile.counts;
        let fates = (counts.taken, counts.reported, counts.corrupt);
        assert_eq!(fates, (10, 9, 1), "{what}");
        let text = text(&profile);
        for line in [
            "9 samples on 1 cpus, 1 dropped, source tick\n",
            "odd: corrupt 1\n",
            "taken 10: 9 reported, 0 of other tasks, 0 outside the window, 1 dropped\n",
        ] {
            assert!(text.contains(line), "{what}: {text}");
        }
    }
}

#[test]
fn a_head_that_cannot_be_is_told() {
    let head = |value: u64| {
        spoiled(move |memory| {
            let head = memory[..first_slot(memory)]
                .iter()
                .find(|word| word.load(Relaxed) == SAMPLES as u64);
            head.expect("the head").store(value, Relaxed);
        })
    };
    let back = head(0);
    assert_eq!((back.counts.reported, back.counts.unaccounted()), (0, 10));
    assert!(text(&back).contains("odd: unaccounted 10\n"));
    for ahead in [5000, u64::MAX] {
        let profile = head(ahead);
        assert_ne!(profile.counts.unaccounted(), 0);
        assert!(text(&profile).contains("unaccounted"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_is_in_the_rings_is_survived(words in prop::collection::vec((0usize..16 * SLOT_WORDS, any::<u64>(), any::<bool>()), 1..60)) {
        let profile = spoiled(|memory| {
            for &(at, value, header) in &words {
                let at = if header { at % 16 } else { first_slot(memory) + at };
                memory[at].store(value, Relaxed);
            }
        });
        prop_assert!(text(&profile).starts_with("profiled 100 ms\n"));
    }
}

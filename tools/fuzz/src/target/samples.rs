//! The ring of samples, as profd reads it while somebody writes anything to it: what is read, lost and damaged adds up.

use std::sync::atomic::{AtomicU64, Ordering};

use arbitrary::{Arbitrary, Unstructured};
use sample_ring::{Geometry, Reader, Sample, Writer};

use super::acts;

const RECORDS: usize = 8;

#[derive(Arbitrary, Debug)]
enum Act {
    /// A record as the kernel writes it, of any words.
    Write(Vec<u64>),
    /// Any word anywhere.
    Store(u16, u64),
    /// The head, a little further or anywhere.
    Head(Result<u8, u64>),
    Read,
    Skip,
}

/// What happens to the ring.
pub fn run(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let Some(geometry) = Geometry::new(16, RECORDS) else {
        unreachable!("eight is a power of two")
    };
    let words: Vec<_> = (0..geometry.words()).map(|_| AtomicU64::new(0)).collect();
    let Some(writer) = Writer::format(&words, geometry) else {
        unreachable!("there are as many words as it has")
    };
    let Ok(mut reader) = Reader::open(words.as_slice().into(), geometry) else {
        unreachable!("it was just formatted")
    };
    let mut start = reader.position();
    for act in acts(&mut input) {
        match act {
            Act::Write(record) => {
                let mut slot = writer.begin();
                let mut record = record.into_iter();
                let header = record.next().unwrap_or(0);
                // What has no room is left out.
                let _ = record.all(|word| slot.push(word));
                slot.publish(header);
            }
            Act::Store(at, value) => {
                if let Some(word) = words.get(usize::from(at)) {
                    word.store(value, Ordering::Relaxed);
                }
            }
            Act::Head(head) => {
                let word = &words[Geometry::HEAD];
                let value = match head {
                    Ok(more) => word.load(Ordering::Relaxed).wrapping_add(more.into()),
                    Err(value) => value,
                };
                word.store(value, Ordering::Relaxed);
            }
            Act::Read => read(&mut reader, start),
            Act::Skip => {
                reader.skip();
                start = reader.position();
            }
        }
    }
    read(&mut reader, start);
}

fn read(reader: &mut Reader<'_>, start: u64) {
    let Ok(records) = reader.drain() else { return };
    // An error ends it: the writer went back.
    let samples: Vec<Sample> = records.map_while(Result::ok).collect();
    assert!(samples.len() <= RECORDS);
    for sample in &samples {
        let _ = (sample.stack().len(), sample.counters().len());
        for part in sample.parts() {
            let _ = format!("{part:?}");
        }
    }
    let counts = reader.counts();
    let all = counts.read + counts.lost + counts.damaged;
    assert_eq!(all, reader.position() - start, "{counts:?}");
}

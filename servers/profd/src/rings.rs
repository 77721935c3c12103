//! Every CPU's ring, read as one.

use alloc::vec::Vec;

use sample_ring::{Geometry, Reader, RingError, Sample, Words};

use crate::driver::Losses;

/// The rings, each from where its reader stands.
#[derive(Debug, Default)]
pub struct Rings<'a>(Vec<Reader<'a>>);

impl<'a> Rings<'a> {
    /// Opens the rings that lie one after the other in these words. What follows the last whole one is ignored.
    ///
    /// # Errors
    /// One of them is not a ring of this version and size.
    pub fn open(words: Words<'a>, geometry: Geometry) -> Result<Self, RingError> {
        let rings = words.chunks(geometry.words());
        rings
            .map(|ring| Reader::open(ring, geometry))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Passes over everything written so far, and forgets the losses.
    pub fn skip(&mut self) {
        self.0.iter_mut().for_each(Reader::skip);
    }

    /// Hands every new record to `sink`.
    pub fn drain(&mut self, sink: &mut dyn FnMut(&Sample)) {
        for ring in &mut self.0 {
            // The kernel's heads do not move back; one that did has no new records.
            let Ok(records) = ring.drain() else { continue };
            // Those that cannot be read are in the reader's counts.
            records.flatten().for_each(|sample| sink(&sample));
        }
    }

    /// Records that could not be handed out since the last skip.
    #[must_use]
    pub fn losses(&self) -> Losses {
        self.0
            .iter()
            .map(Reader::counts)
            .fold(Losses::default(), |sum, counts| Losses {
                overwritten: sum.overwritten.saturating_add(counts.lost),
                corrupt: sum.corrupt.saturating_add(counts.damaged),
            })
    }
}

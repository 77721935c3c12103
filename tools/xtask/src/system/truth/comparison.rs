//! What a report says of a share that is known.

use std::ops::RangeInclusive;

use anyhow::ensure;

use crate::test::Verdict;

use super::bound;
use super::source::Source;
use super::subject::Share;

/// A share, as it is and as a report has it.
pub struct Comparison<'a> {
    /// Of the subject, for the table.
    pub part: &'a str,
    /// The share is between these.
    pub truth: RangeInclusive<f64>,
    /// Samples of which it is.
    pub samples: u64,
    /// Those that are in it.
    pub count: u64,
}

impl<'a> Comparison<'a> {
    /// Of a share with so many of the samples.
    pub fn new(share: &'a Share, samples: u64, count: u64) -> Self {
        Self {
            part: &share.name,
            truth: share.truth.clone(),
            samples,
            count,
        }
    }

    /// The counts that are believed of the truth.
    pub fn believed(&self) -> RangeInclusive<u64> {
        bound::believed(self.samples, &self.truth)
    }

    /// Whether the count is believed of the truth, and not of a share that is wrong: a planted error.
    ///
    /// # Errors
    /// Which of them it fails.
    pub fn judge(&self, source: &Source) -> Verdict {
        let &Self {
            part,
            samples,
            count,
            ..
        } = self;
        let believed = self.believed();
        ensure!(
            believed.contains(&count),
            "{part} has {count} of {samples} samples by {}; {believed:?} would be true",
            source.name
        );
        let wrong = bound::planted(*self.truth.start(), source.points);
        ensure!(
            !bound::believed(samples, &(wrong..=wrong)).contains(&count),
            "{part} passes as {wrong} by {}, too",
            source.name
        );
        Ok(())
    }
}

//! What many rounds of the same took.

use alloc::vec::Vec;

use sysroot::println;

use super::failure::Failure;
use crate::figure::Figure;

/// Rounds that come before those that are measured: until all memory that a round uses has been used once.
pub const WARM_UP: usize = 20;

/// Instructions of each round.
pub struct Rounds(Vec<u64>);

impl Rounds {
    /// Of rounds that were measured.
    pub fn new(rounds: impl IntoIterator<Item = u64>) -> Self {
        Self(rounds.into_iter().collect())
    }

    /// Measures so many rounds, after [`WARM_UP`].
    pub fn collect(
        count: usize,
        mut round: impl FnMut() -> Result<u64, Failure>,
    ) -> Result<Self, Failure> {
        for _ in 0..WARM_UP {
            round()?;
        }
        // Room for all, so that no round pays for it.
        let mut rounds = Vec::with_capacity(count);
        for _ in 0..count {
            rounds.push(round()?);
        }
        Ok(Self(rounds))
    }

    /// Prints the line of a figure.
    pub fn print(mut self, figure: Figure) {
        self.0.sort_unstable();
        let (Some(least), Some(most)) = (self.0.first(), self.0.last()) else {
            return;
        };
        let median = self.0[self.0.len() / 2];
        println!("{} {least} {median} {most} {}", figure.name(), self.0.len());
    }
}

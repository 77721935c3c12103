//! Programs of which is known where their time goes, and what a report must say of them.

mod calls;
mod loops;
mod time;

use std::ops::RangeInclusive;

use super::super::report::{Account, Chain};
use super::chain::clients;

pub use calls::{Served, served, subjects as in_calls};
pub use loops::{short_lived, subjects as in_loops};
pub use time::{MEASURE, asleep, in_step, mix};

type Test = Box<dyn Fn(&Chain) -> bool>;

/// What runs, and what is known of it.
pub struct Subject {
    /// For the table.
    pub name: &'static str,
    /// What is started, servers before their clients.
    pub programs: Vec<String>,
    /// The one of them to whose samples the report is confined; else it is of all.
    pub only: Option<usize>,
    /// The samples of which the shares are.
    pub among: Test,
    /// The shares.
    pub shares: Vec<Share>,
    /// On whose account they are, if the report is to tell.
    pub bill: Option<Bill>,
    /// No chain may be so.
    pub wrong: Test,
    /// On two CPUs that take turns it is measured on the second one: it spends time where it cannot pause.
    pub cannot_pause: bool,
}

/// A part of the samples.
pub struct Share {
    /// For the table.
    pub name: String,
    /// Between these.
    pub truth: RangeInclusive<f64>,
    /// Whether a sample with this chain belongs to it.
    pub has: Test,
}

/// What the accounts of programs must come to.
pub struct Bill {
    /// The program that pays for a sample in the loops, as index in those of the subject.
    pub payer: fn(&Chain) -> usize,
    /// Of these together are the shares.
    pub whole: Vec<Item>,
    /// The shares.
    pub shares: Vec<(Item, f64)>,
}

/// A part of the account of a program.
#[derive(Clone, Copy)]
pub struct Item {
    /// The program, as index in those of the subject.
    pub program: usize,
    /// For the table.
    pub name: &'static str,
    /// The part.
    pub of: fn(&Account) -> u64,
}

impl Share {
    fn new(name: impl Into<String>, truth: f64, has: impl Fn(&Chain) -> bool + 'static) -> Self {
        Self::between(name, truth..=truth, has)
    }

    fn between(
        name: impl Into<String>,
        truth: RangeInclusive<f64>,
        has: impl Fn(&Chain) -> bool + 'static,
    ) -> Self {
        let (name, has) = (name.into(), Box::new(has));
        Self { name, truth, has }
    }
}

impl Subject {
    /// Every sample counts, and there are no clients.
    fn new(name: &'static str, programs: Vec<String>, shares: Vec<Share>) -> Self {
        Self {
            name,
            programs,
            only: None,
            among: Box::new(|_| true),
            shares,
            bill: None,
            wrong: Box::new(|chain| !clients(chain).is_empty() && chain.image.starts_with("truth")),
            cannot_pause: false,
        }
    }

    fn among(self, among: impl Fn(&Chain) -> bool + 'static) -> Self {
        Self {
            among: Box::new(among),
            ..self
        }
    }

    fn never(self, wrong: impl Fn(&Chain) -> bool + 'static) -> Self {
        Self {
            wrong: Box::new(wrong),
            ..self
        }
    }

    /// Comparisons of what a report of it says.
    #[cfg(test)]
    pub fn comparisons(&self) -> usize {
        self.shares.len() + self.bill.as_ref().map_or(0, |bill| bill.shares.len())
    }
}

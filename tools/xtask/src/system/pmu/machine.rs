//! A machine with counters, and the shim's record of their interrupts.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use pmu_model::CPUS_MAX;
use pmu_model::record::Mark;

use crate::cli::{BootOptions, Shim};
use crate::test::{Context, Verdict};

use crate::system::session::Session;

/// How time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// As for the host.
    Real,
    /// An instruction takes a nanosecond, and so a cycle.
    Counted,
}

/// What gives a machine these counters, in the shim's words. `whose` tells its record from those of others.
///
/// # Errors
/// If the shim does not build.
pub fn shim(context: &Context<'_>, counters: &str, whose: &str) -> Result<Shim> {
    let name = format!("pmu-{}-{whose}.record", counters.replace(':', "-"));
    Ok(Shim {
        path: context.shim()?.to_owned(),
        counters: counters.to_owned(),
        record: context.workspace.target.join(name),
    })
}

/// A machine at its prompt.
pub struct Machine {
    /// The prompt.
    pub session: Session,
    record: PathBuf,
}

impl Machine {
    /// Boots one with these counters, in the shim's words.
    ///
    /// # Errors
    /// If it does not get to its prompt.
    pub fn boot(context: &Context<'_>, counters: &str, smp: u32, time: Time) -> Result<Self> {
        let shim = shim(context, counters, &format!("on-{smp}"))?;
        let record = shim.record.clone();
        let options = BootOptions {
            smp,
            icount: time == Time::Counted,
            shim: Some(shim),
            ..BootOptions::default()
        };
        let session = Session::boot(context, options)?;
        Ok(Self { session, record })
    }

    /// What happened so far to interrupts of the counters.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn tally(&self) -> Result<Tally> {
        let record = fs::read(&self.record).with_context(|| self.record.display().to_string())?;
        Ok(Tally::of(&record))
    }

    /// Powers off, and removes the record.
    ///
    /// # Errors
    /// If it does not end as it should.
    pub fn power_off(self) -> Verdict {
        self.session.power_off()?;
        Ok(fs::remove_file(&self.record)?)
    }
}

/// How many of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// NMIs of a counter, of each CPU.
    pub counters: [u64; CPUS_MAX],
    /// NMIs of a counter that were dropped.
    pub dropped: u64,
    /// NMIs of a counter that came for the second time.
    pub late: u64,
    /// NMIs that CPUs sent.
    pub sent: u64,
}

impl Tally {
    /// Counts a record.
    fn of(record: &[u8]) -> Self {
        let mut tally = Self::default();
        for (mark, cpu) in record.iter().filter_map(|&byte| Mark::read(byte)) {
            match mark {
                Mark::Counter => tally.counters[cpu] += 1,
                Mark::Dropped => tally.dropped += 1,
                Mark::Late => tally.late += 1,
                Mark::Sent => tally.sent += 1,
            }
        }
        tally
    }

    /// What has been added since an earlier one.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        let mut counters = self.counters;
        for (now, then) in counters.iter_mut().zip(before.counters) {
            *now -= then;
        }
        Self {
            counters,
            dropped: self.dropped - before.dropped,
            late: self.late - before.late,
            sent: self.sent - before.sent,
        }
    }

    /// NMIs of the counters of all CPUs.
    #[must_use]
    pub fn counter(&self) -> u64 {
        self.counters.iter().sum()
    }

    /// NMIs that the guest got.
    #[must_use]
    pub fn nmis(&self) -> u64 {
        self.counter() + self.late + self.sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_counted_by_kind() {
        let before = [
            Mark::Counter.on(0),
            Mark::Counter.on(1),
            Mark::Counter.on(0),
        ];
        let after = [
            Mark::Counter.on(1),
            Mark::Dropped.on(0),
            Mark::Sent.on(0),
            Mark::Late.on(0),
            Mark::Counter.on(3),
            Mark::Counter.on(0),
            Mark::Sent.on(3),
        ];
        let tally = Tally::of(&[&before[..], &after].concat()).since(Tally::of(&before));
        let mut counters = [0; CPUS_MAX];
        (counters[0], counters[1], counters[3]) = (1, 1, 1);
        let expected = Tally {
            counters,
            dropped: 1,
            late: 1,
            sent: 2,
        };
        assert_eq!(tally, expected);
        assert_eq!((tally.counter(), tally.nmis()), (3, 6));
    }
}

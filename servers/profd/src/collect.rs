//! Takes samples from the rings into the table, and accounts for every one.

use ipc::abi::profile::SampleCounters;
use ipc::proto::profd::Request;

use crate::atlas::Atlas;
use crate::chain::chain;
use crate::driver::Driver;
use crate::fold::{CHAINS, Table};
use crate::profile::Counts;
use crate::reader::Reader;
use crate::record::Sample;
use crate::resolve::{Resolved, resolve};

/// What was collected so far.
#[derive(Debug)]
pub struct Collector {
    reader: Reader,
    sorter: Sorter,
}

/// Decides what becomes of a sample.
#[derive(Debug)]
struct Sorter {
    pid: Option<u32>,
    depth: u8,
    table: Table,
    reported: u64,
    other_tasks: u64,
    outside: u64,
    /// Bit per CPU that contributed.
    cpus: [u64; 4],
}

impl Collector {
    /// Sees what the driver writes from now on.
    #[must_use]
    pub fn new(request: &Request, driver: &impl Driver) -> Self {
        let sorter = Sorter {
            pid: request.pid,
            depth: request.depth,
            table: Table::new(CHAINS),
            reported: 0,
            other_tasks: 0,
            outside: 0,
            cpus: [0; 4],
        };
        Self { reader: Reader::new(driver), sorter }
    }

    /// Takes what there is. The window is in TSC ticks, both ends included.
    pub fn drain(
        &mut self,
        driver: &impl Driver,
        atlas: Atlas<'_, '_>,
        opened: u64,
        closes: u64,
    ) {
        let sorter = &mut self.sorter;
        self.reader.drain(driver, |sample| sorter.sort(sample, atlas, opened, closes));
    }

    /// Takes the last, once the driver has stopped.
    pub fn finish(
        &mut self,
        driver: &impl Driver,
        atlas: Atlas<'_, '_>,
        opened: u64,
        closes: u64,
    ) {
        self.drain(driver, atlas, opened, closes);
        self.reader.finish(driver);
    }

    /// CPUs that contributed a reported sample.
    #[must_use]
    pub fn cpus(&self) -> u32 {
        self.sorter.cpus.iter().map(|bits| bits.count_ones()).sum()
    }

    /// The chains with their names.
    #[must_use]
    pub fn resolve(&self, atlas: Atlas<'_, '_>) -> Resolved {
        resolve(&self.sorter.table, atlas)
    }

    /// What became of every sample, given the driver's counters before and after.
    #[must_use]
    pub fn counts(&self, before: &SampleCounters, after: &SampleCounters) -> Counts {
        let Self { reader, sorter } = self;
        let since = |field: fn(&SampleCounters) -> u64| field(after).saturating_sub(field(before));
        Counts {
            taken: since(|counters| counters.taken),
            reported: sorter.reported,
            other_tasks: sorter.other_tasks,
            outside: sorter.outside,
            overwritten: reader.overwritten,
            corrupt: reader.corrupt,
            beyond_table: sorter.table.beyond,
            table: sorter.table.capacity() as u64,
            truncated: since(|counters| counters.truncated),
            cut: since(|counters| counters.cut),
            unmapped: since(|counters| counters.unmapped),
            changed: since(|counters| counters.changed),
            late: since(|counters| counters.late),
            throttled: since(|counters| counters.throttled),
            cost: since(|counters| counters.cost),
        }
    }
}

impl Sorter {
    fn sort(&mut self, sample: &Sample<'_>, atlas: Atlas<'_, '_>, opened: u64, closes: u64) {
        if !(opened..=closes).contains(&sample.tsc) {
            self.outside += 1;
        } else if self.pid.is_some_and(|pid| pid != sample.pid) {
            self.other_tasks += 1;
        } else {
            self.reported += 1;
            self.cpus[usize::from(sample.cpu) / 64] |= 1 << (sample.cpu % 64);
            self.table.add(chain(sample, self.depth, atlas));
        }
    }
}

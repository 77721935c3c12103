//! Takes samples from the rings into the table, and accounts for every one.

use ipc::abi::profile::SampleCounters;
use ipc::proto::profd::Request;
use sample_ring::Sample;

use crate::atlas::Atlas;
use crate::chain::chain;
use crate::driver::{Driver, Losses};
use crate::fold::{CHAINS, Table};
use crate::profile::Counts;
use crate::resolve::{Resolved, resolve};

/// What was collected so far.
#[derive(Debug)]
pub struct Collector {
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
    pub fn new(request: &Request, driver: &mut impl Driver) -> Self {
        driver.skip();
        Self {
            pid: request.pid,
            depth: request.depth,
            table: Table::new(CHAINS),
            reported: 0,
            other_tasks: 0,
            outside: 0,
            cpus: [0; 4],
        }
    }

    /// Takes what there is. The window is in TSC ticks, both ends included.
    pub fn drain(
        &mut self,
        driver: &mut impl Driver,
        atlas: Atlas<'_, '_>,
        opened: u64,
        closes: u64,
    ) {
        driver.drain(&mut |sample| self.sort(sample, atlas, opened, closes));
    }

    /// CPUs that contributed a reported sample.
    #[must_use]
    pub fn cpus(&self) -> u32 {
        self.cpus.iter().map(|bits| bits.count_ones()).sum()
    }

    /// The chains with their names.
    #[must_use]
    pub fn resolve(&self, atlas: Atlas<'_, '_>) -> Resolved {
        resolve(&self.table, atlas)
    }

    /// What became of every sample, given the driver's counters before and after.
    #[must_use]
    pub fn counts(
        &self,
        losses: Losses,
        before: &SampleCounters,
        after: &SampleCounters,
    ) -> Counts {
        let since = |field: fn(&SampleCounters) -> u64| field(after).saturating_sub(field(before));
        Counts {
            taken: since(|counters| counters.taken),
            reported: self.reported,
            other_tasks: self.other_tasks,
            outside: self.outside,
            overwritten: losses.overwritten,
            corrupt: losses.corrupt,
            beyond_table: self.table.beyond,
            table: self.table.capacity() as u64,
            missed: since(|counters| counters.missed),
            truncated: since(|counters| counters.truncated),
            cut: since(|counters| counters.cut),
            unmapped: since(|counters| counters.unmapped),
            changed: since(|counters| counters.changed),
            late: since(|counters| counters.late),
            throttled: since(|counters| counters.throttled),
            cost: since(|counters| counters.cost),
        }
    }

    fn sort(&mut self, sample: &Sample, atlas: Atlas<'_, '_>, opened: u64, closes: u64) {
        let pid = sample.parts().next().map_or(0, |own| own.owner.pid);
        let cpu = sample.header().cpu;
        if !(opened..=closes).contains(&sample.tsc()) {
            self.outside += 1;
        } else if self.pid.is_some_and(|asked| asked != pid) {
            self.other_tasks += 1;
        } else {
            self.reported += 1;
            self.cpus[usize::from(cpu) / 64] |= 1 << (cpu % 64);
            self.table.add(chain(sample, self.depth, atlas));
        }
    }
}

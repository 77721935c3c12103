//! Takes samples from the rings into the table, and accounts for every one.

use ipc::abi::profile::SampleCounters;
use ipc::proto::profd::Request;
use sample_ring::Sample;

use crate::account::{Ledger, Payer, takes_part};
use crate::atlas::Atlas;
use crate::chain::chain;
use crate::clock::Clock;
use crate::cpus::ByCpu;
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
    /// If samples are told by who pays.
    ledger: Option<Ledger>,
    reported: u64,
    other_tasks: u64,
    outside: u64,
    /// Bit per CPU that contributed.
    cpus: [u64; 4],
    came: ByCpu,
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
            ledger: request.by_client.then(Ledger::default),
            reported: 0,
            other_tasks: 0,
            outside: 0,
            cpus: [0; 4],
            came: ByCpu::default(),
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

    /// Samples of the window, of each of so many CPUs.
    #[must_use]
    pub fn came(&self, cpus: u64) -> ByCpu {
        self.came.of_all(cpus)
    }

    /// The chains with their names.
    #[must_use]
    pub fn resolve(&self, atlas: Atlas<'_, '_>) -> Resolved {
        resolve(&self.table, self.ledger.as_ref(), atlas)
    }

    /// What became of every sample, given the driver's counters before and after.
    #[must_use]
    pub fn counts(
        &self,
        clock: Clock,
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
            cost_ns: clock.duration(since(|counters| counters.cost)),
            asked: since(|counters| counters.asked),
            delay_ns: since(|counters| counters.delay),
            // The driver begins this one anew with each run.
            delay_max_ns: after.delay_max,
        }
    }

    fn sort(&mut self, sample: &Sample, atlas: Atlas<'_, '_>, opened: u64, closes: u64) {
        if !(opened..=closes).contains(&sample.tsc()) {
            self.outside += 1;
            return;
        }
        let cpu = sample.header().cpu;
        self.came.note(cpu);
        if self.pid.is_some_and(|asked| !self.is_of(sample, asked)) {
            self.other_tasks += 1;
        } else {
            self.reported += 1;
            self.cpus[usize::from(cpu) / 64] |= 1 << (cpu % 64);
            self.fold(sample, atlas);
        }
    }

    /// Whether a sample belongs to the report of this process alone.
    fn is_of(&self, sample: &Sample, pid: u32) -> bool {
        if self.ledger.is_some() {
            takes_part(sample, pid)
        } else {
            Payer::runner(sample) == Payer::Process(pid)
        }
    }

    fn fold(&mut self, sample: &Sample, atlas: Atlas<'_, '_>) {
        let mut chain = chain(sample, self.depth, atlas);
        if let Some(ledger) = &mut self.ledger {
            chain.key.payer = ledger.enter(sample);
            if chain.key.payer.is_none() {
                self.table.beyond += 1;
                return;
            }
        }
        self.table.add(chain);
    }
}

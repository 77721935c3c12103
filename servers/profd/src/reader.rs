//! Drains the rings by sequence: every record is seen once, and those that are gone are counted exactly.

use alloc::vec::Vec;

use ipc::abi::profile::{RING_RECORDS, SLOT_WORDS};

use crate::driver::{Driver, Slot};
use crate::record::Sample;

/// Where the reader is in each CPU's ring, and what it missed there.
#[derive(Clone, Debug)]
pub struct Reader {
    next: Vec<u64>,
    /// Records that later ones replaced before they were read.
    pub overwritten: u64,
    /// Records that do not hold together, or carry another number or CPU than the slot they were in.
    pub corrupt: u64,
}

impl Reader {
    /// A reader that sees what is written from now on.
    #[must_use]
    pub fn new(driver: &impl Driver) -> Self {
        let next = |cpu| driver.head(cpu).saturating_add(1);
        Self { next: (0..driver.cpus()).map(next).collect(), overwritten: 0, corrupt: 0 }
    }

    /// Hands every new record to `sink`: at most one ring's worth for each CPU, so it ends however fast records come.
    pub fn drain(&mut self, driver: &impl Driver, mut sink: impl FnMut(&Sample<'_>)) {
        for cpu in 0..self.next.len() {
            self.drain_cpu(driver, cpu, &mut sink);
        }
    }

    /// Counts what was announced and never became readable, once no more can come.
    pub fn finish(&mut self, driver: &impl Driver) {
        for (cpu, next) in self.next.iter_mut().enumerate() {
            let after = driver.head(cpu).saturating_add(1);
            self.corrupt = self.corrupt.saturating_add(after.saturating_sub(*next));
            *next = after.max(*next);
        }
    }

    fn drain_cpu(
        &mut self,
        driver: &impl Driver,
        cpu: usize,
        sink: &mut impl FnMut(&Sample<'_>),
    ) {
        let head = driver.head(cpu);
        let oldest = head.saturating_sub(RING_RECORDS as u64 - 1);
        let next = &mut self.next[cpu];
        if oldest > *next {
            self.overwritten = self.overwritten.saturating_add(oldest - *next);
            *next = oldest;
        }
        let mut slot = [0; SLOT_WORDS];
        while *next <= head {
            match driver.read(cpu, *next, &mut slot) {
                Slot::Pending => break,
                Slot::Overwritten => self.overwritten = self.overwritten.saturating_add(1),
                Slot::Whole => match Sample::decode(&slot) {
                    Ok(sample) if sample.sequence == *next && usize::from(sample.cpu) == cpu => {
                        sink(&sample);
                    }
                    _ => self.corrupt = self.corrupt.saturating_add(1),
                },
            }
            *next += 1;
        }
    }
}

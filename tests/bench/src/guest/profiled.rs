//! A profile that is on while something is measured, and the samples of it as they are in the ring.

use alloc::vec::Vec;

use ipc::abi::profile::{DOMAINS_ALL, EVENT_CYCLES, EventSpec, Phase, SourceRequest};
use ipc::abi::startup::names;
use ipc::abi::{Handle, Syscall};
use sample_ring::{Geometry, Reader, Sample};
use sysroot::{Mapping, record, syscall, time};

use super::failure::{Effect, Failure, ensure, given, kernel};

/// How long the driver may take to disarm, in nanoseconds: far more than a tick.
const DISARMED: u64 = 100 * time::MILLISECOND;

/// The profiling driver.
pub struct Profiler {
    handle: Handle,
    rings: Mapping,
}

impl Profiler {
    /// That which the program was given.
    pub fn open() -> Result<Self, Failure> {
        let handle = given(names::PROFILER)?;
        let (memory, _) =
            syscall::profiler_rings(handle).map_err(kernel(Syscall::profiler_rings))?;
        let rings = Mapping::whole(memory).map_err(kernel(Syscall::map))?;
        Ok(Self { handle, rings })
    }

    /// What `body` returns, and the samples that were taken from this source meanwhile, at its own rate.
    pub fn during<T>(
        &self,
        source: SourceRequest,
        body: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<(T, Vec<Sample>), Failure> {
        self.during_at(source, 0, body)
    }

    /// The same with so many samples a second; 0 is the source's own rate.
    pub fn during_at<T>(
        &self,
        source: SourceRequest,
        frequency: u64,
        body: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<(T, Vec<Sample>), Failure> {
        let mut reader = Reader::open(self.rings.words(), Geometry::KERNEL)
            .map_err(|_| Failure::NotDone(Effect::RingsOpen))?;
        let cycles = EventSpec {
            event: EVENT_CYCLES,
            raw: 0,
            frequency,
            domains: DOMAINS_ALL,
        };
        // The driver may be about to begin, as after a run.
        self.idle()?;
        record::profiler_start(self.handle, source, &[cycles])
            .map_err(kernel(Syscall::profiler_start))?;
        let done = body()?;
        syscall::profiler_stop(self.handle).map_err(kernel(Syscall::profiler_stop))?;
        self.idle()?;
        let records = reader
            .drain()
            .map_err(|_| Failure::NotDone(Effect::RingRead))?;
        Ok((done, records.flatten().collect()))
    }

    /// Waits until no CPU has anything left of a run to do.
    fn idle(&self) -> Result<(), Failure> {
        let deadline = time::after(DISARMED);
        let status =
            || record::profiler_status(self.handle).map_err(kernel(Syscall::profiler_status));
        while status()?.phase != Phase::Idle as u64 {
            ensure(time::now() < deadline, Effect::Disarmed)?;
        }
        Ok(())
    }
}

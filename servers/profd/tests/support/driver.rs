//! A driver over real rings, whose answers a test chooses.

use ipc::abi::Error;
use ipc::abi::monitor::MonitorInfo;
use ipc::abi::profile::{EventSpec, Phase, ProfilerStatus, Source, SourceRequest};
use profd::driver::{Driver, Losses};
use profd::rings::Rings;
use sample_ring::{AtomicU64, Geometry, Sample, Writer};

use super::record::Record;

/// Memory for the rings of some CPUs.
pub fn memory(cpus: usize) -> Vec<AtomicU64> {
    (0..cpus * Geometry::KERNEL.words())
        .map(|_| AtomicU64::new(0))
        .collect()
}

/// The driver. A test moves its phase and its counters.
pub struct Fake<'m> {
    pub rings: Rings<'m>,
    pub writers: Vec<Writer<'m>>,
    pub status: ProfilerStatus,
    /// What the next calls of each kind fail with.
    pub start_fails: Option<Error>,
    pub stop_fails: Option<Error>,
    pub status_fails: Option<Error>,
    /// What the CPUs say of their counters.
    pub monitors: Vec<MonitorInfo>,
    pub starts: u32,
    pub stops: u32,
}

impl<'m> Fake<'m> {
    pub fn new(memory: &'m [AtomicU64]) -> Self {
        let geometry = Geometry::KERNEL;
        let writers = memory.chunks_exact(geometry.words());
        let writers = writers
            .map(|words| Writer::format(words, geometry).expect("a whole ring"))
            .collect();
        Self {
            rings: Rings::open(memory.into(), geometry).expect("rings just made"),
            writers,
            status: ProfilerStatus {
                frequency: 100,
                ..ProfilerStatus::default()
            },
            start_fails: None,
            stop_fails: None,
            status_fails: None,
            monitors: Vec::new(),
            starts: 0,
            stops: 0,
        }
    }

    /// Takes a sample as the kernel does: counts it, and writes it to its CPU's ring.
    pub fn take(&mut self, record: &Record) {
        self.status.counters.taken += 1;
        record.write(&self.writers[usize::from(record.cpu)]);
    }

    pub fn open(&mut self, tsc: u64) {
        self.status.phase = Phase::Open as u64;
        self.status.opened = tsc;
        self.status.stragglers = 0;
    }

    pub fn idle(&mut self) {
        self.status.phase = Phase::Idle as u64;
        self.status.stragglers = 0;
    }
}

impl Driver for Fake<'_> {
    fn start(&mut self, source: SourceRequest, _: EventSpec) -> Result<Source, Error> {
        if let Some(error) = self.start_fails {
            return Err(error);
        }
        if !matches!(source, SourceRequest::Best | SourceRequest::Tick) {
            return Err(Error::Unsupported);
        }
        self.starts += 1;
        self.status.phase = Phase::Arming as u64;
        Ok(Source::Tick)
    }
    fn stop(&mut self) -> Result<(), Error> {
        self.stops += 1;
        if let Some(error) = self.stop_fails {
            return Err(error);
        }
        self.status.phase = Phase::Disarming as u64;
        Ok(())
    }
    fn status(&mut self) -> Result<ProfilerStatus, Error> {
        self.status_fails.map_or(Ok(self.status), Err)
    }
    fn monitor(&mut self, cpu: u64) -> Result<MonitorInfo, Error> {
        let monitors = self
            .monitors
            .get(usize::try_from(cpu).unwrap_or(usize::MAX));
        monitors.copied().ok_or(Error::NotFound)
    }
    fn skip(&mut self) {
        self.rings.skip();
    }
    fn drain(&mut self, sink: &mut dyn FnMut(&Sample)) {
        self.rings.drain(sink);
    }
    fn losses(&self) -> Losses {
        self.rings.losses()
    }
}

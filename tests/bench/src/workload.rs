//! The profile that is reported: 8 full rings of samples that no kernel took, of programs that never ran.
//!
//! It is the same on every machine, so the report that the guest makes can be compared with one made on the host. There are 8,192
//! samples, 1,024 on each of 8 CPUs; what is in them is in [`crate::samples`].

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use ipc::abi::Error;
use ipc::abi::info::InfoPage;
use ipc::abi::monitor::MonitorInfo;
use ipc::abi::profile::{EventSpec, Phase, ProfilerStatus, RING_RECORDS, Source, SourceRequest};
use ipc::proto::Text;
use ipc::proto::init::{BUILD_ID_MAX, Name};
use ipc::proto::profd::{CHAINS_MAX, Refusal, Request};
use profd::atlas::Atlas;
use profd::catalog::{Catalog, Content};
use profd::clock::Clock;
use profd::driver::{Driver, Losses};
use profd::encode::encode;
use profd::process::{Process, Processes};
use profd::report::{Options, report};
use profd::rings::Rings;
use profd::session::{Progress, Session};
use sample_ring::{AtomicU64, Geometry, Sample, Writer};

use crate::elf;
use crate::samples::{self, CLIENT, KERNEL, SERVER};

/// CPUs that took samples.
const CPUS: usize = 8;
/// Samples.
pub const SAMPLES: usize = CPUS * RING_RECORDS;
/// When the window opens, in TSC ticks, which are nanoseconds here.
const OPENED: u64 = MS;
/// Its length, in milliseconds.
const WINDOW_MS: u16 = 1000;
/// Ticks in a millisecond.
const MS: u64 = 1_000_000;

/// Images, processes and rings.
pub struct Workload {
    files: [Vec<u8>; 3],
    processes: Processes,
    memory: Vec<AtomicU64>,
}

impl Default for Workload {
    fn default() -> Self {
        let words = CPUS * Geometry::KERNEL.words();
        let mut processes = Processes::default();
        for program in [&SERVER, &CLIENT] {
            let process = Process {
                name: Name::cut(program.name),
                image: Text::cut(program.name),
                build_id: [0; BUILD_ID_MAX],
                load_bias: 0,
                ended: None,
            };
            processes.start(program.pid, process);
        }
        Self {
            files: [&KERNEL, &SERVER, &CLIENT].map(|p| elf::build(p.name, p.base, p.functions)),
            processes,
            memory: (0..words).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl Workload {
    /// The catalog of its images, of which none has been read.
    #[must_use]
    pub fn catalog(&self) -> Catalog<'_> {
        let [kernel, server, client] = &self.files;
        let mut catalog = Catalog::new(Some(Content::Bytes(kernel)));
        catalog.add(SERVER.name, Content::Bytes(server));
        catalog.add(CLIENT.name, Content::Bytes(client));
        catalog
    }

    /// A driver with full rings, of which nothing was read.
    ///
    /// # Panics
    /// If the rings do not have the size that was reserved for them, which is the size that they are made with.
    #[must_use]
    pub fn driver(&self) -> Full<'_> {
        let rings = self.memory.chunks_exact(Geometry::KERNEL.words());
        let writers: Vec<_> = rings
            .filter_map(|words| Writer::format(words, Geometry::KERNEL))
            .collect();
        let rings = Rings::open(self.memory[..].into(), Geometry::KERNEL)
            .expect("rings that were just made have their size and version");
        for number in 0..SAMPLES {
            let cpu = number % CPUS;
            samples::write(number, cpu as u8, OPENED + number as u64, &writers[cpu]);
        }
        let status = ProfilerStatus {
            frequency: 1000,
            ..ProfilerStatus::default()
        };
        Full { rings, status }
    }

    /// Takes the samples out of the rings, folds and names them, and writes the profile and its text: all that profd does from
    /// a request to its answer.
    ///
    /// # Errors
    /// profd refuses.
    pub fn report(&self, catalog: &Catalog<'_>, driver: &mut Full<'_>) -> Result<Output, Refusal> {
        let atlas = Atlas {
            catalog,
            processes: &self.processes,
        };
        let clock = Clock::new(InfoPage {
            tsc_mult: 1 << 32,
            tsc_hz: 1000 * MS,
            ..InfoPage::default()
        });
        let request = Request {
            window_ms: WINDOW_MS,
            chains: CHAINS_MAX,
            ..Request::default()
        };
        let mut session = Session::start(request, clock, atlas, driver)?;
        let mut now = OPENED;
        let profile = loop {
            match session.poll(atlas, driver, now)? {
                Progress::Wait(until) => now = now.max(until) + MS,
                Progress::Done(profile) => break profile,
            }
        };
        let options = Options {
            chains: request.chains.into(),
            verbose: false,
        };
        Ok(Output {
            profile: encode(&profile),
            text: report(&profile, options),
        })
    }
}

/// What comes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The folded profile.
    pub profile: Vec<u8>,
    /// The report.
    pub text: String,
}

/// A driver that has taken all its samples before it was asked to.
pub struct Full<'m> {
    rings: Rings<'m>,
    status: ProfilerStatus,
}

impl Driver for Full<'_> {
    fn start(&mut self, _: SourceRequest, _: EventSpec) -> Result<Source, Error> {
        self.status.phase = Phase::Open as u64;
        self.status.opened = OPENED;
        self.status.counters.taken += SAMPLES as u64;
        Ok(Source::Tick)
    }
    fn stop(&mut self) -> Result<(), Error> {
        self.status.phase = Phase::Idle as u64;
        self.status.closed = OPENED + u64::from(WINDOW_MS) * MS;
        Ok(())
    }
    fn status(&mut self) -> Result<ProfilerStatus, Error> {
        Ok(self.status)
    }
    fn monitor(&mut self, _: u64) -> Result<MonitorInfo, Error> {
        Err(Error::NotFound)
    }
    fn skip(&mut self) {
        // What is in the rings is what this profile is to bring.
    }
    fn drain(&mut self, sink: &mut dyn FnMut(&Sample)) {
        self.rings.drain(sink);
    }
    fn losses(&self) -> Losses {
        self.rings.losses()
    }
}

/// The output as it must be.
///
/// # Errors
/// profd refuses.
pub fn reference() -> Result<Box<Output>, Refusal> {
    let workload = Workload::default();
    workload
        .report(&workload.catalog(), &mut workload.driver())
        .map(Box::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::FUNCTION_BYTES;
    use crate::samples::{CHAINS, FRAMES, FUNCTIONS};
    use std::collections::BTreeSet;

    #[test]
    fn there_are_as_many_chains_and_functions_as_it_says() {
        assert_eq!((SAMPLES, CHAINS, FUNCTIONS), (8192, 1000, 5000));
        let workload = Workload::default();
        let mut chains = BTreeSet::new();
        let mut samples = 0;
        workload.driver().drain(&mut |sample| {
            samples += 1;
            let mut parts: Vec<_> = sample.parts().map(|part| part.frames.to_vec()).collect();
            assert_eq!(parts.iter().map(Vec::len).sum::<usize>(), FRAMES);
            // The leaf folds by function.
            parts[0][0] -= (parts[0][0] - SERVER.base) % FUNCTION_BYTES;
            chains.insert(parts);
        });
        assert_eq!((samples, chains.len() as u64), (SAMPLES, CHAINS));
    }

    #[test]
    fn a_second_report_is_the_same() {
        let workload = Workload::default();
        let catalog = workload.catalog();
        let cold = workload.report(&catalog, &mut workload.driver()).unwrap();
        let warm = workload.report(&catalog, &mut workload.driver()).unwrap();
        assert_eq!(cold, warm);
        assert!(
            cold.text
                .starts_with("profiled 1000 ms\n8192 samples on 8 cpus, 0 dropped")
        );
        assert!(cold.text.contains("server`module_"), "{}", cold.text);
        assert_eq!(*reference().unwrap(), cold);
    }
}

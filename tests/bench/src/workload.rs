//! The profile that is reported: 8 full rings of samples that no kernel took, of programs that never ran.
//!
//! It is the same on every machine, so the report that the guest makes can be compared with one made on the host.
//!
//! - 8,192 samples, 1,024 on each of 8 CPUs. Their 1,000 chains have 8 frames; the first 1,000 samples bring one each, in the
//!   others the chains with low numbers are frequent.
//! - 5,000 functions: 1,000 of the kernel, 2,000 of a server and 2,000 of its client, each with an unwind table.
//! - A third of the samples is in the kernel, and half of the chains go on in the client.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use ipc::abi::Error;
use ipc::abi::info::InfoPage;
use ipc::abi::profile::{
    EventSpec, Header, KIND_SAMPLE, LAYOUT_VERSION, Marker, Phase, ProfilerStatus, RING_RECORDS,
    Source, SourceRequest, flags,
};
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

use crate::elf::{self, FUNCTION_BYTES, PROLOGUE_BYTES};

/// CPUs that took samples.
const CPUS: usize = 8;
/// Samples.
pub const SAMPLES: usize = CPUS * RING_RECORDS;
/// Distinct chains.
pub const CHAINS: u64 = 1000;
/// Frames of each.
const FRAMES: usize = 8;
/// Bytes of an instruction: about what a compiler's have.
const INSTRUCTION_BYTES: u64 = 4;
/// The client's, where there are any.
const CLIENT_FRAMES: usize = 3;
/// The kernel's, in the samples that are in the kernel.
const KERNEL_FRAMES: usize = 2;

/// A program of the workload, or its kernel.
struct Program {
    name: &'static str,
    pid: u32,
    base: u64,
    functions: u32,
}

const KERNEL: Program = Program {
    name: "kernel",
    pid: 0,
    base: 0xffff_ffff_8010_0000,
    functions: 1000,
};
const SERVER: Program = Program {
    name: "server",
    pid: 10,
    base: 0x40_0000,
    functions: 2000,
};
const CLIENT: Program = Program {
    name: "client",
    pid: 11,
    base: 0x40_0000,
    functions: 2000,
};

/// Functions of all of them.
pub const FUNCTIONS: u32 = KERNEL.functions + SERVER.functions + CLIENT.functions;

/// The window, in TSC ticks, which are nanoseconds here.
const OPENED: u64 = 1_000_000;
const WINDOW_MS: u16 = 1000;
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
            write(number, &writers[number % CPUS]);
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
            tsc_hz: 1_000_000_000,
            ..InfoPage::default()
        });
        let request = Request {
            window_ms: WINDOW_MS,
            chains: CHAINS_MAX,
            ..Request::default()
        };
        let mut session = Session::start(request, clock, atlas, driver, 0)?;
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

/// A number that depends on another, all over the range.
const fn scatter(number: u64) -> u64 {
    // SplitMix64's output function (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The chain of a sample.
const fn chain_of(number: u64) -> u64 {
    if number < CHAINS {
        return number;
    }
    let (one, other) = (scatter(number) % CHAINS, scatter(number << 32) % CHAINS);
    if one < other { one } else { other }
}

/// The address of an instruction of a function, behind those that build its frame.
const fn address(program: &Program, function: u64, instruction: u64) -> u64 {
    let function = function % program.functions as u64;
    let instructions = (FUNCTION_BYTES - PROLOGUE_BYTES) / INSTRUCTION_BYTES;
    let offset = PROLOGUE_BYTES + instruction % instructions * INSTRUCTION_BYTES;
    program.base + function * FUNCTION_BYTES + offset
}

/// Frame number `frame` of a chain. The server's first names the chain: no two have the same.
const fn frame(program: &Program, chain: u64, frame: usize) -> u64 {
    let place = scatter(chain << 8 | frame as u64);
    address(program, place >> 32, place)
}

/// Takes a sample.
fn write(number: usize, ring: &Writer<'_>) {
    let chain = chain_of(number as u64);
    let in_kernel = chain.is_multiple_of(3);
    let has_client = chain.is_multiple_of(2);
    let kernel_frames = if in_kernel { KERNEL_FRAMES } else { 0 };
    let client_frames = if has_client { CLIENT_FRAMES } else { 0 };
    let mut tagged: Vec<u64> = Vec::with_capacity(FRAMES + 2);
    for position in 0..FRAMES {
        if position == FRAMES - client_frames {
            let (pid, tid, image) = (CLIENT.pid, 1, 0);
            tagged.extend(Marker { pid, tid, image }.pack());
        }
        let program = match position {
            _ if position < kernel_frames => &KERNEL,
            _ if position >= FRAMES - client_frames => &CLIENT,
            _ => &SERVER,
        };
        tagged.push(match position {
            // The leaf is always in the same function, and anywhere in it.
            0 => address(program, chain, number as u64),
            // This caller tells the chain from all others.
            KERNEL_FRAMES => address(program, chain, 0),
            position => frame(program, chain, position),
        });
    }
    let header = Header {
        version: LAYOUT_VERSION,
        kind: KIND_SAMPLE,
        cpu: (number % CPUS) as u8,
        flags: if in_kernel { flags::KERNEL } else { 0 },
        tagged: tagged.len() as u8,
        ..Header::default()
    };
    let mut slot = ring.begin();
    let tsc = OPENED + number as u64;
    for word in [tsc, SERVER.pid.into(), 1 << 32, 0, 0]
        .into_iter()
        .chain(tagged)
    {
        let fits = slot.push(word);
        debug_assert!(fits, "a slot has room for more frames than these");
    }
    slot.publish(header.pack());
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

//! NMIs in the middle of kernel entries. Whenever the kernel asks the simulated machine for anything, its CPU may get one: with locks
//! held, links half made, tables half changed, while other CPUs go on. It must neither lock nor panic nor read outside RAM; and what
//! the sample says must be true of this CPU, which did nothing else meanwhile.

use super::Sim;
use super::machine::Machine;
use crate::base::cpu::CpuId;
use crate::base::regs::Reg;
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::object::thread::{Status, ThreadId};
use crate::profile::{self, Driver, Interrupted, KernelMap, Purpose, SampleSource, Trigger};
use crate::sched::view::View;
use ipc::abi::profile::{DOMAINS_ALL, EventSpec, Marker, Source, SourceRequest, flags};
use sample_ring::{AtomicU64, Geometry, Part, Reader, Sample, Writer};
use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64 as Count, Ordering::Relaxed};

/// Of so many points, one has an NMI.
const EACH: u64 = 16;
/// Where the kernel is said to be interrupted: it has no text here.
const RIP: u64 = 0xffff_ffff_8000_0000;

thread_local! {
    /// Whose CPUs this host thread plays, while they may get NMIs.
    static NMIS: Cell<Option<&'static Nmis>> = const { Cell::new(None) };
}

/// The kernel asks the machine for something, on this CPU.
pub fn point(cpu: CpuId) {
    // None comes while one is handled.
    if let Some(nmis) = NMIS.take() {
        nmis.may_come(cpu);
        NMIS.set(Some(nmis));
    }
}

/// The NMIs of one kernel.
pub struct Nmis {
    kernel: &'static Kernel<Machine>,
    cpus: Vec<Nmi>,
}

/// A client, and its number in the call that is served.
type Link = (ThreadId, u64);

/// What each CPU has for them.
struct Nmi {
    ring: Mutex<Reader<'static>>,
    points: Count,
    sent: Count,
    samples: Count,
    clients: Count,
}

/// The rings of a kernel.
pub struct Rings(Vec<&'static [AtomicU64]>);

const RING: Geometry = match Geometry::new(16, 8) {
    Some(ring) => ring,
    None => panic!("a power of two"),
};

/// What sends NMIs, as far as the driver knows.
#[derive(Debug)]
struct Points;

impl SampleSource for Points {
    fn id(&self) -> Source {
        Source::TimerNmi
    }
    fn frequency(&self) -> u64 {
        1000
    }
    fn trigger(&self) -> Trigger {
        Trigger::Neighbour
    }
    fn arm(&self, _: CpuId, _: u64) {}
    fn disarm(&self, _: CpuId) {}
}

/// A driver of so many CPUs, and its rings.
pub fn driver(cpus: usize, map: KernelMap) -> (Driver, Rings) {
    let ring = |_| -> &'static [AtomicU64] {
        let words = (0..RING.words()).map(|_| AtomicU64::new(0));
        Box::leak(words.collect())
    };
    let rings: Vec<_> = (0..cpus).map(ring).collect();
    let state = |(id, words): (usize, &&'static [AtomicU64])| {
        let ring = Writer::format(words, RING).expect("it is large enough");
        profile::CpuState::new(CpuId(id as u8), ring)
    };
    let states: Vec<_> = rings.iter().enumerate().map(state).collect();
    let driver = Driver::new(Box::leak(states.into()), &[&Points], map).unwrap();
    driver.offer(Source::TimerNmi, Trigger::Neighbour);
    (driver, Rings(rings))
}

impl Nmis {
    pub fn new(kernel: &'static Kernel<Machine>, rings: Rings) -> &'static Self {
        let cpu = |words: &'static [AtomicU64]| Nmi {
            ring: Mutex::new(Reader::open(words.into(), RING).unwrap()),
            points: Count::new(0),
            sent: Count::new(0),
            samples: Count::new(0),
            clients: Count::new(0),
        };
        Box::leak(Box::new(Self {
            kernel,
            cpus: rings.0.into_iter().map(cpu).collect(),
        }))
    }

    fn may_come(&self, cpu: CpuId) {
        let (state, nmi) = (&self.kernel.cpus[cpu.index()], &self.cpus[cpu.index()]);
        // A generator of Knuth's, as in `apic/pace.rs`: the upper bits are the good ones.
        let points = nmi.points.load(Relaxed);
        let next = points.wrapping_mul(6_364_136_223_846_793_005);
        nmi.points
            .store(next.wrapping_add(1_442_695_040_888_963_407), Relaxed);
        if points >> 33 < (1 << 31) / EACH {
            self.come(state, nmi);
        }
    }

    fn come(&self, state: &CpuState, nmi: &Nmi) {
        let cpu = state.token.id();
        let expected = self.kernel.profiler.expected(cpu).unwrap();
        assert!(expected.announce(Purpose::Sample), "nobody else sends any");
        let at = Interrupted {
            rip: RIP,
            rsp: 0,
            rbp: 0,
            rflags: 2,
            rcx: 0,
            scratch: 0,
            entered: 0,
            user: false,
            idle: false,
        };
        nmi.sent.fetch_add(1, Relaxed);
        let before = self.links(state);
        assert!(View::new(self.kernel, state).nmi(&at), "it was asked for");
        let mut ring = nmi.ring.lock().unwrap();
        for sample in ring.drain().unwrap() {
            let clients = self.judge(state, &before, &sample.unwrap());
            nmi.samples.fetch_add(1, Relaxed);
            nmi.clients.fetch_add(clients, Relaxed);
        }
        assert_eq!(ring.counts().lost + ring.counts().damaged, 0);
    }

    /// Whom the thread of a CPU serves, whom that one serves, and so on; up to the first that is not in that call any more.
    fn links(&self, state: &CpuState) -> Vec<Link> {
        let mut links = Vec::new();
        let mut server = state.current();
        while let Some((client, sequence)) =
            server.and_then(|server| self.kernel.thread(server).served())
            && self.is_called(client, sequence)
        {
            links.push((client, sequence));
            server = Some(client);
        }
        links
    }

    /// Checks what a sample says of the CPU that it was taken on, which has not gone on since. How many clients it names.
    fn judge(&self, state: &CpuState, before: &[Link], sample: &Sample) -> u64 {
        let mut parts = sample.parts();
        let first = parts.next().expect("there is a frame");
        assert_eq!(first.frames[0], RIP);
        let Some(current) = state.current() else {
            assert_eq!((first.owner.pid, first.owner.tid), (0, 0));
            assert_eq!((first.frames.len(), parts.next()), (1, None));
            return 0;
        };
        let rip = self.kernel.thread(current).regs.get(Reg::Rip);
        // A thread whose process has no tables any more is nobody.
        if first.owner.tid != 0 {
            assert_eq!(first.owner, self.names(current));
            assert_eq!(first.frames[1], rip);
        }
        let (mut server, mut clients) = (current, 0);
        for part in parts {
            let before = before.get(clients as usize);
            clients += 1;
            match self.judge_client(server, before, part) {
                Some(client) => server = client,
                None => return clients,
            }
        }
        let is_changed = sample.header().flags & flags::CHANGED != 0;
        if let Some((client, sequence)) = self.kernel.thread(server).served()
            && sample.header().flags & flags::incomplete(2 + clients as usize) == 0
        {
            let is_called = self.is_called(client, sequence);
            assert!(is_changed || !is_called, "{client:?} is left out");
        }
        clients
    }

    /// Checks the part of the client of a server whose link cannot have changed since. That client, if its own cannot either.
    fn judge_client(
        &self,
        server: ThreadId,
        before: Option<&Link>,
        part: Part<'_>,
    ) -> Option<ThreadId> {
        let link = self.kernel.thread(server).served();
        let (client, sequence) = link.expect("a client is named, so one is served");
        // Nobody comes back into a call.
        assert_eq!(before, Some(&(client, sequence)), "it was not in the call");
        assert_eq!(
            part.owner,
            self.names(client),
            "another than the one served"
        );
        let rip = self.kernel.thread(client).regs.get(Reg::Rip);
        // What the client has is its own again, once it is woken.
        if !self.is_called(client, sequence) {
            return None;
        }
        assert_eq!(part.frames[0], rip);
        Some(client)
    }

    fn is_called(&self, client: ThreadId, sequence: u64) -> bool {
        self.kernel.thread(client).status().raw() == Status::in_call(sequence).raw()
    }

    fn names(&self, id: ThreadId) -> Marker {
        let thread = self.kernel.thread(id);
        let process = self.kernel.process_of(thread);
        Marker {
            pid: process.pid.load(Relaxed),
            tid: thread.tid(),
            image: process.image.load(Relaxed),
        }
    }
}

impl Sim {
    /// From here on the CPUs that this host thread plays get NMIs.
    pub fn send_nmis(&self) {
        NMIS.set(Some(self.nmis));
    }
    /// Ends that.
    pub fn send_no_nmis(&self) {
        NMIS.set(None);
    }

    /// Begins to sample, or ends it.
    pub fn toggle_sampling(&self, cpu: &CpuState) {
        let cycles = EventSpec {
            domains: DOMAINS_ALL,
            ..EventSpec::default()
        };
        let driver = &self.kernel.profiler;
        if driver
            .start(&cpu.token, 0, SourceRequest::Timer, &[cycles])
            .is_err()
        {
            // It may be ending already.
            let _ = driver.stop(&cpu.token, Hardware::tsc(self.machine));
        }
    }

    /// Every NMI took a sample or came when none was wanted; every sample was a record. How many clients were named.
    pub fn check_nmis(&self) -> u64 {
        let total = |count: fn(&Nmi) -> &Count| -> u64 {
            let counts = self.nmis.cpus.iter().map(count);
            counts.map(|count| count.load(Relaxed)).sum()
        };
        let counters = self.kernel.profiler.status(&self.cpu(0).token).counters;
        let cpus = self.kernel.cpus.iter();
        let taken: u64 = cpus.map(|cpu| cpu.load.nmis.load(Relaxed)).sum();
        assert_eq!(taken, total(|nmi| &nmi.sent));
        assert_eq!(taken, counters.taken + counters.late);
        assert_eq!(counters.taken, total(|nmi| &nmi.samples));
        total(|nmi| &nmi.clients)
    }
}

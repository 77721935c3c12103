//! A kernel on a simulated machine, with a first program that holds every authority.

use super::machine::{FIRST, LINES, Machine};
use super::nmis::{self, Nmis};
use super::run::User;
use crate::account::Account;
use crate::base::addr::Frame;
use crate::base::cpu::CpuId;
use crate::base::pool::{Pool, Slot};
use crate::handles::{Chunk, Grant};
use crate::hardware::Hardware;
use crate::interrupts::Lines;
use crate::kernel::{CpuState, Facts, Kernel, Parts};
use crate::life::create::Start;
use crate::log::Log;
use crate::mem::frame_list::FrameList;
use crate::mem::frames::{Frames, Usage};
use crate::object::memory::Backing;
use crate::object::process::Counted;
use crate::object::{
    Badge, Endpoint, Memory, Notification, Object, Pools, Process, Thread, ThreadId,
};
use crate::profile::{KernelMap, Span};
use crate::sched::leave::Next;
use crate::timers::{TimerQueue, TimerSlot};
use crate::trace;
use crate::work::WorkQueue;
use ipc::abi::layout::INTERRUPTS;
use ipc::abi::{Handle, Rights};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Slots of each pool.
pub const PROCESSES: usize = 16;
pub const THREADS: usize = 160;
pub const ENDPOINTS: usize = 80;
pub const NOTIFICATIONS: usize = 80;
pub const OBJECTS: usize = 160;
pub const CHUNKS: usize = 160;
pub const BADGES: usize = 80;
/// Records that each CPU's trace holds.
pub const TRACE: usize = 32;
/// Frames of RAM; the first is the information page, the second stands for the profiler's rings.
pub const FRAMES: usize = 640;
/// Where user code is: a system call is the instruction before it.
pub const CODE: u64 = 0x40_0002;

/// Everything that a handle to a process or thread can allow.
pub const OWN: Rights = Rights::MANAGE
    .union(Rights::INSPECT)
    .union(Rights::DUPLICATE)
    .union(Rights::TRANSFER);

/// Machines that no test uses just now: their memory is the larger part of what a test needs.
static SPARE: Mutex<Vec<&'static Machine>> = Mutex::new(Vec::new());

/// A kernel, its machine, and what each CPU was told to do last.
pub struct Sim {
    pub kernel: &'static Kernel<Machine>,
    pub nmis: &'static Nmis,
    pub machine: &'static Machine,
    pub next: Vec<Next>,
    /// The first program's thread, and its handles to the system and the profiler.
    pub root: User,
    pub system: Handle,
    pub profiler: Handle,
    /// Random threads may wait for ever, and end as soon as any other call comes.
    pub patient: bool,
    /// Memory and pools as they were when only the first program was there.
    pub baseline: (Usage, [u32; 7]),
}

fn slots<T>(count: usize, empty: impl Fn() -> T) -> &'static [Slot<T>] {
    Box::leak((0..count).map(|_| Slot::new(empty())).collect())
}

fn pools() -> Pools {
    Pools {
        processes: Pool::new(slots(PROCESSES, Process::empty)),
        threads: Pool::new(slots(THREADS, Thread::empty)),
        endpoints: Pool::new(slots(ENDPOINTS, Endpoint::empty)),
        notifications: Pool::new(slots(NOTIFICATIONS, Notification::empty)),
        memory: Pool::new(slots(OBJECTS, Memory::empty)),
        chunks: Pool::new(slots(CHUNKS, Chunk::empty)),
        badges: Pool::new(slots(BADGES, Badge::empty)),
    }
}

fn kernel(machine: &'static Machine, cpus: usize) -> (Kernel<Machine>, nmis::Rings) {
    let timers = || {
        let slots = vec![TimerSlot::EMPTY; THREADS + NOTIFICATIONS];
        TimerQueue::new(Box::leak(slots.into_boxed_slice()))
    };
    let trace = || {
        let slots: Vec<_> = (0..TRACE).map(|_| trace::Slot::default()).collect();
        trace::Ring::new(Box::leak(slots.into_boxed_slice()))
    };
    let words = FIRST as usize + FRAMES;
    let map = KernelMap {
        text: Span::EMPTY,
        stubs: &[],
        syscall: Span::EMPTY,
        syscall_switched: 0,
        interrupts: Span::EMPTY,
    };
    let (profiler, rings) = nmis::driver(cpus, map);
    let state = |id| CpuState::new(id, timers(), trace(), profiler.state(id).unwrap());
    let states: Vec<_> = (0..cpus as u8).map(|id| state(CpuId(id))).collect();
    let work = vec![None; 2 * PROCESSES + THREADS + ENDPOINTS + NOTIFICATIONS + OBJECTS];
    let kernel = Kernel::new(Parts {
        hw: machine,
        facts: Facts {
            version: "simulated",
            command_line: b"quiet",
            tsc_hz: 1_000_000_000,
            total_pages: FRAMES as u64,
            kernel_pages: 2,
            bootfs_pages: 0,
            bootfs: Frame(0),
            info_page: Frame(FIRST),
            rings: Frame(FIRST + 1),
            ring_bytes: 4096,
        },
        pools: pools(),
        cpus: Box::leak(states.into_boxed_slice()),
        frames: Frames::new(
            Box::leak(vec![0; words].into_boxed_slice()),
            Box::leak(vec![0; Frames::bits_needed(words as u32)].into_boxed_slice()),
        ),
        log: Box::leak(Box::new(Log::new(Box::leak(
            vec![0; 4096].into_boxed_slice(),
        )))),
        profiler,
        lines: Lines::new(Box::leak(Box::new([None; INTERRUPTS as usize]))),
        line_counts: Box::leak(Box::new([const { AtomicU64::new(0) }; INTERRUPTS as usize])),
        work: WorkQueue::new(Box::leak(work.into_boxed_slice())),
    });
    (kernel, rings)
}

impl Sim {
    /// A kernel on this many CPUs. The first program's thread runs, on CPU 0; the other CPUs idle.
    pub fn new(cpus: usize) -> Self {
        let machine = SPARE
            .lock()
            .unwrap()
            .pop()
            .unwrap_or_else(|| Box::leak(Box::new(Machine::new(FRAMES))));
        machine.reset(cpus);
        let (kernel, rings) = kernel(machine, cpus);
        let kernel: &'static _ = Box::leak(Box::new(kernel));
        for cpu in kernel.cpus {
            machine.play(cpu.token.id());
            kernel.start_cpu(cpu);
        }
        machine.play(CpuId(0));
        let cpu = &kernel.cpus[0];
        kernel
            .frames
            .add(&cpu.token, Frame(FIRST + 2), FRAMES as u32 - 2);
        let quota = u64::from(kernel.frames.usage(&cpu.token).free);
        let process = kernel.create_process(cpu, None, quota, 0, [0; 2]).unwrap();
        let slot = process.index();
        let buffer = kernel
            .new_memory(cpu, slot, Backing::Paged(FrameList::new()), 1)
            .unwrap();
        let mut account = Account::new(kernel, cpu, slot);
        let frame = account.take_page().unwrap();
        if let Backing::Paged(list) = &mut kernel.memory(buffer).pages.lock(&cpu.token).backing {
            list.push(machine, frame, &mut account).unwrap();
        }
        let start = Start {
            entry: CODE,
            stack: 0x7000_0000,
            argument: 0,
            base: 0,
        };
        let thread = kernel
            .create_thread(cpu, slot, start, 31, (buffer, frame.start().0))
            .unwrap();
        let process_state = kernel.process(slot);
        let put = |object, rights| {
            let grant = Grant { object, rights };
            if object == Object::Process(process) {
                kernel.retain(cpu, &grant);
            }
            kernel.insert(cpu, process_state, grant).unwrap()
        };
        let system = put(Object::System, Rights::all() - Rights::MANAGE);
        let rights = Rights::MANAGE | Rights::DUPLICATE | Rights::TRANSFER;
        let profiler = put(Object::Profiler, rights);
        put(Object::Process(process), OWN);
        put(Object::Thread(thread), OWN);
        let id = ThreadId(thread.index());
        assert!(kernel.thread(id).claim_held());
        kernel.make_ready(cpu, id);
        let mut sim = Self {
            next: vec![Next::Idle; cpus],
            kernel,
            nmis: Nmis::new(kernel, rings),
            machine,
            root: User(id),
            system,
            profiler,
            patient: true,
            baseline: Default::default(),
        };
        for cpu in 0..cpus {
            sim.leave(cpu);
        }
        sim.settle();
        sim.baseline = sim.totals();
        sim.check();
        assert_eq!(sim.machine.lines(), LINES);
        sim
    }

    /// Memory, and slots in use of each pool; without the first program's handle table, which never shrinks.
    pub fn totals(&self) -> (Usage, [u32; 7]) {
        let (pools, cpu) = (&self.kernel.pools, &self.kernel.cpus[0].token);
        let first = self.kernel.process_of(self.thread(self.root));
        let own = first.objects[Counted::Chunks as usize].load(Relaxed);
        let used = [
            pools.processes.usage(cpu).0,
            pools.threads.usage(cpu).0,
            pools.endpoints.usage(cpu).0,
            pools.notifications.usage(cpu).0,
            pools.memory.usage(cpu).0,
            pools.chunks.usage(cpu).0 - own,
            pools.badges.usage(cpu).0,
        ];
        (self.kernel.frames.usage(cpu), used)
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        if let Ok(mut spare) = SPARE.lock() {
            spare.push(self.machine);
        }
    }
}

//! What the kernel needs on this machine: its pools, rings and tables, sized by the memory and the CPUs there are.
//!
//! It is counted before it is taken, so that a machine with too little memory is told at once how much would be enough.

use super::archive::Module;
use crate::arch::cpu;
use crate::arch::image::{image, kernel_map, physical, stubs};
use crate::arch::machine::Machine;
use crate::arch::memory::{BootMemory, OutOfMemory};
use crate::arch::percpu::AREA_BYTES;
use crate::arch::sampling::Neighbours;
use crate::arch::start::Boot;
use crate::log;
use core::mem::take;
use core::sync::atomic::AtomicU64;
use ipc::abi::ABI_VERSION;
use ipc::abi::info::InfoPage;
use ipc::abi::layout::{INTERRUPTS, PAGE_SIZE};
use ipc::abi::profile::Source;
use ipc::abi::trace::TRACE_RECORDS;
use kcore::apic::timer::TICK;
use kcore::base::addr::{Frame, PhysAddr};
use kcore::base::cpu::{Cpu, CpuId};
use kcore::base::pool::{Pool, Slot};
use kcore::boot::memory::Range;
use kcore::boot::shortage::{self, Shortage};
use kcore::handles::Chunk;
use kcore::hardware::PhysMemory;
use kcore::interrupts::{Line, Lines};
use kcore::kernel::{CpuState, Facts, Parts};
use kcore::log::Log;
use kcore::mem::frame_set::FrameSet;
use kcore::mem::frames::Frames;
use kcore::object::{Badge, Endpoint, Memory, Notification, Pools, Process, Thread};
use kcore::profile::{self, CounterSource, Driver, SampleSource, Span, Tick};
use kcore::timers::{TimerQueue, TimerSlot};
use kcore::trace;
use kcore::work::{Item, WorkQueue};
use sample_ring::{Geometry, Writer};
use zerocopy::IntoBytes;

const VERSION: &str = concat!("Sonde ", env!("CARGO_PKG_VERSION"));

/// Slots in the pools, for each process that there can be.
mod per_process {
    pub const PROCESSES: usize = 1;
    pub const THREADS: usize = 4;
    pub const ENDPOINTS: usize = 2;
    pub const NOTIFICATIONS: usize = 4;
    pub const MEMORY: usize = 8;
    pub const CHUNKS: usize = 4;
    pub const BADGES: usize = 8;
    /// What can wait for a time.
    pub const TIMED: usize = THREADS + NOTIFICATIONS;
    /// Places in the queue of work: for every object, and one more for each process.
    pub const WORK: usize = 2 + THREADS + ENDPOINTS + NOTIFICATIONS + MEMORY;
}

/// Page tables of a machine whose memory may be too little, which has no more than a few ranges of it, and what is lost between
/// values that must be aligned.
const TABLES: u64 = 24 * PAGE_SIZE;

/// Processes that there can be: one for every two MiB, within reason.
fn processes(ram_bytes: u64) -> usize {
    (ram_bytes >> 21).clamp(32, 256) as usize
}

/// Checks that the machine has memory for the kernel, the archive, and what the archive promises to programs.
///
/// # Errors
/// When it has not.
pub fn check(boot: &Boot, machine: &Machine, module: &Module) -> Result<(), Shortage> {
    let cpus = machine.madt.cpus.len().max(1);
    shortage::check(boot.ram_bytes, |ram| {
        kernel_bytes(boot, ram, cpus) + archive_bytes(module) + module.needs
    })
}

/// Bytes that the kernel takes at most on a machine with so much memory and so many CPUs.
fn kernel_bytes(boot: &Boot, ram: u64, cpus: usize) -> u64 {
    let image = image();
    let loaded = physical(image.text).start..physical(image.data).end.next_multiple_of(PAGE_SIZE);
    let processes = processes(ram);
    let frames = (ram.max(highest(boot)) / PAGE_SIZE) as usize;
    let values = size_of::<Boot>()
        + processes * (POOL_BYTES + per_process::WORK * size_of::<Option<Item>>())
        + cpus * (size_of::<profile::CpuState>() + size_of::<CpuState>())
        + cpus * processes * per_process::TIMED * size_of::<TimerSlot>()
        + cpus * TRACE_RECORDS * size_of::<trace::Slot>()
        + size_of::<Span>()
        + INTERRUPTS as usize * (size_of::<Option<Line>>() + size_of::<AtomicU64>())
        + frames * size_of::<u32>()
        + FrameSet::words(ram.max(highest(boot))) * size_of::<u64>()
        + Frames::bits_needed(frames as u32) * size_of::<u64>();
    let per_cpu = AREA_BYTES + Geometry::KERNEL.bytes() as u64;
    let first_page = PAGE_SIZE;
    let info_page = PAGE_SIZE;
    (loaded.end - loaded.start)
        + first_page
        + info_page
        + TABLES
        + log::BYTES_MAX
        + cpus as u64 * per_cpu
        + values as u64
}

/// Bytes of the pages that the archive lies in.
fn archive_bytes(module: &Module) -> u64 {
    (module.bytes().len() as u64).next_multiple_of(PAGE_SIZE)
}

/// End of the highest memory.
fn highest(boot: &Boot) -> u64 {
    boot.mapped.ranges().last().map_or(0, |range| range.end)
}

static NEIGHBOURS: Neighbours = Neighbours;
static TICKS: Tick = Tick {
    frequency: 1_000_000_000 / TICK,
};

static COUNTERS: [CounterSource; 3] = [
    CounterSource {
        id: Source::PmuIntel,
    },
    CounterSource {
        id: Source::PmuAmdV2,
    },
    CounterSource { id: Source::PmuAmd },
];

/// The samples' sources, best first.
fn sources(
    memory: &mut BootMemory,
    machine: &'static Machine,
    cpus: u8,
) -> Result<&'static [&'static dyn SampleSource], OutOfMemory> {
    let nmi: Option<&'static dyn SampleSource> = match &machine.alone {
        _ if cpus > 1 => Some(&NEIGHBOURS),
        Some(alone) => Some(alone),
        None => None,
    };
    let counters = COUNTERS.iter().map(|source| source as &dyn SampleSource);
    let mut sources = counters.chain(nmi).chain([&TICKS as &dyn SampleSource]);
    let count = COUNTERS.len() + usize::from(nmi.is_some()) + 1;
    Ok(memory.slice(count, |_| sources.next().expect("there are so many"))?)
}

/// Makes what the kernel is made of. What memory is left is its to give.
///
/// # Errors
/// When there is not enough memory.
#[inline(never)]
pub fn parts(
    boot: &'static mut Boot,
    machine: &'static Machine,
    log: &'static Log,
    pools: Pools,
    cpus: u8,
    module: &Module,
) -> Result<Parts<Machine>, OutOfMemory> {
    let count = usize::from(cpus);
    let memory = &mut boot.memory;
    let processes = processes(boot.ram_bytes);
    let items = per_process::TIMED * processes;
    let work = WorkQueue::new(memory.slice(per_process::WORK * processes, |_| None)?);
    let (rings, profiler) = driver(memory, machine, cpus)?;
    let info_page = info_page(memory, machine, cpus)?;

    let lines = memory.slice(INTERRUPTS as usize, |_| None)?;
    let line_counts = memory.slice(INTERRUPTS as usize, |_| AtomicU64::new(0))?;

    // One slice for all, and a chunk of it for each: nothing but the boot's stack could hold the chunks meanwhile.
    let timers = memory.slice(count * items, |_| TimerSlot::EMPTY)?;
    let mut timers = timers.chunks_exact_mut(items);
    let events = memory.slice(count * TRACE_RECORDS, |_| trace::Slot::default())?;
    let mut events = events.chunks_exact(TRACE_RECORDS);
    let cpus = memory.slice(count, |index| {
        let timers = timers.next().expect("there is a chunk for each CPU");
        let events = events.next().expect("there is a chunk for each CPU");
        let (timers, ring) = (TimerQueue::new(timers), trace::Ring::new(events));
        let id = CpuId(index as u8);
        let sampling = profiler.state(id).expect("the driver knows each CPU");
        CpuState::new(id, timers, ring, sampling)
    })?;

    let (frames, free_pages) = frames(take(&mut boot.memory), highest(boot), &cpus[0].token)?;

    let total_pages = boot.ram_bytes / PAGE_SIZE;
    let bootfs_pages = archive_bytes(module) / PAGE_SIZE;
    let kernel_pages = total_pages - bootfs_pages - free_pages;
    log::detail(format_args!(
        "memory: {} KiB are the kernel's, of {} counted",
        (kernel_pages * PAGE_SIZE) >> 10,
        kernel_bytes(boot, boot.ram_bytes, count) >> 10
    ));
    let facts = Facts {
        version: VERSION,
        command_line: boot.info.command_line.as_bytes(),
        tsc_hz: machine.scale.hz,
        total_pages,
        kernel_pages,
        bootfs_pages,
        bootfs: module.base(),
        info_page,
        rings,
        ring_bytes: Geometry::KERNEL.bytes() as u64,
    };
    Ok(Parts {
        hw: machine,
        facts,
        pools,
        cpus,
        frames,
        log,
        profiler,
        lines: Lines::new(lines),
        line_counts,
        work,
    })
}

/// The pools, once, for who counts their bytes and who makes them.
macro_rules! pools {
    ($($field:ident: $type:ident, $slots:ident;)*) => {
        /// Bytes in the pools for each process.
        const POOL_BYTES: usize = 0 $(+ per_process::$slots * size_of::<Slot<$type>>())*;

        /// Makes the pools. This and the other steps are not inlined: their frames must fit the stack one by one.
        ///
        /// # Errors
        /// When there is not enough memory.
        #[inline(never)]
        pub fn pools(boot: &mut Boot) -> Result<Pools, OutOfMemory> {
            let processes = processes(boot.ram_bytes);
            Ok(Pools {
                $($field: {
                    let slots = per_process::$slots * processes;
                    Pool::new(boot.memory.slice(slots, |_| Slot::new($type::empty()))?)
                },)*
            })
        }
    };
}
pools! {
    processes: Process, PROCESSES;
    threads: Thread, THREADS;
    endpoints: Endpoint, ENDPOINTS;
    notifications: Notification, NOTIFICATIONS;
    memory: Memory, MEMORY;
    chunks: Chunk, CHUNKS;
    badges: Badge, BADGES;
}

/// The profiling driver and its rings, which lie in a row of frames so that `profd` can map them.
#[inline(never)]
fn driver(
    memory: &mut BootMemory,
    machine: &'static Machine,
    cpus: u8,
) -> Result<(Frame, Driver), OutOfMemory> {
    let sources = sources(memory, machine, cpus)?;
    let span = |range: Range| Span {
        start: range.start,
        end: range.end,
    };
    let bytes = Geometry::KERNEL.bytes() as u64;
    let first = memory.rings(cpus.into(), Geometry::KERNEL)?;
    let states = memory.slice(cpus.into(), |index| {
        let words = crate::arch::memory::ring_words(first, index, Geometry::KERNEL);
        let ring =
            Writer::format(words, Geometry::KERNEL).expect("a ring has its geometry's words");
        profile::CpuState::new(CpuId(index as u8), ring)
    })?;
    let map = kernel_map(memory.slice(1, |_| span(stubs()))?);
    let driver =
        Driver::new(states, sources, map).expect("there are no more CPUs than a mask holds");
    debug_assert!(bytes.is_multiple_of(PAGE_SIZE), "rings are whole pages");
    Ok((PhysAddr(first).frame(), driver))
}

/// The frame allocator for memory below `highest`, with all that is left; how many pages that is.
#[inline(never)]
fn frames(mut memory: BootMemory, highest: u64, cpu: &Cpu) -> Result<(Frames, u64), OutOfMemory> {
    let words = memory.slice((highest / PAGE_SIZE) as usize, |_| 0)?;
    let bits = memory.slice(Frames::bits_needed(words.len() as u32), |_| 0)?;
    let frames = Frames::new(words, bits);
    let free = memory.into_free();
    for range in free.ranges() {
        let first = PhysAddr(range.start).frame();
        frames.add(cpu, first, (range.bytes() / PAGE_SIZE) as u32);
    }
    Ok((frames, free.bytes() / PAGE_SIZE))
}

/// The page that every program finds the clock in.
fn info_page(memory: &mut BootMemory, machine: &Machine, cpus: u8) -> Result<Frame, OutOfMemory> {
    let at = PhysAddr(memory.frames(1)?);
    let info = InfoPage {
        abi_version: ABI_VERSION.into(),
        tsc_boot: machine.scale.boot.0,
        tsc_mult: machine.scale.mult,
        tsc_hz: machine.scale.hz,
        cpus: cpus.into(),
        exposed: cpu::needs_isolation(machine.features).into(),
    };
    machine.write_bytes(at, info.as_bytes());
    Ok(at.frame())
}

//! What the kernel needs on this machine: its pools, rings and tables, sized by the memory and the CPUs there are.

use crate::arch::image::{image, stubs};
use crate::arch::machine::Machine;
use crate::arch::memory::{BootMemory, OutOfMemory};
use crate::arch::percpu::stacks;
use crate::arch::start::Boot;
use core::mem::take;
use ipc::abi::ABI_VERSION;
use ipc::abi::info::InfoPage;
use ipc::abi::layout::PAGE_SIZE;
use kcore::apic::timer::TICK;
use kcore::base::addr::{Frame, PhysAddr};
use kcore::base::cpu::{CPUS_MAX, Cpu, CpuId};
use kcore::base::pool::{Pool, Slot};
use kcore::boot::memory::Range;
use kcore::handles::Chunk;
use kcore::hardware::PhysMemory;
use kcore::kernel::{CpuState, Facts, Parts};
use kcore::log::Log;
use kcore::mem::frames::Frames;
use kcore::object::{Badge, Endpoint, Memory, Notification, Pools, Process, Thread};
use kcore::profile::{self, Driver, KernelMap, STACKS, SampleSource, Span, Tick};
use kcore::timers::{TimerQueue, TimerSlot};
use kcore::work::WorkQueue;
use sample_ring::{Geometry, Writer};
use zerocopy::IntoBytes;

const VERSION: &str = concat!("Sonde ", env!("CARGO_PKG_VERSION"));

/// Slots in the pools, for each process that there can be.
mod per_process {
    pub const THREADS: usize = 4;
    pub const ENDPOINTS: usize = 2;
    pub const NOTIFICATIONS: usize = 4;
    pub const MEMORY: usize = 8;
    pub const CHUNKS: usize = 4;
    pub const BADGES: usize = 8;
}

/// Processes that there can be: one for every two MiB, within reason.
fn processes(ram_bytes: u64) -> usize {
    (ram_bytes >> 21).clamp(32, 256) as usize
}

/// The samples' sources, best first.
static SOURCES: [&dyn SampleSource; 1] = [&Tick {
    frequency: 1_000_000_000 / TICK,
}];

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
    module_bytes: usize,
) -> Result<Parts<Machine>, OutOfMemory> {
    let count = usize::from(cpus);
    let memory = &mut boot.memory;
    let processes = processes(boot.ram_bytes);
    let items = (per_process::THREADS + per_process::NOTIFICATIONS) * processes;
    let places = (2
        + per_process::THREADS
        + per_process::ENDPOINTS
        + per_process::NOTIFICATIONS
        + per_process::MEMORY)
        * processes;
    let work = WorkQueue::new(memory.slice(places, |_| None)?);
    let (rings, profiler) = driver(memory, cpus)?;
    let info_page = info_page(memory, machine, cpus)?;

    let mut timers = heapless::Vec::<_, CPUS_MAX>::new();
    for _ in 0..cpus {
        // There is room for every CPU.
        let _ = timers.push(TimerQueue::new(memory.slice(items, |_| TimerSlot::EMPTY)?));
    }
    let mut timers = timers.into_iter();
    let cpus = memory.slice(count, |index| {
        let queue = timers.next().expect("one was made for each CPU");
        CpuState::new(CpuId(index as u8), queue)
    })?;

    let highest = boot.mapped.ranges().last().map_or(0, |range| range.end);
    let (frames, free_pages) = frames(take(memory), highest, &cpus[0].token)?;

    let total_pages = boot.ram_bytes / PAGE_SIZE;
    let bootfs_pages = (module_bytes as u64).div_ceil(PAGE_SIZE);
    let facts = Facts {
        version: VERSION,
        command_line: boot.info.command_line.as_bytes(),
        tsc_hz: machine.scale.hz,
        total_pages,
        kernel_pages: total_pages - bootfs_pages - free_pages,
        bootfs_pages,
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
        work,
    })
}

/// Makes the pools. This and the other steps are not inlined: their frames must fit the stack one by one.
///
/// # Errors
/// When there is not enough memory.
#[inline(never)]
pub fn pools(boot: &mut Boot) -> Result<Pools, OutOfMemory> {
    let processes = processes(boot.ram_bytes);
    let memory = &mut boot.memory;
    /// A pool of empty slots.
    macro_rules! pool {
        ($count:expr, $type:ident) => {
            Pool::new(memory.slice($count, |_| Slot::new($type::empty()))?)
        };
    }
    Ok(Pools {
        processes: pool!(processes, Process),
        threads: pool!(per_process::THREADS * processes, Thread),
        endpoints: pool!(per_process::ENDPOINTS * processes, Endpoint),
        notifications: pool!(per_process::NOTIFICATIONS * processes, Notification),
        memory: pool!(per_process::MEMORY * processes, Memory),
        chunks: pool!(per_process::CHUNKS * processes, Chunk),
        badges: pool!(per_process::BADGES * processes, Badge),
    })
}

/// The profiling driver and its rings, which lie in a row of frames so that `profd` can map them.
#[inline(never)]
fn driver(memory: &mut BootMemory, cpus: u8) -> Result<(Frame, Driver), OutOfMemory> {
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
        let mut spans = [Span::EMPTY; STACKS];
        for (place, range) in spans.iter_mut().zip(stacks(CpuId(index as u8))) {
            *place = span(range);
        }
        profile::CpuState::new(ring, spans)
    })?;
    let map = KernelMap {
        text: span(image().text),
        stubs: memory.slice(1, |_| span(stubs()))?,
    };
    let driver =
        Driver::new(states, &SOURCES, map).expect("there are no more CPUs than a mask holds");
    debug_assert!(bytes.is_multiple_of(PAGE_SIZE), "rings are whole pages");
    Ok((PhysAddr(first).frame(), driver))
}

/// The frame allocator for memory below `highest`, with all that is left; how many pages that is.
#[inline(never)]
fn frames(mut memory: BootMemory, highest: u64, cpu: &Cpu) -> Result<(Frames, u64), OutOfMemory> {
    let words = memory.slice((highest / PAGE_SIZE) as usize, |_| 0)?;
    let bits = memory.slice(Frames::bits_needed(words.len() as u32), |_| 0)?;
    memory.keep_promise()?;
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
    };
    machine.write_bytes(at, info.as_bytes());
    Ok(at.frame())
}

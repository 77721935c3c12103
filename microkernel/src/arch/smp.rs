//! The other CPUs: started one after the other by INIT and start-up interrupts (Intel SDM volume 3, 9.4), and compared
//! with the boot CPU by their time-stamp counters.

use super::layout::PAGE;
use super::machine::{Machine, machine};
use super::memory::{BootMemory, OutOfMemory};
use super::paging::Mapper;
use super::percpu::{PerCpu, offset, top};
use super::{cpu, direct, entry};
use core::arch::global_asm;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use ipc::abi::inspect::StackKind;
use kcore::base::cpu::CpuId;
use kcore::boot::memory::Range;
use kcore::boot::tsc::{Exchange, Offset, offset as clock_offset};

global_asm!(
    include_str!("trampoline.s"),
    CPU_ROOT = const offset::ROOT,
    started = sym started,
    options(att_syntax)
);

unsafe extern "C" {
    static trampoline_start: u8;
    static trampoline_end: u8;
    static trampoline_gdt_base: u8;
    static trampoline_far: u8;
    static trampoline_root: u8;
    static trampoline_stack: u8;
    static trampoline_entry: u8;
    static trampoline_argument: u8;
    static boot_root: u8;
    fn ap_entry();
}

/// Nanoseconds for a CPU to come up before it is asked a second time, and before it is given up. A virtual CPU may have
/// to wait for a real one.
const ASK_AGAIN: u64 = 10_000_000;
const GIVE_UP: u64 = 2_000_000_000;
/// Exchanges of which the quickest tells the offset of a CPU's counter.
const EXCHANGES: u32 = 8;

/// The question's number, and the answer to it; zero between two CPUs.
static ASKED: AtomicU32 = AtomicU32::new(0);
static ANSWERED: AtomicU32 = AtomicU32::new(0);
static THERE: AtomicU64 = AtomicU64::new(0);

/// The page below 1 MiB where a CPU starts.
#[derive(Debug)]
pub struct Trampoline {
    page: u64,
}

impl Trampoline {
    /// Prepares the page; `None` if there is no RAM for it. The map of `boot.s` serves as the CPU's first page tables: it gets
    /// the kernel's half.
    pub fn new(memory: &mut BootMemory, mapper: &Mapper) -> Option<Self> {
        let page = memory.low_page()?;
        let start = &raw const trampoline_start;
        let bytes = &raw const trampoline_end as usize - start as usize;
        assert!(bytes <= PAGE as usize, "the trampoline fits in its page");
        // SAFETY: from the kernel's constants into a page that was just taken.
        unsafe { core::ptr::copy_nonoverlapping(start, direct::pointer::<u8>(page), bytes) };
        let this = Self { page };
        let root = &raw const boot_root as u64;
        for index in 256..512 {
            // SAFETY: both are root tables in RAM, below the direct map; nobody runs on the first.
            let value = unsafe { direct::read(mapper.root() + index * 8) };
            // SAFETY: as above.
            unsafe { direct::write(root + index * 8, value) };
        }
        this.relocate(&raw const trampoline_gdt_base);
        this.relocate(&raw const trampoline_far);
        this.set(&raw const trampoline_root, root);
        this.set(&raw const trampoline_entry, ap_entry as *const () as u64);
        Some(this)
    }

    fn field<T>(&self, of: *const u8) -> *mut T {
        let offset = of as u64 - &raw const trampoline_start as u64;
        direct::pointer(self.page + offset)
    }

    fn relocate(&self, of: *const u8) {
        let field = self.field::<u32>(of);
        // SAFETY: a 32-bit field of the trampoline's copy.
        let offset = unsafe { field.read_unaligned() };
        // SAFETY: as above.
        unsafe { field.write_unaligned(offset + self.page as u32) };
    }

    fn set(&self, of: *const u8, value: u64) {
        // SAFETY: a 64-bit field of the trampoline's copy. Volatile: another CPU reads it.
        unsafe { self.field::<u64>(of).write_volatile(value) };
    }

    /// Gives back the page, and what only the start needed.
    pub fn finish(self, memory: &mut BootMemory) {
        memory.give(Range::sized(self.page, PAGE));
        memory.give(super::image::image().boot);
    }
}

/// Starts the CPU with this APIC id as number `id`, and compares its clock. `None` if it does not come up, or stops answering.
///
/// # Errors
/// When there is no memory for its stacks.
pub fn start(
    machine: &Machine,
    memory: &mut BootMemory,
    mapper: &Mapper,
    trampoline: &Trampoline,
    id: CpuId,
    apic_id: u32,
) -> Result<Option<Offset>, OutOfMemory> {
    if PerCpu::of(id).is_none() {
        PerCpu::create(memory, mapper, id)?;
    }
    let Some(block) = PerCpu::of(id) else {
        return Ok(None);
    };
    block.apic_id.store(apic_id, Ordering::Relaxed);
    trampoline.set(&raw const trampoline_stack, top(id, StackKind::Kernel));
    trampoline.set(&raw const trampoline_argument, &raw const *block as u64);
    ASKED.store(0, Ordering::Relaxed);
    ANSWERED.store(0, Ordering::SeqCst);

    // An emulator that counts instructions takes a reset CPU to have run until the next timer (QEMU 7.2: `cpu_common_reset`
    // clears what was left of its budget). So there is one soon. Its interrupt is taken later, and finds nothing due.
    let now = cpu::tsc();
    let soon = machine.scale.hz / 50_000;
    machine.local.arm(machine.timer_mode, now, now + soon);
    let page = (trampoline.page / PAGE) as u8;
    machine.local.init(apic_id);
    machine.local.start(apic_id, page);
    let up = || block.online.load(Ordering::Acquire);
    if !machine.wait(ASK_AGAIN, up) {
        machine.local.start(apic_id, page);
    }
    let offset = if machine.wait(GIVE_UP, up) {
        compare(machine)
    } else {
        None
    };
    match offset {
        Some(offset) => block.tsc_offset.store(offset.ticks, Ordering::Relaxed),
        None => {
            // It must neither come up later nor go on, with what is the next one's stack then.
            machine.local.init(apic_id);
            block.online.store(false, Ordering::Relaxed);
        }
    }
    Ok(offset)
}

/// Asks the CPU that has come up for its time, some times over. `None` if it leaves one of them unanswered.
fn compare(machine: &Machine) -> Option<Offset> {
    let mut exchanges = heapless::Vec::<Exchange, { EXCHANGES as usize }>::new();
    for round in 1..=EXCHANGES {
        let asked = cpu::tsc();
        ASKED.store(round, Ordering::Release);
        if !machine.wait(GIVE_UP, || ANSWERED.load(Ordering::Acquire) == round) {
            return None;
        }
        let there = THERE.load(Ordering::Relaxed);
        let exchange = Exchange {
            asked,
            there,
            answered: cpu::tsc(),
        };
        // There is room for every round.
        let _ = exchanges.push(exchange);
    }
    clock_offset(&exchanges)
}

/// The other side of [`compare`]. It ends, since the CPU that asks either asks all its questions or resets this one.
fn answer() {
    for round in 1..=EXCHANGES {
        while ASKED.load(Ordering::Acquire) < round {
            core::hint::spin_loop();
        }
        THERE.store(cpu::tsc(), Ordering::Relaxed);
        ANSWERED.store(round, Ordering::Release);
    }
}

/// Where a CPU comes to that the trampoline has brought into the kernel.
extern "C" fn started(block: &'static PerCpu) -> ! {
    // SAFETY: this CPU's own block, which it was started with; in the kernel's page tables, interrupts off since the reset.
    unsafe { block.load() };
    let machine = machine();
    cpu::enable(machine.features);
    machine.enable_local();
    block.online.store(true, Ordering::Release);
    answer();
    entry::wait(block)
}

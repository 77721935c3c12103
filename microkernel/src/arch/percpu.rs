//! What each CPU has for itself: a kernel stack, a stack for each interrupt that may come at any time, and a block that GS
//! points to in the kernel. They lie in an area of their own with a guard page below every stack, so that an overflow
//! is a fault.

use super::idt;
use super::layout::{CPU_AREAS, PAGE};
use super::machine::Machine;
use super::memory::{BootMemory, OutOfMemory};
use super::paging::{Mapper, READ_WRITE};
use core::arch::asm;
use core::cell::UnsafeCell;
use core::mem::offset_of;
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use ipc::abi::inspect::{StackInfo, StackKind};
use kcore::apic::timer::TimerPlan;
use kcore::base::block;
use kcore::base::cpu::{CPUS_MAX, CpuId};
use kcore::boot::memory::Range;
use kcore::profile::{KernelWords, Span};
use kcore::sched::view::View;
use spin::Once;
use x86_64::VirtAddr;
use x86_64::instructions::tables::load_tss;
use x86_64::registers::model_specific::{GsBase, KernelGsBase};
use x86_64::registers::segmentation::{CS, SS, Segment};
use x86_64::structures::gdt::{Descriptor, GlobalDescriptorTable, SegmentSelector};
use x86_64::structures::tss::TaskStateSegment;

/// From one CPU's area to the next.
pub const AREA_SIZE: u64 = 16 * PAGE;
/// Where the stacks lie in an area, in pages: the page below each is never mapped.
const STACKS: [(u64, u64); 4] = [(1, 5), (6, 8), (9, 11), (12, 14)];
/// Where the block lies, in pages.
const BLOCK: u64 = 15;
/// Bytes of memory in an area: the page below each stack and the one below the block have none.
pub const AREA_BYTES: u64 = AREA_SIZE - (STACKS.len() as u64 + 1) * PAGE;
/// Bytes at the top of every stack that are not used as stack: the first word is the address of the block.
const TOP: u64 = 16;

/// What stacks are filled with: not zero, no address, and no number that code is likely to leave there.
const UNUSED: u64 = 0x5afe_57ac_5afe_57ac;

/// Selectors of the kernel's segments; the user's are in [`kcore::base::regs`].
pub const KERNEL_CS: u16 = 0x08;
const KERNEL_SS: u16 = 0x10;
const TSS: u16 = 0x28;

/// A CPU's block. The stubs know the first five words by their [`offset`]s, and so does who looks at them from outside ([`block`]).
#[repr(C)]
pub struct PerCpu {
    me: *const PerCpu,
    /// End of the registers of the thread that left the kernel last; 0 in idle.
    regs_end: AtomicU64,
    scratch: AtomicU64,
    stack_top: u64,
    root: u64,
    /// Its number.
    pub id: CpuId,
    /// Its APIC's id.
    pub apic_id: AtomicU32,
    /// It has come up.
    pub online: AtomicBool,
    /// It has stopped, because the machine is ending.
    pub stopped: AtomicBool,
    /// TSC ticks that it is ahead of the boot CPU; measured when it came up.
    pub tsc_offset: AtomicI64,
    /// When its timer is wanted.
    pub timer: TimerPlan,
    /// What its timer is set to, in nanoseconds since boot.
    pub armed: AtomicU64,
    /// The kernel as seen from here, once there is one: an NMI finds it in one step.
    pub view: Once<View<'static, Machine>>,
    gdt: GlobalDescriptorTable,
    tss: UnsafeCell<TaskStateSegment>,
}

const _: () = assert!(size_of::<PerCpu>() <= PAGE as usize);

// SAFETY: `tss` is written by the stub `exit_to_user` alone, on the CPU that owns the block; `me` points to the block itself; the
// rest is atomic or constant.
unsafe impl Sync for PerCpu {}

/// Offsets for the stubs.
pub mod offset {
    use super::{PerCpu, TaskStateSegment, offset_of};

    /// The block's own address.
    pub const SELF: usize = offset_of!(PerCpu, me);
    /// End of the registers of the thread that left the kernel last.
    pub const REGS_END: usize = offset_of!(PerCpu, regs_end);
    /// Where the state segment has the stack for an entry from a program.
    pub const RSP0: usize =
        offset_of!(PerCpu, tss) + offset_of!(TaskStateSegment, privilege_stack_table);
    /// A word for the stub of SYSCALL.
    pub const SCRATCH: usize = offset_of!(PerCpu, scratch);
    /// Top of the kernel stack.
    pub const STACK_TOP: usize = offset_of!(PerCpu, stack_top);
    /// The kernel's own root table.
    pub const ROOT: usize = offset_of!(PerCpu, root);
}

const _: () = assert!(
    offset::REGS_END == block::REGS_END
        && offset::SCRATCH == block::SCRATCH
        && offset::STACK_TOP == block::STACK_TOP
);

/// Bit per CPU that has a block.
static CREATED: AtomicU64 = AtomicU64::new(0);
/// Set once the boot CPU's GS points to its block; other CPUs set theirs before anything else.
static READY: AtomicBool = AtomicBool::new(false);

fn area(id: CpuId) -> u64 {
    CPU_AREAS + u64::from(id.0) * AREA_SIZE
}

/// Where the stack pointer of an empty stack is.
#[must_use]
pub fn top(id: CpuId, stack: StackKind) -> u64 {
    area(id) + STACKS[stack as usize].1 * PAGE - TOP
}

/// The descriptor of a state segment at an address (Intel SDM, volume 3, 8.2.3).
const fn tss_descriptor(base: u64) -> Descriptor {
    const PRESENT: u64 = 1 << 47;
    const AVAILABLE: u64 = 0b1001 << 40;
    let limit = size_of::<TaskStateSegment>() as u64 - 1;
    let low = limit | (base & 0xff_ffff) << 16 | AVAILABLE | PRESENT | (base >> 24 & 0xff) << 56;
    Descriptor::SystemSegment(low, base >> 32)
}

/// One of the stacks that there are.
#[derive(Clone, Copy, Debug)]
pub struct OwnStack {
    start: u64,
    end: u64,
}

impl OwnStack {
    /// The stack of this CPU that an address points into, or to the end of. `None` if there is none.
    #[must_use]
    pub fn of(id: CpuId, rsp: u64) -> Option<Self> {
        let created = id.index() < CPUS_MAX && CREATED.load(Ordering::Acquire) & id.bit() != 0;
        let pages = rsp.wrapping_sub(area(id)) / PAGE;
        let &(start, end) = STACKS
            .iter()
            .find(|&&(start, end)| created && (start..end).contains(&pages))?;
        let stack = Self {
            start: area(id) + start * PAGE,
            end: area(id) + end * PAGE - TOP,
        };
        (rsp <= stack.end).then_some(stack)
    }

    /// The stack of any CPU that an address points into.
    #[must_use]
    pub fn at(rsp: u64) -> Option<Self> {
        let cpu = u8::try_from(rsp.wrapping_sub(CPU_AREAS) / AREA_SIZE).ok()?;
        Self::of(CpuId(cpu), rsp)
    }
}

impl KernelWords for OwnStack {
    fn span(self) -> Span {
        Span {
            start: self.start,
            end: self.end,
        }
    }
    fn word(self, at: u64) -> Option<u64> {
        let there = self.start <= at && at < self.end && at.is_multiple_of(8);
        // SAFETY: a word of a stack that there is, by `of`, whose start and end are multiples of 8; stacks are mapped for ever. Volatile,
        // because the code that owns the word may be anywhere.
        there.then(|| unsafe { (at as *const u64).read_volatile() })
    }
}

/// How deep a stack was ever used: down to the lowest word that is not as it was made.
#[must_use]
pub fn stack_use(id: CpuId, which: StackKind) -> StackInfo {
    let (start, end) = STACKS[which as usize];
    let bytes = (end - start) * PAGE - TOP;
    let words = (bytes / size_of::<u64>() as u64) as usize;
    let lowest = (area(id) + start * PAGE) as *const u64;
    // SAFETY: the kernel asks about CPUs that it runs on, whose stacks are mapped for ever; volatile, because the code that owns
    // the words may be anywhere; the indices are below the stack's size.
    let word = |index| unsafe { lowest.wrapping_add(index).read_volatile() };
    let unused = (0..words)
        .take_while(|&index| word(index) == UNUSED)
        .count();
    StackInfo {
        bytes,
        used: bytes - (unused * size_of::<u64>()) as u64,
    }
}

impl PerCpu {
    /// Maps the area of a CPU and fills in its block.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn create(memory: &mut BootMemory, mapper: &Mapper, id: CpuId) -> Result<(), OutOfMemory> {
        assert!(
            id.index() < CPUS_MAX,
            "CPUs beyond the highest are left out"
        );
        for (start, end) in STACKS.into_iter().chain([(BLOCK, BLOCK + 1)]) {
            let frames = memory.frames(end - start)?;
            let range = Range::sized(frames, (end - start) * PAGE);
            mapper.map(memory, area(id) + start * PAGE, range, READ_WRITE)?;
            if start == BLOCK {
                Self::fill(frames, mapper.root(), id);
            } else {
                for at in (frames..range.end).step_by(size_of::<u64>()) {
                    // SAFETY: a word of the stack just taken, which nothing uses yet.
                    unsafe { super::direct::write(at, UNUSED) };
                }
                // SAFETY: as above, the last words.
                unsafe { super::direct::write(range.end - TOP, Self::address(id) as u64) };
            }
        }
        CREATED.fetch_or(id.bit(), Ordering::Release);
        Ok(())
    }

    /// The block of a CPU; `None` if it has none. Only in the kernel's page tables.
    #[must_use]
    pub fn of(id: CpuId) -> Option<&'static Self> {
        let created = CREATED.load(Ordering::Acquire) & id.bit() != 0;
        // SAFETY: a block that was created is mapped and filled in, and stays so for ever.
        created.then(|| unsafe { &*Self::address(id) })
    }

    const fn address(id: CpuId) -> *const Self {
        (CPU_AREAS + id.0 as u64 * AREA_SIZE + BLOCK * PAGE) as *const Self
    }

    /// Writes the block into its frame, by way of the direct map.
    fn fill(frame: u64, root: u64, id: CpuId) {
        let me = Self::address(id);
        let mut tss = TaskStateSegment::new();
        for (index, which) in [
            StackKind::Nmi,
            StackKind::DoubleFault,
            StackKind::MachineCheck,
        ]
        .into_iter()
        .enumerate()
        {
            tss.interrupt_stack_table[index] = VirtAddr::new(top(id, which));
        }
        let mut gdt = GlobalDescriptorTable::new();
        for descriptor in [
            Descriptor::kernel_code_segment(),
            Descriptor::kernel_data_segment(),
            Descriptor::user_data_segment(),
            Descriptor::user_code_segment(),
            tss_descriptor(me as u64 + offset_of!(Self, tss) as u64),
        ] {
            gdt.append(descriptor);
        }
        let block = Self {
            me,
            regs_end: AtomicU64::new(0),
            scratch: AtomicU64::new(0),
            stack_top: top(id, StackKind::Kernel),
            root,
            id,
            apic_id: AtomicU32::new(0),
            online: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            tsc_offset: AtomicI64::new(0),
            timer: TimerPlan::new(u64::from(id.0)),
            armed: AtomicU64::new(u64::MAX),
            view: Once::new(),
            gdt,
            tss: UnsafeCell::new(tss),
        };
        // SAFETY: the frame is a fresh one, and large enough by the assertion above.
        unsafe { super::direct::pointer::<Self>(frame).write(block) };
    }

    /// Makes this the block of the CPU that runs this: its segments, its state segment, the interrupt table, GS.
    ///
    /// # Safety
    /// Each CPU does so with its own block, once, with interrupts off, in the kernel's page tables.
    pub unsafe fn load(&'static self) {
        self.gdt.load();
        // SAFETY: the table just loaded has the kernel's code segment there.
        unsafe { CS::set_reg(SegmentSelector(KERNEL_CS)) };
        // SAFETY: as above, its data segment.
        unsafe { SS::set_reg(SegmentSelector(KERNEL_SS)) };
        // SAFETY: as above, the descriptor of this CPU's state segment; no other CPU loads it.
        unsafe { load_tss(SegmentSelector(TSS)) };
        // The first instruction after which an NMI has a handler, and that has its stack.
        idt::load();
        self.set_gs();
        KernelGsBase::write(VirtAddr::zero());
        READY.store(true, Ordering::Release);
    }

    /// Points GS here: for entries that may have come before the stubs did.
    pub fn set_gs(&self) {
        GsBase::write(VirtAddr::from_ptr(self.me));
    }

    /// The block of the CPU that runs this.
    ///
    /// # Panics
    /// Before the boot CPU has one.
    #[must_use]
    pub fn current() -> &'static Self {
        Self::try_current().expect("the boot CPU has its block before anything asks")
    }

    /// The block of the CPU that runs this; `None` before there is one.
    #[must_use]
    pub fn try_current() -> Option<&'static Self> {
        if !READY.load(Ordering::Acquire) {
            return None;
        }
        let me: *const Self;
        // SAFETY: GS points to this CPU's block, whose first word is its address.
        unsafe { asm!("mov {}, gs:[0]", out(reg) me, options(nostack, readonly, preserves_flags)) };
        // SAFETY: blocks are never freed.
        Some(unsafe { &*me })
    }

    /// The block of the CPU with this APIC id.
    #[must_use]
    pub fn with_apic_id(id: u32) -> Option<&'static Self> {
        let mut blocks = (0..CPUS_MAX as u8).map(CpuId).filter_map(Self::of);
        blocks.find(|cpu| cpu.apic_id.load(Ordering::Relaxed) == id)
    }

    /// The CPUs besides this one that have come up; the boot CPU always has.
    pub fn others_online() -> impl Iterator<Item = &'static Self> {
        let me = Self::try_current().map(|cpu| cpu.id);
        let online = |cpu: &Self| cpu.id.0 == 0 || cpu.online.load(Ordering::Acquire);
        let ids = (0..CPUS_MAX as u8)
            .map(CpuId)
            .filter(move |&id| Some(id) != me);
        ids.filter_map(Self::of).filter(move |cpu| online(cpu))
    }

    /// Top of its kernel stack.
    #[must_use]
    pub const fn stack_top(&self) -> u64 {
        self.stack_top
    }

    /// Where the stub of SYSCALL has put the program's RSP, if it is in the middle of changing stacks.
    #[must_use]
    pub fn scratch(&self) -> u64 {
        self.scratch.load(Ordering::Relaxed)
    }

    /// Where the registers end of the thread from which the kernel was entered, or that goes on when it is left; 0 in idle.
    #[must_use]
    pub fn entered(&self) -> u64 {
        self.regs_end.load(Ordering::Relaxed)
    }
}

//! The first steps: from the loader's state to the kernel's own page tables and a stack with a guard page.

use super::devices::BootMap;
use super::image::{image, physical};
use super::layout::{self, PAGE};
use super::memory::{BootMemory, OutOfMemory};
use super::paging::Mapper;
use super::percpu::{self, PerCpu};
use super::{cpu, idt, serial};
use crate::fatal::refuse;
use core::arch::{asm, global_asm};
use ipc::abi::inspect::StackKind;
use ipc::abi::layout::{EXIT_FAILURE, EXIT_PORT};
use kcore::base::cpu::CpuId;
use kcore::boot::features::Features;
use kcore::boot::memory::{Range, RangeSet};
use kcore::boot::pvh::{self, BootInfo};

global_asm!(
    include_str!("boot.s"),
    DIRECT_MAP = const layout::DIRECT_MAP,
    KERNEL_BASE = const layout::KERNEL_BASE,
    START_MAGIC = const pvh::MAGIC,
    EXIT_PORT = const EXIT_PORT,
    EXIT_FAILURE = const EXIT_FAILURE,
    start = sym start,
    options(att_syntax)
);

/// The kernel's number of the CPU that starts.
pub const BOOT_CPU: CpuId = CpuId(0);

/// What the first steps found and made.
#[derive(Debug)]
pub struct Boot {
    /// From the loader.
    pub info: BootInfo,
    /// Of the processor.
    pub features: Features,
    /// Memory to hand out.
    pub memory: BootMemory,
    /// RAM in the direct map: all but the kernel's code and constants.
    pub mapped: RangeSet,
    /// RAM in all, in bytes.
    pub ram_bytes: u64,
    /// The kernel's page tables.
    pub mapper: Mapper,
}

/// Entered by `boot.s` with the physical address of the start information.
extern "C" fn start(info: u64) -> ! {
    serial::enable();
    idt::load();
    let features = cpu::features()
        .unwrap_or_else(|missing| refuse(format_args!("this processor lacks {}", missing.0)));
    let info = pvh::parse(&BootMap, info).unwrap_or_else(|error| refuse(format_args!("{error}")));
    match prepare(info, features) {
        Ok(boot) => enter(boot),
        Err(error) => refuse(format_args!("{error}")),
    }
}

/// Finds the free memory and makes the page tables.
fn prepare(info: BootInfo, features: Features) -> Result<&'static mut Boot, OutOfMemory> {
    let image = image();
    let module = info.module.map(Range::outer_pages);
    let ram_bytes = info.ram.bytes();
    let text = Range {
        start: physical(image.text).start,
        end: physical(image.rodata).end,
    };

    let mut writable = info.ram.clone();
    writable.remove(text);
    if let Some(module) = module {
        writable.remove(module);
    }

    let mut free = writable.clone();
    free.remove(Range::sized(0, PAGE));
    free.remove(image.boot);
    free.remove(physical(image.data));
    let mut memory = BootMemory::new(free);

    let mapper = Mapper::new(&mut memory, features.huge_pages)?;
    mapper.kernel(&mut memory, &image, &writable, module)?;
    PerCpu::create(&mut memory, &mapper, BOOT_CPU)?;
    let mut mapped = writable;
    if let Some(module) = module {
        mapped.insert(module);
    }
    let boot = memory.value(Boot {
        info,
        features,
        memory: BootMemory::default(),
        mapped,
        ram_bytes,
        mapper,
    })?;
    memory.all_mapped();
    boot.memory = memory;
    Ok(boot)
}

/// Changes to the kernel's page tables and stack, and goes on in [`crate::main`].
fn enter(boot: &'static mut Boot) -> ! {
    cpu::enable(boot.features);
    let root = boot.mapper.root();
    let top = percpu::top(BOOT_CPU, StackKind::Kernel);
    // SAFETY: the new tables map the kernel where it runs, the stack that is switched to, and `boot`. Nothing on the old stack
    // is used again.
    unsafe {
        asm!(
            "mov cr3, {root}",
            "mov rsp, {top}",
            "xor ebp, ebp",
            "call {entered}",
            "ud2",
            root = in(reg) root,
            top = in(reg) top,
            in("rdi") boot,
            entered = sym entered,
            options(noreturn)
        )
    }
}

extern "C" fn entered(boot: &'static mut Boot) -> ! {
    let cpu = PerCpu::of(BOOT_CPU).expect("`prepare` made it");
    // SAFETY: the boot CPU's own block, once, in the kernel's page tables; interrupts have been off since the start.
    unsafe { cpu.load() };
    crate::main(boot)
}

//! The end: a machine that Sonde cannot run on, exceptions in the kernel, and panics.

use crate::arch::machine::try_machine;
use crate::arch::percpu::{OwnStack, PerCpu};
use crate::arch::{cpu, entry, image, power};
use crate::entry::traced;
use crate::log::{last, show_tail};
use core::fmt::Arguments;
use core::panic::PanicInfo;
use core::sync::atomic::{AtomicU32, Ordering};
use ipc::abi::exit::{BacktraceEnd, CrashReport, ExitReason, FaultKind};
use ipc::abi::trace::{TraceKind, TraceRecord};
use ipc::bootfs::{Bootfs, INIT_SYMBOLS, KERNEL, KERNEL_SYMBOLS};
use ipc::symtab::{Symbol, SymbolTable};
use kcore::base::cpu::CpuId;
use kcore::base::regs::{Reg, SavedRegs};
use kcore::profile::KernelWords;
use spin::Once;

/// Who ends the machine: 0 nobody, else a CPU's number plus 1.
static ENDING: AtomicU32 = AtomicU32::new(0);
/// The boot archive, believed only when it is needed.
static ARCHIVE: Once<Bootfs<'static>> = Once::new();
/// Most frames of a backtrace.
const FRAMES: usize = 32;
/// Most events that are shown.
const EVENTS: usize = 16;
/// Microseconds that the other CPUs get to stop.
const STOP_TIME: u64 = 100_000;

/// Says in one line why Sonde cannot run here, and ends.
pub fn refuse(why: Arguments<'_>) -> ! {
    last(format_args!("Sonde: {why}"));
    power::fail()
}

/// Sets the archive in which panics look symbols up.
pub fn set_archive(archive: Bootfs<'static>) {
    ARCHIVE.call_once(|| archive);
}

/// The kernel's symbols, if they are whole and those of this build.
fn symbols() -> Option<SymbolTable<'static>> {
    let archive = ARCHIVE.get()?;
    let table = table(archive, KERNEL_SYMBOLS)?;
    let (id, kernel) = (image::build_id(), archive.find(KERNEL)?.data);
    let same = !id.is_empty() && kernel.windows(id.len()).any(|bytes| bytes == id);
    same.then_some(table)
}

/// A table of the archive, if it is whole.
fn table(archive: &Bootfs<'static>, file: &str) -> Option<SymbolTable<'static>> {
    SymbolTable::parse(archive.find(file)?.data).ok()
}

/// Whether the machine is ending: an NMI then means "stop".
pub fn is_ending() -> bool {
    ENDING.load(Ordering::Acquire) != 0
}

/// Whether it is this CPU that ends the machine. Nobody tells it to stop: an NMI there is one of a profile that is still on.
pub fn is_ended_by(cpu: CpuId) -> bool {
    ENDING.load(Ordering::Acquire) == of(cpu)
}

/// What [`ENDING`] says of a CPU.
fn of(cpu: CpuId) -> u32 {
    u32::from(cpu.0) + 1
}

/// An exception that the kernel cannot go on after.
pub fn exception(frame: &SavedRegs, what: &str) -> ! {
    begin();
    let reg = |reg| frame.get(reg);
    last(format_args!(
        "panic: {what}: vector {} error {:#x} address {:#x}{}",
        reg(Reg::Vector),
        reg(Reg::Error),
        entry::fault_address(),
        Where
    ));
    for row in [
        [
            ("rip", Reg::Rip),
            ("rsp", Reg::Rsp),
            ("rflags", Reg::Rflags),
        ],
        [("rax", Reg::Rax), ("rbx", Reg::Rbx), ("rcx", Reg::Rcx)],
        [("rdx", Reg::Rdx), ("rsi", Reg::Rsi), ("rdi", Reg::Rdi)],
        [("rbp", Reg::Rbp), ("r8", Reg::R8), ("r9", Reg::R9)],
        [("r10", Reg::R10), ("r11", Reg::R11), ("r12", Reg::R12)],
        [("r13", Reg::R13), ("r14", Reg::R14), ("r15", Reg::R15)],
    ] {
        let row = row.map(|(name, which)| (name, reg(which)));
        last(format_args!("{}", Row(&row)));
    }
    let symbols = symbols();
    frame_line("kernel", symbols, reg(Reg::Rip), false);
    backtrace(symbols, reg(Reg::Rbp));
    show_events();
    power::fail()
}

/// A panic of the kernel's own code. Of the registers, those are shown that still say something about it: the others were used on the
/// way here.
#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let [rsp, rbp] = cpu::stack_registers();
    let rflags = x86_64::registers::rflags::read_raw();
    begin();
    last(format_args!("panic: {}{Where}", info.message()));
    if let Some(place) = info.location() {
        last(format_args!("  at {}:{}", place.file(), place.line()));
    }
    let row = [
        ("rsp", rsp),
        ("rbp", rbp),
        ("rflags", rflags),
        ("cr2", entry::fault_address()),
    ];
    for row in row.chunks(3) {
        last(format_args!("{}", Row(row)));
    }
    backtrace(symbols(), rbp);
    show_events();
    power::fail()
}

/// The first program has ended. What it said last is in the log, which nobody can ask for any more.
pub fn init_ended(reason: ExitReason, code: u64, crash: Option<&CrashReport>) -> ! {
    begin();
    show_tail();
    let Some(crash) = crash else {
        last(format_args!(
            "panic: init has ended: {reason:?}, code {code}{Where}"
        ));
        show_events();
        power::fail()
    };
    match FaultKind::from_raw(crash.kind) {
        Some(FaultKind::Breakpoint) => last(format_args!("panic: init has panicked{Where}")),
        kind => last(format_args!(
            "panic: init has faulted: {kind:?}, error {:#x}, address {:#x}{Where}",
            crash.error_code, crash.address
        )),
    }
    let symbols = ARCHIVE
        .get()
        .and_then(|archive| table(archive, INIT_SYMBOLS));
    let frames = crash.backtrace.iter().take(crash.frames as usize);
    for (depth, &address) in frames.enumerate() {
        frame_line("init", symbols, address, depth > 0);
    }
    if crash.end != BacktraceEnd::Outermost as u64 {
        last(format_args!("  ..."));
    }
    show_events();
    power::fail()
}

/// Makes this CPU the one that ends the machine, and stops the others. A second one waits to be stopped; a panic while
/// ending ends at once.
fn begin() {
    let me = of(PerCpu::try_current().map_or(CpuId(0), |cpu| cpu.id));
    match ENDING.compare_exchange(0, me, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {}
        Err(owner) if owner == me => {
            last(format_args!("panic while ending"));
            power::fail()
        }
        Err(_) => {
            if let Some(cpu) = PerCpu::try_current() {
                cpu.stopped.store(true, Ordering::Release);
            }
            cpu::stop()
        }
    }
    let Some(machine) = try_machine() else { return };
    // Not to one that is just starting: it has no table that leads to a handler. It waits for this CPU, and so does nothing.
    for cpu in PerCpu::others_online() {
        machine.local.nmi(cpu.apic_id.load(Ordering::Relaxed));
    }
    let running = || PerCpu::others_online().filter(|cpu| !cpu.stopped.load(Ordering::Acquire));
    for _ in 0..STOP_TIME / 10 {
        if running().next().is_none() {
            return;
        }
        machine.delay(10);
    }
    for cpu in running() {
        last(format_args!("cpu {} does not stop", cpu.id.0));
    }
}

/// Prints which CPU this is, if that is known.
struct Where;

impl core::fmt::Display for Where {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match PerCpu::try_current() {
            Some(cpu) => write!(f, " (cpu {})", cpu.id.0),
            None => Ok(()),
        }
    }
}

/// A row of registers.
struct Row<'a>(&'a [(&'a str, u64)]);

impl core::fmt::Display for Row<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        for (name, value) in self.0 {
            write!(f, "  {name:>6} {value:016x}")?;
        }
        Ok(())
    }
}

/// Prints the last events of this CPU, if events were traced, oldest first; each with how long it was before the first of these lines.
fn show_events() {
    let (Some(cpu), Some(machine)) = (PerCpu::try_current(), try_machine()) else {
        return;
    };
    let Some(ring) = traced(cpu) else {
        return;
    };
    let mut records = [TraceRecord::default(); EVENTS];
    let first = ring.written().saturating_sub(EVENTS as u64);
    let reading = ring.read(first, &mut records);
    let now = cpu::tsc();
    last(format_args!("last events (pid.tid, detail, words):"));
    for record in records.iter().take(reading.copied) {
        let ago = machine.scale.nanos(now.saturating_sub(record.tsc)) / 1000;
        let name = record.kind().map_or("?", TraceKind::name);
        let ([first, second], detail) = (record.words, record.detail());
        let (pid, tid) = (record.pid(), record.tid());
        last(format_args!(
            "  -{ago} us {name} {pid}.{tid} {detail:#x} {first:#x} {second:#x}"
        ));
    }
}

/// Prints the frames that a chain of frame pointers leads to, as long as it stays on stacks, grows, and returns to code.
fn backtrace(symbols: Option<SymbolTable<'_>>, mut rbp: u64) {
    for _ in 0..FRAMES {
        let Some(stack) = OwnStack::at(rbp) else {
            return;
        };
        let words = (stack.word(rbp), stack.word(rbp.wrapping_add(8)));
        let (Some(next), Some(address)) = words else {
            return;
        };
        if !image::is_text(address) {
            return;
        }
        frame_line("kernel", symbols, address, true);
        if next <= rbp {
            return;
        }
        rbp = next;
    }
    last(format_args!("  ..."));
}

/// Prints an address: by symbol if it can be found.
fn frame_line(image: &str, symbols: Option<SymbolTable<'_>>, address: u64, is_return: bool) {
    let symbol = symbols.and_then(|table| match is_return {
        true => table.lookup_return(address),
        false => table.lookup(address),
    });
    match symbol {
        Some(Symbol { name, offset }) => {
            last(format_args!("  <- {image}`{name}+{offset:#x}"));
        }
        None => last(format_args!("  <- {address:#x}")),
    }
}

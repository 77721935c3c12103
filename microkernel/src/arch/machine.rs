//! [`Machine`]: this machine as [`kcore::hardware::Hardware`].

use super::apic::{Io, Local};
use super::layout::PAGE;
use super::percpu::{self, OwnStack, PerCpu};
use super::sampling::{Alone, Hpet};
use super::{cpu, direct, power};
use crate::fatal;
use core::sync::atomic::{AtomicU64, Ordering};
use heapless::Vec;
use ipc::abi::PowerAction;
use ipc::abi::exit::{CrashReport, ExitReason};
use ipc::abi::inspect::{StackInfo, StackKind};
use kcore::apic::edge::{EdgeLines, LetGo};
use kcore::apic::hpet::OneShot;
use kcore::apic::io::IoApic;
use kcore::apic::local::{self, LocalApic, TimerMode};
use kcore::apic::timer::Due;
use kcore::apic::vector;
use kcore::base::addr::{Frame, Nanos, PhysAddr, Tsc};
use kcore::base::cpu::CpuId;
use kcore::boot::acpi::madt::{IO_APICS_MAX, Madt};
use kcore::boot::features::Features;
use kcore::boot::memory::{Range, RangeSet};
use kcore::boot::tsc::Scale;
use kcore::hardware::{Hardware, PhysMemory, PhysWords};
use kcore::mem::entry::Entry;
use kcore::mem::frame_set::FrameSet;
use kcore::profile::Machine as SampledMachine;
use spin::Once;
use spin::mutex::TicketMutex;
use x86_64::instructions::port::Port;
use x86_64::instructions::tlb;
use x86_64::registers::control::{Cr3, Cr3Flags};
use x86_64::registers::model_specific::FsBase;
use x86_64::structures::paging::PhysFrame;
use x86_64::{PhysAddr as HardwareAddr, VirtAddr};

/// What the boot found out about the machine. There is one.
#[derive(Debug)]
pub struct Machine {
    /// The processors' features.
    pub features: Features,
    /// The local APIC of the CPU that uses it.
    pub local: LocalApic<Local>,
    /// Used by one CPU at a time: an access takes two steps.
    pub io: TicketMutex<Vec<IoApic<Io>, IO_APICS_MAX>>,
    /// Interrupt wiring.
    pub madt: Madt,
    /// What can send the CPU NMIs if there is but one.
    pub alone: Option<Alone>,
    /// Lines that signal by edge.
    pub edges: EdgeLines,
    /// Interrupt lines there are.
    pub lines: u32,
    /// The TSC's rate.
    pub scale: Scale,
    /// What the timers count.
    pub timer_mode: TimerMode,
    /// All RAM.
    pub ram: RangeSet,
    /// RAM that the direct map covers: without the kernel's code and constants.
    pub mapped: FrameSet,
    /// The kernel's own root table.
    pub root: u64,
}

static MACHINE: Once<Machine> = Once::new();

/// Sets what [`machine`] is.
pub fn set_machine(machine: Machine) -> &'static Machine {
    MACHINE.call_once(|| machine)
}

/// The machine.
///
/// # Panics
/// Before [`set_machine`].
#[must_use]
pub fn machine() -> &'static Machine {
    MACHINE
        .get()
        .expect("interrupts are off until the machine is known")
}

/// The machine, if it is known already.
#[must_use]
pub fn try_machine() -> Option<&'static Machine> {
    MACHINE.get()
}

impl Machine {
    /// Prepares the local APIC of the CPU that runs this.
    pub fn enable_local(&self) {
        self.local.0.switch_on();
        self.local.enable(self.madt.nmi_inputs);
        self.local.timer_enable(self.timer_mode);
    }

    /// Lets this CPU's tick begin.
    pub fn start_ticking(&self, cpu: &PerCpu) {
        // An odd part of the tick's length apart: ticks of different CPUs do not meet.
        const APART: u64 = 156_281;
        cpu.timer.start(self.now(), u64::from(cpu.id.0) * APART);
        self.arm(cpu);
    }

    /// Takes what is due of a timer interrupt on this CPU. The timer is off until it is armed again.
    pub fn timer_due(&self, cpu: &PerCpu) -> Due {
        let due = cpu.timer.take(self.now());
        cpu.armed.store(u64::MAX, Ordering::Relaxed);
        due
    }

    /// Sets this CPU's timer to what is wanted next, if it is not so already.
    pub fn arm(&self, cpu: &PerCpu) {
        let next = cpu.timer.next();
        if cpu.armed.swap(next.0, Ordering::Relaxed) != next.0 {
            let at = self.scale.tick_at(next);
            self.local.arm(self.timer_mode, cpu::tsc(), at.0);
        }
    }

    /// Waits a number of microseconds.
    pub fn delay(&self, micros: u64) {
        let end = Nanos(self.now().0 + micros * 1000);
        while self.now() < end {
            core::hint::spin_loop();
        }
    }

    /// Waits until something is so, but no longer than these nanoseconds. Whether it is.
    pub fn wait(&self, nanos: u64, is_so: impl Fn() -> bool) -> bool {
        let end = Nanos(self.now().0 + nanos);
        while !is_so() {
            if self.now() > end {
                return is_so();
            }
            core::hint::spin_loop();
        }
        true
    }

    /// Whether an interrupt that came in on a line is to be delivered now.
    pub fn delivers(&self, line: u32) -> bool {
        !self.is_edge(line) || self.edges.came(line)
    }

    /// Whether a line signals by edge, as one does that is signalled by messages.
    fn is_edge(&self, line: u32) -> bool {
        line >= self.lines || !self.madt.wiring(line).level
    }

    /// The APIC id of the CPU that runs this, for what has 8 bits for it: else the boot CPU's, which is one.
    fn destination() -> u8 {
        let id = |cpu: &PerCpu| cpu.apic_id.load(Ordering::Relaxed).try_into().ok();
        let boot = || PerCpu::of(super::start::BOOT_CPU).and_then(id);
        id(PerCpu::current()).or_else(boot).unwrap_or(0)
    }

    /// Routes a line to the CPU that runs this, and unmasks it.
    fn route(&self, line: u32) {
        let to = Self::destination();
        let vector = vector::LINES + line as u8;
        for io in self.io.lock().iter().filter(|io| io.serves(line)) {
            io.unmask(line, self.madt.wiring(line), vector, to);
        }
    }

    /// Makes the HPET timer's line NMIs of the CPU that runs this.
    pub fn route_hpet(&self, hpet: &OneShot<Hpet>) {
        let line = hpet.line();
        hpet.prepare();
        for io in self.io.lock().iter().filter(|io| io.serves(line)) {
            io.unmask_as_nmi(line, Self::destination());
        }
    }

    fn load_root(&self, root: u64) {
        let frame = PhysFrame::containing_address(HardwareAddr::new(root));
        // SAFETY: a root table whose upper half is the kernel's; changing the lower half cannot hurt the kernel, which has
        // nothing there.
        unsafe { Cr3::write(frame, Cr3Flags::empty()) };
    }
}

impl Machine {
    /// A pointer to RAM. What the callers of [`PhysMemory`] promise is checked, since they are safe code.
    fn ram<T>(&self, at: PhysAddr, bytes: usize) -> *mut T {
        assert!(self.mapped.holds(at, bytes), "{at:?} is not RAM");
        direct::pointer(at.0)
    }
}

impl PhysWords for Machine {
    type Words<'a> = &'static [AtomicU64; 512];

    #[inline]
    fn words(&self, frame: Frame) -> Option<&'static [AtomicU64; 512]> {
        let words = direct::pointer::<[AtomicU64; 512]>(frame.start().0);
        // SAFETY: a frame of RAM, which the direct map has for ever. Whoever writes to frames that are handed out does so atomically,
        // or is a program, whose words each are written by the CPU as one; a frame that is Rust's own is none that tables lead to.
        self.mapped.contains(frame).then(|| unsafe { &*words })
    }
    #[inline]
    fn user_words(&self, tagged: u64) -> Option<&'static [AtomicU64; 512]> {
        self.mapped.tagged_in_largest(tagged)?;
        let tagged = direct::pointer::<u8>(tagged);
        // SAFETY: so many bytes above a frame of RAM, in the direct map.
        let words = unsafe { tagged.sub(Entry::TO_USER as usize) };
        // SAFETY: as for `words`.
        Some(unsafe { &*words.cast() })
    }
}

impl PhysMemory for Machine {
    fn read(&self, at: PhysAddr) -> u64 {
        let word = self.ram::<AtomicU64>(at, 8);
        assert!(word.is_aligned(), "{at:?} is not the address of a word");
        // SAFETY: a word of RAM, which the direct map has for ever; all access to it is atomic, or by its only owner.
        unsafe { &*word }.load(Ordering::Relaxed)
    }
    fn write(&self, at: PhysAddr, value: u64) {
        let word = self.ram::<AtomicU64>(at, 8);
        assert!(word.is_aligned(), "{at:?} is not the address of a word");
        // SAFETY: as for `read`; the caller owns the frame, by the frame allocator.
        unsafe { &*word }.store(value, Ordering::Relaxed);
    }
    fn copy(&self, from: PhysAddr, to: PhysAddr, bytes: usize) {
        let (from, to) = (self.ram::<u8>(from, bytes), self.ram::<u8>(to, bytes));
        // SAFETY: both in RAM, and in frames apart by the trait's contract; frames that programs see hold no Rust object.
        unsafe { direct::copy(from, to, bytes) };
    }
    fn zero(&self, frame: Frame) {
        let at = self.ram::<u8>(frame.start(), PAGE as usize);
        // SAFETY: the caller owns the frame, by the frame allocator; it is RAM.
        unsafe { at.write_bytes(0, PAGE as usize) };
    }
    fn read_bytes(&self, from: PhysAddr, to: &mut [u8]) {
        let from = self.ram::<u8>(from, to.len());
        // SAFETY: from RAM, which is not the kernel's buffer, for as many bytes as that has.
        unsafe { direct::copy(from, to.as_mut_ptr(), to.len()) };
    }
    fn write_bytes(&self, to: PhysAddr, from: &[u8]) {
        let to = self.ram::<u8>(to, from.len());
        // SAFETY: as for `read_bytes`; the caller owns the frame.
        unsafe { direct::copy(from.as_ptr(), to, from.len()) };
    }
}

impl Hardware for Machine {
    fn tsc(&self) -> Tsc {
        Tsc(cpu::tsc())
    }
    fn now(&self) -> Nanos {
        self.scale.time(Tsc(cpu::tsc()))
    }
    fn tsc_to_nanos(&self, ticks: u64) -> u64 {
        self.scale.nanos(ticks)
    }

    fn time_at(&self, tsc: u64) -> Nanos {
        self.scale.time(Tsc(tsc))
    }

    fn kick(&self, cpu: CpuId) {
        if let Some(other) = PerCpu::of(cpu) {
            let id = other.apic_id.load(Ordering::Relaxed);
            self.local.interrupt(id, vector::KICK);
        }
    }
    fn nmi(&self, cpu: CpuId) {
        if let Some(other) = PerCpu::of(cpu) {
            self.local.nmi(other.apic_id.load(Ordering::Relaxed));
        }
    }
    fn set_timer(&self, deadline: Nanos) {
        let cpu = PerCpu::current();
        cpu.timer.set_deadline(deadline);
        self.arm(cpu);
    }

    fn load_space(&self, root: Option<Frame>) {
        self.load_root(root.map_or(self.root, |root| root.start().0));
    }
    fn flush_page(&self, address: u64) {
        tlb::flush(VirtAddr::new_truncate(address));
    }
    fn flush_all(&self) {
        tlb::flush_all();
    }
    fn kernel_entry(&self, index: usize) -> u64 {
        // SAFETY: an entry of the root table, which has 512.
        unsafe { direct::read(self.root + (index as u64 & 511) * 8) }
    }
    fn set_fs_base(&self, base: u64) {
        FsBase::write(VirtAddr::new_truncate(base));
    }

    fn mask(&self, line: u32) {
        if self.is_edge(line) {
            self.edges.hold(line);
            return;
        }
        for io in self.io.lock().iter().filter(|io| io.serves(line)) {
            io.mask(line);
        }
    }
    fn unmask(&self, line: u32) {
        match if self.is_edge(line) {
            self.edges.let_go(line)
        } else {
            LetGo::Unmask
        } {
            LetGo::Nothing => {}
            LetGo::Unmask => self.route(line),
            LetGo::Raise => {
                let here = PerCpu::current().apic_id.load(Ordering::Relaxed);
                self.local.interrupt(here, vector::LINES + line as u8);
            }
        }
    }
    fn is_device(&self, range: Range) -> bool {
        let taken = self.ram.overlaps(range);
        !taken && !self.madt.controllers().any(|page| page.overlaps(range))
    }
    fn message(&self, line: u32) -> (u64, u64) {
        local::message(Self::destination(), vector::LINES + line as u8)
    }
    fn lines(&self) -> u32 {
        self.lines
    }
    fn keeps(&self, line: u32) -> bool {
        self.alone
            .as_ref()
            .is_some_and(|alone| alone.hpet.line() == line)
    }

    fn port_read(&self, port: u16, bytes: u8) -> u32 {
        match bytes {
            // SAFETY: whoever holds the right to these ports answers for what they do.
            1 => unsafe { Port::<u8>::new(port).read() }.into(),
            // SAFETY: as above.
            2 => unsafe { Port::<u16>::new(port).read() }.into(),
            // SAFETY: as above.
            _ => unsafe { Port::<u32>::new(port).read() },
        }
    }
    fn port_write(&self, port: u16, bytes: u8, value: u32) {
        match bytes {
            // SAFETY: as for reading.
            1 => unsafe { Port::new(port).write(value as u8) },
            // SAFETY: as above.
            2 => unsafe { Port::new(port).write(value as u16) },
            // SAFETY: as above.
            _ => unsafe { Port::new(port).write(value) },
        }
    }

    fn stack(&self, cpu: CpuId, which: StackKind) -> StackInfo {
        percpu::stack_use(cpu, which)
    }

    fn power(&self, action: PowerAction) -> ! {
        power::end(action)
    }

    fn init_ended(&self, reason: ExitReason, code: u64, crash: Option<&CrashReport>) -> ! {
        fatal::init_ended(reason, code, crash)
    }
}

impl SampledMachine for Machine {
    type KernelWords<'a> = OwnStack;
    type Monitor = Self;

    fn tsc(&self) -> Tsc {
        Tsc(cpu::ticks())
    }
    fn kernel_stack(&self, cpu: CpuId, rsp: u64) -> Option<OwnStack> {
        OwnStack::of(cpu, rsp)
    }
    #[inline]
    fn space(&self) -> Frame {
        PhysAddr(Cr3::read_raw().0.start_address().as_u64()).frame()
    }
    #[inline]
    fn next_sample(&self, _: CpuId) -> u64 {
        self.alone.as_ref().map_or(0, Alone::next)
    }
    fn monitor(&self) -> &Self {
        self
    }
}

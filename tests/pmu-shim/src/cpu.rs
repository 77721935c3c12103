//! One CPU: its guest, its counters, and the turns that the guest gets.

use crate::hpet::{Hpet, tsc};
use crate::msr::permissions;
use crate::report::{give_up, mark};
use crate::start::{Registers, run_guest, take_nmi};
use crate::vmcb::{TRAP, Vmcb, code, event, intercept};
use crate::{apic, exit};
use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use pmu_model::CPUS_MAX;
use pmu_model::nmi::Nmis;
use pmu_model::pmu::{Delivery, Pmu};
use pmu_model::record::Mark;
use pmu_model::setup::Setup;
use spin::Once;
use x86_64::registers::model_specific::Msr;

const VM_HSAVE_PA: u32 = 0xc001_0117;
/// Ticks of the time-stamp counter that it takes at most from setting the timer to the guest's turn.
const HIDDEN_MAX: u64 = 1000;

/// What all CPUs have in common.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    pub setup: Setup,
    pub hpet: Hpet,
}

static CONFIG: Once<Config> = Once::new();

/// Tells all CPUs, before there is a second one.
pub fn configure(config: Config) {
    CONFIG.call_once(|| config);
}

fn config() -> Config {
    match CONFIG.get() {
        Some(config) => *config,
        None => give_up(format_args!("a CPU came before its time")),
    }
}

/// What one CPU asks of another.
#[derive(Debug)]
pub struct Mailbox {
    /// Page at which the guest's CPU starts.
    pub page: AtomicU8,
    /// The guest sent it an NMI.
    pub nmi: AtomicBool,
}

pub static MAILBOXES: [Mailbox; CPUS_MAX] = [const {
    Mailbox {
        page: AtomicU8::new(0),
        nmi: AtomicBool::new(false),
    }
}; CPUS_MAX];

/// A page that the processor uses between two turns.
#[repr(C, align(4096))]
struct HostSave(UnsafeCell<[u8; 4096]>);

// SAFETY: no Rust code ever looks at it.
unsafe impl Sync for HostSave {}

static HOST_SAVES: [HostSave; CPUS_MAX] =
    [const { HostSave(UnsafeCell::new([0; 4096])) }; CPUS_MAX];

/// Where a CPU's own state lies.
struct Slot(UnsafeCell<MaybeUninit<Cpu>>);

// SAFETY: only the CPU whose slot it is uses it, in `Cpu::start`.
unsafe impl Sync for Slot {}

static SLOTS: [Slot; CPUS_MAX] = [const { Slot(UnsafeCell::new(MaybeUninit::uninit())) }; CPUS_MAX];

/// A halted guest.
#[derive(Clone, Copy, Debug)]
pub struct Halt {
    /// Its HLT.
    pub rip: u64,
}

/// One CPU.
#[derive(Debug)]
pub struct Cpu {
    pub vmcb: Vmcb,
    pub registers: Registers,
    pub id: u8,
    pub config: Config,
    pub pmu: Pmu,
    pub nmis: Nmis,
    /// Up to when they have counted.
    counted: u64,
    /// What the timer is set to, unless it may have gone off.
    timer: Option<u64>,
    /// The guest executes HLT, or is about to.
    pub halt: Option<Halt>,
    /// What the guest has written to its APIC's base register.
    pub apic_base: u64,
}

/// This CPU's APIC id.
pub fn own_id() -> u8 {
    apic::own_id()
}

/// Entered by `start.s` on a CPU that got a start-up interrupt.
pub extern "C" fn again(id: u64) -> ! {
    let id = id as u8;
    let page = MAILBOXES[usize::from(id)].page.load(Ordering::Acquire);
    Cpu::start(id, Vmcb::at_page(page), 0)
}

impl Cpu {
    /// Runs the guest on this CPU from this state on; `rbx` is all that its other registers hold.
    pub fn start(id: u8, vmcb: Vmcb, rbx: u64) -> ! {
        let index = usize::from(id);
        let (Some(slot), Some(save)) = (SLOTS.get(index), HOST_SAVES.get(index)) else {
            give_up(format_args!("more than {CPUS_MAX} cpus"));
        };
        let config = config();
        config.hpet.prepare(id);
        // SAFETY: a page that nothing else uses (AMD64 manual volume 2, 15.30.4).
        unsafe { Msr::new(VM_HSAVE_PA).write(save.0.get() as u64) };
        MAILBOXES[index].nmi.store(false, Ordering::Relaxed);
        // SAFETY: this CPU alone has this id; and if it was reset and comes for a second time, the reference of the first ended
        // with what it ran then.
        let slot = unsafe { &mut *slot.0.get() };
        let cpu = slot.write(Self {
            vmcb,
            registers: Registers {
                rbx,
                left: tsc(),
                hidden: if config.setup.is_hidden() {
                    u64::MAX
                } else {
                    0
                },
                ..Registers::default()
            },
            id,
            config,
            pmu: Pmu::new(config.setup, id),
            counted: tsc(),
            timer: None,
            nmis: Nmis::default(),
            halt: None,
            apic_base: apic::base(),
        });
        cpu.vmcb.msr_map = permissions();
        loop {
            cpu.turn();
        }
    }

    /// One turn of the guest, and what it asked for at its end.
    fn turn(&mut self) {
        self.enter();
        // SAFETY: the state is what a CPU can be in: made by `Vmcb`, and changed by the processor, and by an instruction's effects.
        // The guest is a kernel that uses the RAM that it is told of.
        unsafe { run_guest(&mut self.registers, &mut self.vmcb) };
        self.vmcb.event = 0;
        self.count();
        // In this order: an NMI that is sent after the mailbox was looked at ends the next turn.
        if self.vmcb.exit_code == code::NMI {
            take_nmi();
            // It may have been the timer's, and too early.
            self.timer = None;
        }
        let mailbox = &MAILBOXES[usize::from(self.id)];
        if mailbox.nmi.swap(false, Ordering::Acquire) {
            mark(Mark::Sent, self.id);
            self.nmis.raise();
        }
        exit::handle(self);
    }

    /// The time that the counters count: what the shim does for an instruction is that instruction's, unless it is hidden from the guest.
    fn now(&self) -> u64 {
        if self.config.setup.is_hidden() {
            self.registers.left.wrapping_add(self.vmcb.tsc_offset)
        } else {
            tsc()
        }
    }

    /// Lets the counters count what has passed since the last turn's end.
    fn count(&mut self) {
        let now = self.now();
        let cycles = now - self.counted;
        let happened = self.pmu.advance(cycles, self.halt.is_some());
        self.counted = now;
        match happened.overflow {
            Some(Delivery::Nmi) => mark(Mark::Counter, self.id),
            Some(Delivery::Dropped) => mark(Mark::Dropped, self.id),
            Some(Delivery::Masked) | None => {}
        }
        if happened.late {
            mark(Mark::Late, self.id);
        }
        if happened.nmi() {
            self.nmis.raise();
        }
    }

    /// Has the turn end at this time, unless the timer is set to it already: where an emulator counts instructions, each access to a device
    /// costs the CPU its place in the row.
    fn set_timer(&mut self, at: u64) {
        if self.timer != Some(at) {
            // What is hidden passes for the timer: it must not go off before the turn has begun.
            let hidden = if self.config.setup.is_hidden() {
                HIDDEN_MAX
            } else {
                0
            };
            let left = at.saturating_sub(self.now());
            self.config.hpet.set(self.id, left + hidden);
            self.timer = Some(at);
        }
    }

    /// Prepares the turn: what is injected, what ends it.
    fn enter(&mut self) {
        let busy = self.vmcb.event != 0;
        let entry = self.nmis.enter(busy);
        if entry.inject {
            self.vmcb.event = event::NMI;
            self.halt = None;
        }
        if self.nmis.is_due() {
            // As soon as the other event is delivered.
            apic::nmi(self.id);
        }
        let mut intercepts =
            intercept::NMI | intercept::CPUID | intercept::MSR | intercept::SHUTDOWN;
        intercepts |= match self.halt {
            Some(_) => intercept::INTERRUPT,
            None => intercept::HLT,
        };
        if entry.stop_at_iret {
            intercepts |= intercept::IRET;
        }
        self.vmcb.intercepts = intercepts;
        self.vmcb.exceptions = 0;
        if entry.step {
            self.vmcb.exceptions = intercept::DEBUG;
            self.vmcb.rflags |= TRAP;
        }
        if let Some(cycles) = self.pmu.until_interrupt(self.halt.is_some()) {
            self.set_timer(self.counted + cycles);
        }
    }
}

//! The local APIC of a CPU, in both of its forms (Intel SDM, volume 3, chapter 11): registers in memory (xAPIC), or
//! model-specific registers and 32-bit ids (x2APIC).

use super::vector;

/// How registers are reached.
pub trait LocalBus {
    /// Whether this is an x2APIC.
    fn x2(&self) -> bool;
    /// Reads the register at this xAPIC offset; an x2APIC has it at MSR 0x800 + offset / 16.
    fn read(&self, register: Register) -> u32;
    /// Writes a register.
    fn write(&self, register: Register, value: u32);
    /// Writes the interrupt command register of an x2APIC, all 64 bits at once.
    fn write_command(&self, value: u64);
    /// Writes the MSR IA32_TSC_DEADLINE, after all writes to registers in memory took effect.
    fn write_deadline(&self, tsc: u64);
}

/// A register, by its xAPIC offset (table 11-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Register {
    /// Id; in the upper 8 bits of an xAPIC's.
    Id = 0x020,
    /// Lowest priority class that is let through.
    TaskPriority = 0x080,
    /// End of interrupt.
    Eoi = 0x0b0,
    /// Spurious vector, and the software enable bit.
    Spurious = 0x0f0,
    /// Errors found; written before it is read.
    ErrorStatus = 0x280,
    /// Interrupt command, lower half.
    CommandLow = 0x300,
    /// Interrupt command, upper half; an xAPIC's only.
    CommandHigh = 0x310,
    /// Local vector of the timer.
    LvtTimer = 0x320,
    /// Local vector of the thermal sensor.
    LvtThermal = 0x330,
    /// Local vector of the performance counters.
    LvtCounters = 0x340,
    /// Local vector of input 0.
    LvtInput0 = 0x350,
    /// Local vector of input 1.
    LvtInput1 = 0x360,
    /// Local vector of errors.
    LvtError = 0x370,
    /// Timer, counts to go.
    TimerInitial = 0x380,
    /// Timer, counts left.
    TimerCurrent = 0x390,
    /// Timer, divisor.
    TimerDivide = 0x3e0,
    /// Version, and the number of local vectors.
    Version = 0x030,
}

impl Register {
    /// The MSR of an x2APIC.
    #[must_use]
    pub const fn msr(self) -> u32 {
        0x800 + (self as u32 >> 4)
    }
}

const MASKED: u32 = 1 << 16;
const DELIVER_NMI: u32 = 0b100 << 8;
const DELIVER_INIT: u32 = 0b101 << 8;
const DELIVER_STARTUP: u32 = 0b110 << 8;
const LEVEL_ASSERT: u32 = 1 << 14;
const DELIVERY_PENDING: u32 = 1 << 12;
const SOFTWARE_ENABLE: u32 = 1 << 8;
/// Number of the entry of the performance counters, from 0.
const COUNTERS_ENTRY: u32 = 4;
const TIMER_TSC_DEADLINE: u32 = 0b10 << 17;
const DIVIDE_BY_1: u32 = 0b1011;
/// Looks at the delivery status before a command is sent regardless; an idle bus delivers within a few.
const PATIENCE: u32 = 10_000;

/// A local APIC.
#[derive(Debug)]
pub struct LocalApic<B>(pub B);

impl<B: LocalBus> LocalApic<B> {
    /// Prepares this CPU's APIC: enabled, nothing masked by priority, inputs as the firmware tables say (`nmi_inputs`: bit 0
    /// and bit 1), everything else that could interrupt masked.
    pub fn enable(&self, nmi_inputs: u8) {
        let bus = &self.0;
        let count = (bus.read(Register::Version) >> 16 & 0xff) + 1;
        bus.write(Register::TaskPriority, 0);
        bus.write(Register::LvtTimer, MASKED | u32::from(vector::TIMER));
        for (register, needs, bit) in [(Register::LvtInput0, 1, 0), (Register::LvtInput1, 2, 1)] {
            if count > needs {
                let nmi = nmi_inputs >> bit & 1 == 1;
                bus.write(register, if nmi { DELIVER_NMI } else { MASKED });
            }
        }
        for (register, needs) in [(Register::LvtCounters, 4), (Register::LvtThermal, 5)] {
            if count > needs {
                bus.write(register, MASKED);
            }
        }
        bus.write(
            Register::Spurious,
            SOFTWARE_ENABLE | u32::from(vector::SPURIOUS),
        );
        bus.write(Register::LvtError, vector::ERROR.into());
        bus.write(Register::ErrorStatus, 0);
    }

    /// Whether there is an entry for the interrupt of performance counters.
    pub fn has_counters(&self) -> bool {
        (self.0.read(Register::Version) >> 16 & 0xff) >= COUNTERS_ENTRY
    }

    /// Makes the interrupt of performance counters an NMI, or masks it. It has masked itself when it was delivered (table 11-1,
    /// "Local Vector Table"). Only if there is such an entry.
    #[inline]
    pub fn counters(&self, unmasked: bool) {
        let entry = if unmasked { DELIVER_NMI } else { MASKED };
        self.0.write(Register::LvtCounters, entry);
    }

    /// This CPU's id.
    pub fn id(&self) -> u32 {
        let id = self.0.read(Register::Id);
        if self.0.x2() { id } else { id >> 24 }
    }

    /// Whether a CPU of this id can be addressed.
    pub fn reaches(&self, id: u32) -> bool {
        // 0xff is an xAPIC's broadcast.
        self.0.x2() || id < 0xff
    }

    /// Acknowledges the interrupt being served.
    pub fn end_of_interrupt(&self) {
        self.0.write(Register::Eoi, 0);
    }

    /// The errors found since the last look, a bit each (11.5.3).
    pub fn errors(&self) -> u32 {
        self.0.write(Register::ErrorStatus, 0);
        self.0.read(Register::ErrorStatus)
    }

    /// Interrupts another CPU.
    pub fn interrupt(&self, id: u32, vector: u8) {
        self.command(id, LEVEL_ASSERT | u32::from(vector));
    }

    /// Sends a CPU an NMI. That may be this one.
    pub fn nmi(&self, id: u32) {
        self.command(id, LEVEL_ASSERT | DELIVER_NMI);
    }

    /// Resets another CPU; it then waits to be started.
    pub fn init(&self, id: u32) {
        self.command(id, LEVEL_ASSERT | DELIVER_INIT);
    }

    /// Starts another CPU that waits for it, in real mode at the beginning of this page; only pages below 1 MiB can be
    /// said.
    pub fn start(&self, id: u32, page: u8) {
        self.command(id, LEVEL_ASSERT | DELIVER_STARTUP | u32::from(page));
    }

    fn command(&self, id: u32, low: u32) {
        if self.0.x2() {
            self.0.write_command(u64::from(id) << 32 | u64::from(low));
            return;
        }
        for _ in 0..PATIENCE {
            if self.0.read(Register::CommandLow) & DELIVERY_PENDING == 0 {
                break;
            }
            core::hint::spin_loop();
        }
        self.0.write(Register::CommandHigh, id << 24);
        self.0.write(Register::CommandLow, low);
    }

    /// Makes the timer ready for [`LocalApic::arm`].
    pub fn timer_enable(&self, mode: TimerMode) {
        let timer = match mode {
            TimerMode::Count { .. } => u32::from(vector::TIMER),
            TimerMode::Deadline => TIMER_TSC_DEADLINE | u32::from(vector::TIMER),
        };
        self.0.write(Register::TimerDivide, DIVIDE_BY_1);
        self.0.write(Register::LvtTimer, timer);
    }

    /// Lets the timer count down from its largest value without an interrupt, to have its rate measured.
    pub fn timer_measure(&self) {
        self.0
            .write(Register::LvtTimer, MASKED | u32::from(vector::TIMER));
        self.0.write(Register::TimerDivide, DIVIDE_BY_1);
        self.0.write(Register::TimerInitial, u32::MAX);
    }

    /// Counts since [`LocalApic::timer_measure`].
    pub fn timer_counted(&self) -> u32 {
        u32::MAX - self.0.read(Register::TimerCurrent)
    }

    /// Asks for the timer's interrupt when the TSC reaches `at`; it stands at `now`. A time that passed interrupts at once; one
    /// too far for the counter interrupts early, and the caller arms again.
    pub fn arm(&self, mode: TimerMode, now: u64, at: u64) {
        match mode {
            // Writing 0 would disarm.
            TimerMode::Deadline => self.0.write_deadline(at.max(1)),
            TimerMode::Count { hz, tsc_hz } => {
                let ticks = u128::from(at.saturating_sub(now));
                let counts = (ticks * u128::from(hz)).div_ceil(u128::from(tsc_hz.max(1)));
                let counts = u32::try_from(counts).unwrap_or(u32::MAX).max(1);
                self.0.write(Register::TimerInitial, counts);
            }
        }
    }
}

/// What the timer counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerMode {
    /// Its own clock, at `hz`, while the TSC runs at `tsc_hz`.
    Count {
        /// Counts in a second.
        hz: u64,
        /// TSC ticks in a second.
        tsc_hz: u64,
    },
    /// The TSC itself.
    Deadline,
}

/// What a device writes to interrupt the CPU with this APIC id: an address, and the data. The interrupt is an edge, of fixed delivery to
/// one CPU (Intel SDM volume 3, "Message Signalled Interrupts").
#[must_use]
pub const fn message(apic_id: u8, vector: u8) -> (u64, u64) {
    (0xfee0_0000 | (apic_id as u64) << 12, vector as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::RefCell;
    use std::collections::HashMap;

    /// An APIC that faults where real ones do, and delivers slowly.
    #[derive(Default)]
    struct Fake {
        x2: bool,
        vectors: u32,
        stuck: bool,
        registers: RefCell<HashMap<Register, u32>>,
        busy: RefCell<u32>,
        sent: RefCell<Vec<(u32, u32)>>,
        deadline: RefCell<Option<u64>>,
    }

    impl LocalBus for Fake {
        fn x2(&self) -> bool {
            self.x2
        }
        fn read(&self, register: Register) -> u32 {
            let value = *self.registers.borrow().get(&register).unwrap_or(&0);
            match register {
                Register::Id if self.x2 => 0x1234,
                Register::Id => 0x0700_0000,
                Register::Version => (self.vectors - 1) << 16 | 0x14,
                Register::CommandLow => {
                    assert!(!self.x2, "nothing to wait for in an x2APIC");
                    let mut busy = self.busy.borrow_mut();
                    *busy = busy.saturating_sub(1);
                    if self.stuck || *busy > 0 {
                        value | DELIVERY_PENDING
                    } else {
                        value
                    }
                }
                Register::Eoi => panic!("write-only"),
                _ => value,
            }
        }
        fn write(&self, register: Register, value: u32) {
            match register {
                Register::Id | Register::Version | Register::TimerCurrent => panic!("read-only"),
                Register::CommandHigh => assert!(!self.x2, "#GP: no such MSR"),
                Register::Eoi => assert_eq!(value, 0, "#GP"),
                Register::CommandLow => {
                    assert!(!self.x2, "half a command");
                    assert!(
                        self.stuck || *self.busy.borrow() <= 1,
                        "the last command is on its way"
                    );
                    *self.busy.borrow_mut() = 5;
                    let high = self.read(Register::CommandHigh);
                    self.sent.borrow_mut().push((high >> 24, value));
                }
                Register::LvtCounters => assert!(self.vectors > 4, "no such register"),
                Register::LvtThermal => assert!(self.vectors > 5, "no such register"),
                Register::LvtTimer
                | Register::LvtInput0
                | Register::LvtInput1
                | Register::LvtError => {
                    // A local vector that is not masked while the APIC is software-disabled stays masked.
                    let enabled = self.read(Register::Spurious) & SOFTWARE_ENABLE != 0;
                    assert!(
                        register != Register::LvtError || enabled || value & MASKED != 0,
                        "write lost"
                    );
                }
                _ => {}
            }
            self.registers.borrow_mut().insert(register, value);
        }
        fn write_command(&self, value: u64) {
            assert!(self.x2, "#GP");
            self.sent
                .borrow_mut()
                .push(((value >> 32) as u32, value as u32));
        }
        fn write_deadline(&self, tsc: u64) {
            assert_ne!(tsc, 0, "disarms");
            *self.deadline.borrow_mut() = Some(tsc);
        }
    }

    fn fakes() -> [LocalApic<Fake>; 2] {
        [false, true].map(|x2| {
            LocalApic(Fake {
                x2,
                vectors: 6,
                ..Fake::default()
            })
        })
    }

    #[test]
    fn a_message_names_the_cpu_and_the_vector() {
        assert_eq!(message(0, 0x48), (0xfee0_0000, 0x48));
        assert_eq!(message(0xab, vector::LINES), (0xfeea_b000, 0x30));
    }

    #[test]
    fn both_kinds_send_the_same_commands() {
        for apic in fakes() {
            apic.init(9);
            apic.start(9, 8);
            apic.interrupt(9, vector::KICK);
            apic.nmi(9);
            let sent = apic.0.sent.borrow();
            assert_eq!(*sent, [(9, 0x4500), (9, 0x4608), (9, 0x40f0), (9, 0x4400)]);
        }
    }

    #[test]
    fn ids_have_the_width_of_their_kind() {
        let [x, x2] = fakes();
        assert_eq!((x.id(), x2.id()), (7, 0x1234));
        assert!(x.reaches(0xfe) && !x.reaches(0xff) && !x.reaches(0x100) && x2.reaches(0x1_0000));
    }

    #[test]
    fn a_stuck_delivery_does_not_hang() {
        let apic = LocalApic(Fake {
            vectors: 6,
            stuck: true,
            ..Fake::default()
        });
        apic.nmi(9);
        assert_eq!(*apic.0.sent.borrow(), [(9, 0x4400)]);
    }

    #[test]
    fn only_the_registers_there_are_get_touched() {
        for vectors in 3..=6 {
            let apic = LocalApic(Fake {
                vectors,
                ..Fake::default()
            });
            apic.enable(2);
            let register = |r| apic.0.read(r);
            assert_eq!(register(Register::Spurious), 0x1ff);
            assert_eq!(
                register(Register::LvtInput1),
                if vectors > 2 { 0x400 } else { 0 }
            );
            assert_eq!(register(Register::LvtInput0), MASKED);
            assert_eq!(register(Register::LvtError), vector::ERROR.into());
            assert_ne!(register(Register::LvtTimer) & MASKED, 0);
        }
    }

    #[test]
    fn the_counters_interrupt_by_nmi_where_there_is_an_entry() {
        for vectors in 4..=6 {
            let apic = LocalApic(Fake {
                vectors,
                ..Fake::default()
            });
            assert_eq!(apic.has_counters(), vectors > 4);
            if apic.has_counters() {
                let entry = || apic.0.registers.borrow()[&Register::LvtCounters];
                apic.counters(true);
                assert_eq!(entry(), 0x400);
                apic.counters(false);
                assert_eq!(entry(), 0x1_0000);
            }
        }
    }

    #[test]
    fn the_deadline_is_never_a_disarm() {
        let [_, apic] = fakes();
        apic.timer_enable(TimerMode::Deadline);
        assert_eq!(apic.0.read(Register::LvtTimer), 0x400f1);
        apic.arm(TimerMode::Deadline, 5, 0);
        assert_eq!(*apic.0.deadline.borrow(), Some(1));
    }

    proptest! {
        #[test]
        fn the_count_reaches_the_time_and_is_never_zero(
            hz in 1_000_000u64..5_000_000_000, tsc_hz in 1_000_000u64..5_000_000_000, now in 0u64..1 << 50, ahead in -1000i64..1 << 40
        ) {
            let [apic, _] = fakes();
            let mode = TimerMode::Count { hz, tsc_hz };
            apic.timer_enable(mode);
            apic.arm(mode, now, now.saturating_add_signed(ahead));
            let counts = u128::from(apic.0.read(Register::TimerInitial));
            prop_assert!(counts > 0);
            let ticks = counts * u128::from(tsc_hz) / u128::from(hz);
            let reached = i128::try_from(ticks).unwrap() >= i128::from(ahead) - i128::from(tsc_hz / hz) - 1;
            prop_assert!(reached || counts == u128::from(u32::MAX));
        }
    }
}

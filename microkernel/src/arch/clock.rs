//! Clocks of known rate. [`kcore::boot::calibrate`] measures the time-stamp counter and the APIC's timer against them.

use super::cpu::tsc;
use super::sampling::HpetRegisters;
use kcore::apic::local::{LocalApic, LocalBus};
use kcore::boot::calibrate::{self, Counters, Measured};
use kcore::boot::tsc::{Error, Reference};
use x86_64::instructions::port::Port;

/// A clock of known rate.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// The HPET's main counter.
    Hpet(HpetRegisters, Reference),
    /// The power management timer, at this port.
    PmTimer(u16, Reference),
    /// Channel 2 of the interval timer.
    Pit,
}

const HPET_CONFIGURATION: u64 = 0x10;
const HPET_COUNTER: u64 = 0xf0;

fn port_write(port: u16, value: u8) {
    // SAFETY: only ports of the interval timer are written here; it touches no memory.
    unsafe { Port::new(port).write(value) };
}

fn port_read(port: u16) -> u8 {
    // SAFETY: as above, for reading.
    unsafe { Port::new(port).read() }
}

impl Clock {
    /// The HPET behind these registers, set running.
    #[must_use]
    pub fn hpet(registers: HpetRegisters) -> Option<Self> {
        let capabilities = u64::from(registers.read(4)) << 32 | u64::from(registers.read(0));
        let reference = kcore::boot::acpi::hpet::reference(capabilities)?;
        registers.write(HPET_CONFIGURATION, registers.read(HPET_CONFIGURATION) | 1);
        // Only the lower half is read: two reads could straddle a carry.
        Some(Self::Hpet(
            registers,
            Reference {
                bits: 32,
                ..reference
            },
        ))
    }

    /// The registers and the rate of an HPET.
    #[must_use]
    pub const fn as_hpet(self) -> Option<(HpetRegisters, u64)> {
        match self {
            Self::Hpet(registers, reference) => Some((registers, reference.hz)),
            Self::PmTimer(..) | Self::Pit => None,
        }
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hpet(..) => "HPET",
            Self::PmTimer(..) => "ACPI timer",
            Self::Pit => "PIT",
        }
    }

    const fn reference(self) -> Reference {
        match self {
            Self::Hpet(_, reference) | Self::PmTimer(_, reference) => reference,
            Self::Pit => Reference {
                hz: 1_193_182,
                bits: 16,
            },
        }
    }

    /// Makes it count, where it must be told to.
    fn start(self) {
        if let Self::Pit = self {
            // Gate on, speaker off; then mode 0 (count down once), both bytes (Intel 8254 datasheet).
            port_write(0x61, port_read(0x61) & !2 | 1);
            port_write(0x43, 0b1011_0000);
            port_write(0x42, 0xff);
            port_write(0x42, 0xff);
        }
    }

    /// Its count, upwards.
    fn read(self) -> u64 {
        match self {
            Self::Hpet(registers, _) => registers.read(HPET_COUNTER).into(),
            // SAFETY: reading a timer changes nothing.
            Self::PmTimer(port, _) => u64::from(unsafe { Port::<u32>::new(port).read() }),
            Self::Pit => {
                port_write(0x43, 0b1000_0000);
                let low = port_read(0x42);
                u64::from(u16::MAX - u16::from_le_bytes([low, port_read(0x42)]))
            }
        }
    }

    /// Measures against this clock.
    ///
    /// # Errors
    /// When it is of no use.
    pub fn measure<B: LocalBus>(self, apic: &LocalApic<B>) -> Result<Measured, Error> {
        self.start();
        apic.timer_measure();
        calibrate::measure(&Bench { clock: self, apic }, self.reference())
    }
}

/// The counters side by side.
struct Bench<'a, B> {
    clock: Clock,
    apic: &'a LocalApic<B>,
}

impl<B: LocalBus> Counters for Bench<'_, B> {
    fn tsc(&self) -> u64 {
        tsc()
    }
    fn reference(&self) -> u64 {
        self.clock.read()
    }
    fn apic_timer(&self) -> u64 {
        self.apic.timer_counted().into()
    }
}

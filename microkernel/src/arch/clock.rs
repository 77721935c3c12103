//! Clocks of known rate, and the measurement of the time-stamp counter and the APIC's timer against the best of them.

use super::cpu::tsc;
use super::devices::Registers;
use kcore::apic::local::{LocalApic, LocalBus};
use kcore::boot::tsc::{Error, Look, Rate, Reference, rate, rate_of};
use x86_64::instructions::port::Port;

/// Milliseconds that a measurement takes: its error is the duration of a look divided by this.
const WINDOW_MS: u64 = 3;
/// Looks taken at each end; the quickest counts.
const LOOKS: u32 = 8;
/// Reads after which a clock that has not moved far enough has stopped.
const PATIENCE: u32 = 10_000_000;
/// Error, in parts per million, that is good enough not to measure again.
const GOOD_PPM: u64 = 300;

/// A clock of known rate.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// The HPET's main counter.
    Hpet(Registers, Reference),
    /// The power management timer, at this port.
    PmTimer(u16, Reference),
    /// Channel 2 of the interval timer.
    Pit,
}

/// What was measured.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// The TSC.
    pub tsc: Rate,
    /// The APIC timer's counts in a second; `None` if it does not count.
    pub apic_timer: Option<u64>,
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
    pub fn hpet(registers: Registers) -> Option<Self> {
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
        let first = self.measure_once(apic)?;
        if first.tsc.error_ppm <= GOOD_PPM {
            return Ok(first);
        }
        // Something held the machine up, as happens to virtual ones: once more, and the better one counts.
        let second = self.measure_once(apic)?;
        Ok(if second.tsc.error_ppm < first.tsc.error_ppm {
            second
        } else {
            first
        })
    }

    fn measure_once<B: LocalBus>(self, apic: &LocalApic<B>) -> Result<Measured, Error> {
        let reference = self.reference();
        let mask = u64::MAX >> (64 - reference.bits);
        let counts = (reference.hz * WINDOW_MS / 1000).max(1);
        self.start();
        apic.timer_measure();
        let timer_start = look(|| apic.timer_counted().into());
        let start = look(|| self.read());
        let reached = (0..PATIENCE).any(|_| self.read().wrapping_sub(start.count) & mask >= counts);
        if !reached {
            return Err(Error::Stopped);
        }
        let end = look(|| self.read());
        let timer_end = look(|| apic.timer_counted().into());
        let tsc = rate(start, end, reference)?;
        Ok(Measured {
            tsc,
            apic_timer: rate_of(timer_start, timer_end, tsc.hz),
        })
    }
}

/// The quickest of some looks at a counter.
fn look(counter: impl Fn() -> u64) -> Look {
    let once = || {
        let before = tsc();
        let count = counter();
        Look {
            before,
            count,
            after: tsc(),
        }
    };
    (1..LOOKS).fold(once(), |best, _| {
        let next = once();
        if next.width() < best.width() {
            next
        } else {
            best
        }
    })
}

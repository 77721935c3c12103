//! Which clock to believe.

use crate::arch::apic::Local;
use crate::arch::clock::Clock;
use crate::arch::cpu::tsc;
use crate::fatal::refuse;
use crate::log::{detail, notice};
use kcore::apic::local::{LocalApic, TimerMode};

/// How fast this machine's own counters run.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// TSC ticks in a second.
    pub tsc_hz: u64,
    /// What the APIC timers count.
    pub timer: TimerMode,
}

/// Measures against the first clock that works, best first.
pub fn measure(clocks: [Option<Clock>; 3], local: &LocalApic<Local>, deadline: bool) -> Rates {
    let began = tsc();
    for clock in clocks.into_iter().flatten() {
        let measured = match clock.measure(local) {
            Ok(measured) => measured,
            Err(error) => {
                notice(format_args!("the {} is of no use: {error:?}", clock.name()));
                continue;
            }
        };
        let tsc_hz = measured.tsc.hz;
        detail(format_args!(
            "tsc: {} kHz by the {}, within {} ppm, in {} us",
            tsc_hz / 1000,
            clock.name(),
            measured.tsc.error_ppm,
            (tsc() - began) * 1_000_000 / tsc_hz
        ));
        let timer = match measured.apic_timer {
            _ if deadline => TimerMode::Deadline,
            Some(hz) => TimerMode::Count { hz, tsc_hz },
            None => refuse(format_args!("no usable clock: the APIC timer stands still")),
        };
        return Rates { tsc_hz, timer };
    }
    refuse(format_args!(
        "no usable clock: neither HPET nor ACPI timer nor PIT counts"
    ))
}

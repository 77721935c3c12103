//! The timer that ends the guest's turn: one of the HPET for each CPU, which sends it an NMI by a message (IA-PC HPET
//! specification 1.0a, 2.3.8 and 2.3.9).

use crate::memory::Device;
use crate::report::give_up;
use core::arch::x86_64::_rdtsc;

const CAPABILITIES: u32 = 0x000;
const CONFIGURATION: u32 = 0x010;
const COUNTER: u32 = 0x0f0;
const TIMERS: u32 = 0x100;
const TIMER_BYTES: u32 = 0x20;
const COMPARATOR: u32 = 0x08;
const MESSAGE_DATA: u32 = 0x10;
const MESSAGE_ADDRESS: u32 = 0x14;

const COUNT: u32 = 1 << 0;
/// Of a timer: interrupts on, 32 bits, by message; and whether it can do that.
const ENABLED: u32 = 1 << 2;
const NARROW: u32 = 1 << 8;
const BY_MESSAGE: u32 = 1 << 14;
const CAN_MESSAGE: u32 = 1 << 15;

/// Of a message: an NMI, to the CPU with this id (SDM volume 3A, "Message Signalled Interrupts").
const NMI: u32 = 0b100 << 8;
const APIC: u32 = 0xfee0_0000;
const DESTINATION: u32 = 12;

/// Counts over which the time-stamp counter's rate is measured: a millisecond of QEMU's.
const MEASURED: u32 = 100_000;
/// Most counts that a timer is set to: a quarter of what it has. QEMU takes half of it for a time that has passed.
const COUNTS_MAX: u64 = 1 << 30;

/// The HPET, and how it compares with the time-stamp counter.
#[derive(Clone, Copy, Debug)]
pub struct Hpet {
    device: Device,
    /// Counts in 2^32 ticks.
    counts: u64,
}

impl Hpet {
    /// Sets it running.
    pub fn new(device: Device) -> Self {
        device.write(CONFIGURATION, COUNT);
        let (start, began) = (device.read(COUNTER), tsc());
        let counted = loop {
            let counted = device.read(COUNTER).wrapping_sub(start);
            if counted >= MEASURED {
                break counted;
            }
        };
        let ticks = tsc() - began;
        Self {
            device,
            counts: (u64::from(counted) << 32) / ticks.max(1),
        }
    }

    /// Gives the CPU with this id its timer, which is not set.
    pub fn prepare(&self, cpu: u8) {
        let timer = timer(cpu);
        let last = self.device.read(CAPABILITIES) >> 8 & 0x1f;
        if u32::from(cpu) > last || self.device.read(timer) & CAN_MESSAGE == 0 {
            give_up(format_args!(
                "the HPET has no timer for cpu {cpu} that sends messages"
            ));
        }
        self.device.write(timer + MESSAGE_DATA, NMI);
        self.device.write(
            timer + MESSAGE_ADDRESS,
            APIC | u32::from(cpu) << DESTINATION,
        );
        let now = self.device.read(COUNTER);
        self.device.write(timer + COMPARATOR, now.wrapping_sub(1));
        self.device.write(timer, ENABLED | NARROW | BY_MESSAGE);
    }

    /// Sends the CPU an NMI after so many ticks of the time-stamp counter, rounded up, or sooner if that is too far.
    pub fn set(&self, cpu: u8, ticks: u64) {
        let counts = (u128::from(ticks) * u128::from(self.counts)).div_ceil(1 << 32);
        let counts = counts.min(u128::from(COUNTS_MAX)) as u32;
        let now = self.device.read(COUNTER);
        self.device
            .write(timer(cpu) + COMPARATOR, now.wrapping_add(counts));
    }
}

const fn timer(cpu: u8) -> u32 {
    TIMERS + cpu as u32 * TIMER_BYTES
}

/// The time-stamp counter.
pub fn tsc() -> u64 {
    // SAFETY: every processor with SVM has one.
    unsafe { _rdtsc() }
}

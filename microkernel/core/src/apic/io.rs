//! An I/O APIC: which interrupt line goes to which CPU, with which vector (Intel 82093AA datasheet, 3.2).

use crate::boot::acpi::madt::Wiring;

/// How registers are reached: by an index register and a data register, so not by two CPUs at a time.
pub trait IoBus {
    /// Reads a register.
    fn read(&self, index: u8) -> u32;
    /// Writes a register.
    fn write(&self, index: u8, value: u32);
}

const VERSION: u8 = 0x01;
const REDIRECTIONS: u8 = 0x10;
/// Redirection entries whose registers an 8-bit index can name.
const ENTRIES_MAX: u32 = 120;

const DELIVER_NMI: u32 = 0b100 << 8;
const ACTIVE_LOW: u32 = 1 << 13;
const LEVEL: u32 = 1 << 15;
const MASKED: u32 = 1 << 16;

/// An I/O APIC and the global interrupts it serves.
#[derive(Debug)]
pub struct IoApic<B> {
    bus: B,
    first: u32,
    count: u32,
}

impl<B: IoBus> IoApic<B> {
    /// The I/O APIC behind `bus`, whose first global interrupt is `first`. All its lines are masked.
    pub fn new(bus: B, first: u32) -> Self {
        let count = ((bus.read(VERSION) >> 16 & 0xff) + 1).min(ENTRIES_MAX);
        let io_apic = Self { bus, first, count };
        for global in first..first.saturating_add(count) {
            io_apic.mask(global);
        }
        io_apic
    }

    /// One past its last global interrupt.
    pub const fn end(&self) -> u32 {
        self.first.saturating_add(self.count)
    }

    /// Whether it serves a global interrupt.
    pub const fn serves(&self, global: u32) -> bool {
        self.first <= global && global < self.end()
    }

    fn entry(&self, global: u32) -> Option<u8> {
        let entry = global.checked_sub(self.first).filter(|&e| e < self.count)?;
        u8::try_from(entry)
            .ok()
            .map(|entry| REDIRECTIONS + 2 * entry)
    }

    /// Masks a line. One that is not served is left alone.
    pub fn mask(&self, global: u32) {
        if let Some(low) = self.entry(global) {
            self.bus.write(low, self.bus.read(low) | MASKED);
        }
    }

    /// Makes a line's edges NMIs of a CPU, by its 8-bit APIC id. One that is not served is left alone.
    pub fn unmask_as_nmi(&self, global: u32, apic_id: u8) {
        if let Some(low) = self.entry(global) {
            self.bus.write(low, DELIVER_NMI | MASKED);
            self.bus.write(low + 1, u32::from(apic_id) << 24);
            self.bus.write(low, DELIVER_NMI);
        }
    }

    /// Routes a line to a CPU by its 8-bit APIC id, and unmasks it. One that is not served is left alone.
    pub fn unmask(&self, global: u32, wiring: Wiring, vector: u8, apic_id: u8) {
        let Some(low) = self.entry(global) else {
            return;
        };
        let value = u32::from(vector)
            | if wiring.low { ACTIVE_LOW } else { 0 }
            | if wiring.level { LEVEL } else { 0 };
        // Masked first: a half-written entry must not deliver.
        self.bus.write(low, value | MASKED);
        self.bus.write(low + 1, u32::from(apic_id) << 24);
        self.bus.write(low, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::collections::HashMap;

    /// Delivery status and remote IRR are read-only and set at odd times; reserved bits read as junk.
    struct Fake(RefCell<HashMap<u8, u32>>, u32);

    impl IoBus for Fake {
        fn read(&self, index: u8) -> u32 {
            match index {
                VERSION => (self.1 - 1) << 16 | 0x20,
                _ => self.0.borrow().get(&index).unwrap_or(&0) | 1 << 12 | 1 << 14,
            }
        }
        fn write(&self, index: u8, value: u32) {
            assert!(index >= REDIRECTIONS, "no such register");
            if index.is_multiple_of(2) && value & MASKED == 0 {
                assert!(
                    self.0.borrow().contains_key(&(index + 1)),
                    "unmasked before it was routed"
                );
            }
            self.0.borrow_mut().insert(index, value);
        }
    }

    fn io_apic(first: u32, count: u32) -> IoApic<Fake> {
        IoApic::new(Fake(RefCell::default(), count), first)
    }

    fn entry(io_apic: &IoApic<Fake>, entry: u8) -> (u32, u32) {
        let registers = io_apic.bus.0.borrow();
        let get = |index| *registers.get(&index).unwrap_or(&0);
        (
            get(REDIRECTIONS + 2 * entry) & !(1 << 12 | 1 << 14),
            get(REDIRECTIONS + 2 * entry + 1),
        )
    }

    #[test]
    fn lines_begin_masked_and_go_where_they_are_sent() {
        let io_apic = io_apic(24, 24);
        assert!((0..24).all(|e| entry(&io_apic, e).0 & MASKED != 0));
        io_apic.unmask(27, Wiring::PCI, 0x4b, 5);
        assert_eq!(entry(&io_apic, 3), (0x4b | ACTIVE_LOW | LEVEL, 5 << 24));
        io_apic.unmask(28, Wiring::ISA, 0x4c, 0);
        assert_eq!(entry(&io_apic, 4), (0x4c, 0));
        io_apic.mask(27);
        assert_eq!(entry(&io_apic, 3).0, 0x4b | ACTIVE_LOW | LEVEL | MASKED);
    }

    #[test]
    fn lines_of_others_are_left_alone() {
        let io_apic = io_apic(24, 24);
        assert!(
            io_apic.serves(24) && io_apic.serves(47) && !io_apic.serves(23) && !io_apic.serves(48)
        );
        let before = io_apic.bus.0.borrow().clone();
        for line in [0, 23, 48, 300, u32::MAX] {
            io_apic.unmask(line, Wiring::ISA, 0x40, 0);
            io_apic.mask(line);
        }
        assert_eq!(before, *io_apic.bus.0.borrow());
    }

    #[test]
    fn an_impossible_number_of_lines_is_cut() {
        assert_eq!(io_apic(0, 256).end(), ENTRIES_MAX);
        assert_eq!(io_apic(u32::MAX - 1, 24).end(), u32::MAX);
    }
}

//! Functions for tests, hostile on purpose: registers may be stuck, lists may go in circles, and whatever a function says of itself may be
//! wrong.

use std::collections::BTreeMap;

use super::{Address, BARS, COMMAND, Config};

/// A place on the first bus.
pub const fn at(device: u8) -> Address {
    Address {
        bus: 0,
        device,
        function: 0,
    }
}

/// One function.
#[derive(Clone, Debug)]
pub struct FakeFunction {
    /// Its 256 bytes, by words.
    pub words: [u32; 64],
    /// Bits that can be written, by words.
    pub writable: [u32; 64],
}

impl FakeFunction {
    /// A function that has nothing but an identity.
    pub fn new(vendor: u16, device: u16) -> Self {
        let mut function = Self {
            words: [0; 64],
            writable: [0; 64],
        };
        function.words[0] = u32::from(device) << 16 | u32::from(vendor);
        function.writable[1] = 0x0547;
        function.writable[usize::from(super::INTERRUPT / 4)] = 0xff;
        function
    }

    /// A network card as QEMU has it: BAR 0 of ports, BAR 1 with the table of 3 messages, BAR 4 of 64 bits with the registers.
    pub fn network_card() -> Self {
        let mut card = Self::new(0x1af4, 0x1000);
        card.bar(0, 0xc001, 0xffff_ffe0 | 1);
        card.bar(1, 0xfebf_1000, 0xffff_f000);
        card.bar(4, 0xfe00_000c, 0xffff_c00c);
        card.writable[usize::from(BARS / 4) + 5] = !0;
        card.capabilities(&[
            (0x98, &[0x0002_0011, 0x0000_0001, 0x0000_0801]),
            (0x84, &[0x0514_0009, 0, 0, 0, 0]),
            (0x40, &[0x0110_0009, 0x0000_0004, 0, 0x1000]),
        ]);
        card.writable[0x98 / 4] = 0xc000_0000;
        card.writable[0x88 / 4] = !0;
        card.words[usize::from(super::INTERRUPT / 4)] = 0x010b;
        card
    }

    /// Sets a base address register, and which of its bits can be set or are always.
    pub fn bar(&mut self, index: usize, value: u32, mask: u32) {
        let word = usize::from(BARS / 4) + index;
        self.words[word] = value;
        self.writable[word] = if value & 1 == 1 {
            mask & !3
        } else {
            mask & !0xf
        };
    }

    /// Makes a list of capabilities: where, and their words, in whose first the next one's place is filled in.
    pub fn capabilities(&mut self, list: &[(u8, &[u32])]) {
        self.words[1] |= 1 << 20;
        let mut link = usize::from(super::CAPABILITIES / 4);
        let mut shift = 0;
        for &(offset, words) in list {
            self.words[link] |= u32::from(offset) << shift;
            let first = usize::from(offset / 4);
            self.words[first..first + words.len()].copy_from_slice(words);
            (link, shift) = (first, 8);
        }
    }
}

/// What was asked of the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    pub at: Address,
    pub offset: u8,
    pub value: u32,
}

/// All functions there are.
#[derive(Clone, Debug, Default)]
pub struct FakeBus {
    pub functions: BTreeMap<Address, FakeFunction>,
    /// Reads of any function.
    pub reads: usize,
    /// Every write, in order.
    pub writes: Vec<Write>,
    /// What was stored to registers, and where.
    pub stored: Vec<(u64, Vec<u32>)>,
}

impl FakeBus {
    /// A bus with a host bridge, and this function in place 3.
    pub fn with(function: FakeFunction) -> Self {
        let mut bus = Self::default();
        let mut bridge = FakeFunction::new(0x8086, 0x1237);
        bridge.words[2] = 0x0600_0002;
        bus.functions.insert(at(0), bridge);
        bus.functions.insert(at(3), function);
        bus
    }

    /// Keeps what was stored.
    pub fn store(&mut self, address: u64, words: &[u32]) {
        self.stored.push((address, words.to_vec()));
    }

    /// The command register of the function in place 3.
    pub fn command(&self) -> u32 {
        self.functions[&at(3)].words[1] & 0xffff
    }
}

impl Config for FakeBus {
    fn read_config(&mut self, at: Address, offset: u8) -> u32 {
        self.reads += 1;
        let function = self.functions.get(&at);
        function.map_or(!0, |function| function.words[usize::from(offset / 4)])
    }

    fn write_config(&mut self, at: Address, offset: u8, value: u32) {
        self.writes.push(Write { at, offset, value });
        let Some(function) = self.functions.get_mut(&at) else {
            return;
        };
        let word = usize::from(offset / 4);
        let mask = function.writable[word];
        let held = &mut function.words[word];
        *held = *held & !mask | value & mask;
        if offset == COMMAND {
            // The status is cleared by ones, but for the bits that say what the function is.
            *held &= !(value & 0xf900_0000);
        }
    }
}

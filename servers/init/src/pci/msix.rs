//! MSI-X: interrupts that the function sends by writing to memory (PCI, 6.8.2).
//!
//! What it writes, and where, is in a table among its own registers. A driver that could write there could send any
//! interrupt to any CPU, so it gets no page of the table.

use alloc::vec::Vec;

use super::bar::Bar;
use super::capability::Capability;
use super::function::Unusable;
use super::{Address, Config};

/// Message control, seen with the capability's head before it.
const ENABLE: u32 = 1 << 31;
const MASK_ALL: u32 = 1 << 30;
const LAST_ENTRY: u32 = 0x7ff << 16;
/// Words of an entry: address, its upper half, data, and control, whose lowest bit masks it.
const ENTRY_WORDS: u64 = 4;
const ENTRY_BYTES: u64 = ENTRY_WORDS * 4;
const MASKED: [u32; 4] = [0, 0, 0, 1];

/// What a device writes, and where, to signal an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Physical address.
    pub address: u64,
    /// What is written.
    pub data: u32,
}

impl Message {
    const fn entry(self) -> [u32; 4] {
        [
            self.address as u32,
            (self.address >> 32) as u32,
            self.data,
            0,
        ]
    }
}

/// Physical addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first.
    pub base: u64,
    /// How many.
    pub bytes: u64,
}

/// Where a function has its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Msix {
    /// Offset of the capability.
    capability: u8,
    /// Entries: 1 to 2048.
    pub entries: u16,
    /// The table.
    pub table: Span,
    /// The bits of messages that wait, which nobody else may write either.
    pub pending: Span,
}

impl Msix {
    /// Reads the capability.
    ///
    /// # Errors
    /// [`Unusable::BadTable`], if the table is not in registers that the function has.
    pub fn read(
        config: &mut impl Config,
        at: Address,
        capability: Capability,
        bars: &[Bar],
    ) -> Result<Self, Unusable> {
        let offset = capability.offset;
        let word = |number: u8| offset.checked_add(4 * number).ok_or(Unusable::BadTable);
        let head = config.read_config(at, offset);
        let entries = ((head & LAST_ENTRY) >> 16) as u16 + 1;
        let table = config.read_config(at, word(1)?);
        let pending = config.read_config(at, word(2)?);
        let pending_bytes = u64::from(entries).div_ceil(64) * 8;
        Ok(Self {
            capability: offset,
            entries,
            table: place(table, u64::from(entries) * ENTRY_BYTES, bars)?,
            pending: place(pending, pending_bytes, bars)?,
        })
    }

    /// Turns messages off.
    pub fn disable(&self, config: &mut impl Config, at: Address) {
        self.control(config, at, ENABLE | MASK_ALL, MASK_ALL);
    }

    /// Turns messages on.
    pub fn enable(&self, config: &mut impl Config, at: Address) {
        self.control(config, at, ENABLE | MASK_ALL, ENABLE);
    }

    fn control(&self, config: &mut impl Config, at: Address, clear: u32, set: u32) {
        let old = config.read_config(at, self.capability);
        config.write_config(at, self.capability, old & !clear | set);
    }

    /// What the whole table is to hold: these messages, and nothing behind them.
    #[must_use]
    pub fn words(&self, messages: &[Message]) -> Vec<u32> {
        let given = messages.iter().copied().map(Message::entry);
        let entries = given.chain(core::iter::repeat(MASKED));
        entries.take(self.entries.into()).flatten().collect()
    }
}

/// The place that a word of the capability names: the number of a base address register in its lowest three bits, and an offset.
fn place(word: u32, bytes: u64, bars: &[Bar]) -> Result<Span, Unusable> {
    let (index, offset) = ((word & 7) as u8, u64::from(word & !7));
    let bar = bars.iter().find(|bar| bar.index == index);
    let bar = bar.ok_or(Unusable::BadTable)?;
    if offset + bytes > bar.bytes {
        return Err(Unusable::BadTable);
    }
    let base = bar.base + offset;
    Ok(Span { base, bytes })
}

//! Base address registers: where a function's registers lie, and how many there are.

use alloc::vec::Vec;

use ipc::abi::layout::PHYSICAL_END;

use super::function::Unusable;
use super::{Address, BARS, Command, Config, command};

/// How many base address registers a function has.
const COUNT: u8 = 6;

/// Low bits of a base address register (PCI, 6.2.5.1).
const IS_PORTS: u32 = 1;
const KIND: u32 = 3 << 1;
const KIND_32: u32 = 0;
const KIND_64: u32 = 2 << 1;
const FLAGS: u32 = 0xf;

/// Registers in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Number of the base address register, 0 to 5.
    pub index: u8,
    /// Physical address.
    pub base: u64,
    /// Bytes: a power of two.
    pub bytes: u64,
}

impl Bar {
    /// Where it ends.
    const fn end(&self) -> u64 {
        self.base + self.bytes
    }
}

/// Measures the registers in memory. Those behind I/O ports are left out. The function answers at no address meanwhile, or afterwards.
///
/// # Errors
/// [`Unusable`], if a register has no address, an impossible one, or one in another's, or does not keep it.
pub fn measure(config: &mut impl Config, at: Address) -> Result<Vec<Bar>, Unusable> {
    command(
        config,
        at,
        Command::PORTS | Command::MEMORY | Command::BUS_MASTER,
        Command::empty(),
    );
    let mut bars: Vec<Bar> = Vec::new();
    let mut index = 0;
    while index < COUNT {
        let (found, registers) = measure_one(config, at, index)?;
        if let Some(bar) = found {
            let overlaps = |other: &Bar| other.base < bar.end() && bar.base < other.end();
            if bars.iter().any(overlaps) {
                return Err(Unusable::BadBar(index));
            }
            bars.push(bar);
        }
        index += registers;
    }
    Ok(bars)
}

/// One of them, and how many base address registers it takes.
fn measure_one(
    config: &mut impl Config,
    at: Address,
    index: u8,
) -> Result<(Option<Bar>, u8), Unusable> {
    let low = BARS + 4 * index;
    let (address, mask) = probe(config, at, low, index)?;
    if address & IS_PORTS != 0 || mask == 0 {
        return Ok((None, 1));
    }
    let address_low = u64::from(address & !FLAGS);
    let mask_low = u64::from(mask & !FLAGS);
    let (base, mask, registers) = match address & KIND {
        KIND_32 => (address_low, mask_low | !0 << 32, 1),
        KIND_64 if index + 1 < COUNT => {
            let (address, mask) = probe(config, at, low + 4, index)?;
            let high = |word: u32| u64::from(word) << 32;
            (address_low | high(address), mask_low | high(mask), 2)
        }
        _ => return Err(Unusable::BadBar(index)),
    };
    if base == 0 {
        return Err(Unusable::NoAddress(index));
    }
    // The bits that cannot be set: those below the size.
    let bytes = (!mask)
        .checked_add(1)
        .filter(|bytes| bytes.is_power_of_two());
    let bytes = bytes.ok_or(Unusable::BadBar(index))?;
    let end = base.checked_add(bytes).filter(|&end| end <= PHYSICAL_END);
    if end.is_none() || !base.is_multiple_of(bytes) {
        return Err(Unusable::BadBar(index));
    }
    Ok((Some(Bar { index, base, bytes }), registers))
}

/// What a register holds, and which of its bits can be set.
fn probe(
    config: &mut impl Config,
    at: Address,
    offset: u8,
    index: u8,
) -> Result<(u32, u32), Unusable> {
    let held = config.read_config(at, offset);
    config.write_config(at, offset, !0);
    let mask = config.read_config(at, offset);
    config.write_config(at, offset, held);
    if config.read_config(at, offset) != held {
        return Err(Unusable::BadBar(index));
    }
    Ok((held, mask))
}

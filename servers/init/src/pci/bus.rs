//! Which functions there are: from the host bridge down, each bus once.

use super::{Address, BRIDGE, CLASS, Config, HEADER, ID};

/// Bit of the header type: the device has more than one function.
const SEVERAL: u32 = 1 << 7;
/// Class and subclass of a host bridge, and of a bridge to another bus.
const HOST_BRIDGE: u32 = 0x0600;
const BUS_BRIDGE: u32 = 0x0604;

/// Buses that are to be looked at, and that were.
struct Buses {
    /// Those that somebody leads to.
    known: [bool; 256],
    done: [bool; 256],
}

impl Buses {
    fn next(&mut self) -> Option<u8> {
        let mut each = 0..=u8::MAX;
        let is_new = |&bus: &u8| self.known[usize::from(bus)] && !self.done[usize::from(bus)];
        let next = each.find(is_new)?;
        self.done[usize::from(next)] = true;
        Some(next)
    }

    fn add(&mut self, bus: u8) {
        self.known[usize::from(bus)] = true;
    }
}

/// The first function, by the order in which buses are come to, whose vendor and device are wanted. Each bus is looked at once, however its bridges
/// lead back to it.
pub fn find(config: &mut impl Config, is_wanted: impl Fn(u16, u16) -> bool) -> Option<Address> {
    let mut buses = Buses {
        known: [false; 256],
        done: [false; 256],
    };
    buses.add(0);
    while let Some(bus) = buses.next() {
        for device in 0..32 {
            for function in 0..8 {
                let at = Address {
                    bus,
                    device,
                    function,
                };
                let Some((vendor, id)) = identity(config, at) else {
                    if function == 0 {
                        break;
                    }
                    continue;
                };
                if is_wanted(vendor, id) {
                    return Some(at);
                }
                let header = config.read_config(at, HEADER) >> 16;
                if let Some(bus) = leads_to(config, at, header) {
                    buses.add(bus);
                }
                if function == 0 && header & SEVERAL == 0 {
                    break;
                }
            }
        }
    }
    None
}

/// Vendor and device, if a function is there. Some bridges answer zeros where none is.
pub fn identity(config: &mut impl Config, at: Address) -> Option<(u16, u16)> {
    let id = config.read_config(at, ID);
    let (vendor, device) = (id as u16, (id >> 16) as u16);
    (vendor != 0xffff && id != 0).then_some((vendor, device))
}

/// The bus behind a bridge.
fn leads_to(config: &mut impl Config, at: Address, header: u32) -> Option<u8> {
    match (config.read_config(at, CLASS) >> 16, header & 0x7f) {
        (BUS_BRIDGE, 1) => Some((config.read_config(at, BRIDGE) >> 8) as u8),
        // A machine with several host bridges has them as functions of the first device, each of the bus with its number.
        (HOST_BRIDGE, 0) if at.bus == 0 && at.device == 0 => Some(at.function),
        _ => None,
    }
}

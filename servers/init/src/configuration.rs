//! PCI configuration space on the machine, by its two I/O ports (PCI Local Bus Specification 3.0, 3.2.2.3.2): one takes an
//! address, the other gives and takes what is there.

use init::pci::{Address, Config};
use ipc::abi::Handle;
use sysroot::syscall;

/// The first port, how many there are, and the offsets of both registers.
const PORTS: u64 = 0xcf8;
const PORTS_COUNT: u64 = 8;
const ADDRESS: u64 = 0;
const DATA: u64 = 4;
/// In the address: what follows is one.
const ENABLE: u64 = 1 << 31;

/// The ports; `None` on a machine without PCI.
pub struct Configuration(Option<Handle>);

impl Configuration {
    /// Takes the ports, if something there keeps an address.
    pub fn open(system: Handle) -> Self {
        Self(ports(system))
    }

    /// Points the data port at four bytes of a function; the ports, if there are any.
    fn point(&self, at: Address, offset: u8) -> Option<Handle> {
        let ports = self.0?;
        let Address {
            bus,
            device,
            function,
        } = at;
        let place = [offset & !3, device << 3 | function, bus, 0];
        let address = ENABLE | u64::from(u32::from_le_bytes(place));
        syscall::port_write(ports, ADDRESS, 4, address).ok()?;
        Some(ports)
    }
}

fn ports(system: Handle) -> Option<Handle> {
    let ports = syscall::ports_create(system, PORTS, PORTS_COUNT).ok()?;
    syscall::port_write(ports, ADDRESS, 4, ENABLE).ok()?;
    let kept = syscall::port_read(ports, ADDRESS, 4).ok()?;
    (kept == ENABLE).then_some(ports)
}

impl Config for Configuration {
    fn read_config(&mut self, at: Address, offset: u8) -> u32 {
        let ports = self.point(at, offset);
        let value = ports.and_then(|ports| syscall::port_read(ports, DATA, 4).ok());
        value.map_or(!0, |value| value as u32)
    }

    fn write_config(&mut self, at: Address, offset: u8, value: u32) {
        if let Some(ports) = self.point(at, offset) {
            // The trait's contract: what cannot be written is lost.
            let _ = syscall::port_write(ports, DATA, 4, value.into());
        }
    }
}

//! The functions that programs of the configuration drive, and their DMA memory.
//!
//! The memory is made once, when the system starts, and is init's for good: each instance of the driver gets the same. So a function that its
//! driver left running writes to nothing else, before it is quiesced and after.

use alloc::vec::Vec;

use ipc::abi::layout::PAGE_SIZE;
use ipc::proto::system::SystemConfig;

use super::function::Function;
use crate::machine::Machine;

/// Badges from here on are of functions, those below of processes.
const BADGES: u64 = 1 << 32;

/// A function and its driver.
pub struct Device<H> {
    /// Index of the driver's entry.
    program: usize,
    /// The function.
    pub function: Function,
    /// Messages that the driver gets.
    pub vectors: u8,
    /// Memory in a row.
    pub dma: H,
}

impl<H> Device<H> {
    /// Badge by which the driver's handle names the function.
    #[must_use]
    pub const fn badge(&self) -> u64 {
        BADGES + self.program as u64
    }
}

/// All of them.
pub struct Devices<H>(Vec<Device<H>>);

impl<H> Devices<H> {
    /// Finds the functions that the configuration names. Of one that is there and cannot be driven the log says why.
    pub fn find(config: &SystemConfig, machine: &mut impl Machine<Handle = H>) -> Self {
        let mut devices = Vec::new();
        for (program, entry) in config.programs.iter().enumerate() {
            let Some(pci) = &entry.pci else { continue };
            let Some(at) = Function::find(machine, pci.vendor, &pci.devices) else {
                continue;
            };
            let name = &entry.name;
            let function = match Function::examine(machine, at) {
                Ok(function) => function,
                Err(error) => {
                    machine.log(format_args!("no device for {name}: PCI {at}: {error}"));
                    continue;
                }
            };
            let pages = u64::from(pci.dma_kib) * 1024 / PAGE_SIZE;
            match machine.create_dma(pages) {
                Ok(dma) => devices.push(Device {
                    program,
                    vectors: function.messages_max().min(pci.vectors.into()) as u8,
                    function,
                    dma,
                }),
                Err(error) => {
                    machine.log(format_args!(
                        "no device for {name}: memory for DMA: {error}"
                    ));
                }
            }
        }
        Self(devices)
    }

    /// The function that a program drives.
    #[must_use]
    pub fn of(&self, program: usize) -> Option<&Device<H>> {
        self.0.iter().find(|device| device.program == program)
    }

    /// The function with this badge.
    #[must_use]
    pub fn with_badge(&self, badge: u64) -> Option<&Device<H>> {
        self.0.iter().find(|device| device.badge() == badge)
    }
}

/// Whether calls through a handle with this badge are about a function.
#[must_use]
pub const fn is_function(badge: u64) -> bool {
    badge >= BADGES
}

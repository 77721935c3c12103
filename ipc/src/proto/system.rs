//! What the system consists of: the compiled form of `system.toml`, which init reads.
//!
//! The builder checks the text (a mistake is reported with its line before anything boots) and writes this as postcard into
//! [`crate::bootfs::SYSTEM`]. Authority begins here: a program has what its entry names, plus what whoever starts it gives it, and
//! nothing else.

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

use crate::abi::Rights;

/// Name of the entry that stands for every program without one of its own.
pub const DEFAULT: &str = "default";
/// Name of the first program, which the kernel loads.
pub const INIT: &str = "init";
/// Highest priority; 0 is the lowest.
pub use crate::abi::layout::PRIORITY_MAX;

/// Every program's entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemConfig {
    /// In the order of the file; names are unique, and one is [`DEFAULT`].
    pub programs: Vec<Program>,
}

impl SystemConfig {
    /// The entry for a program, which is [`DEFAULT`]'s if it has none of its own.
    ///
    /// `None` only if the configuration was not made by the builder.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&Program> {
        let named = |name: &str| self.programs.iter().find(|program| program.name == name);
        named(name).or_else(|| named(DEFAULT))
    }
}

/// What one program is and may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Unique; at most [`crate::abi::layout::NAME_MAX`] bytes.
    pub name: String,
    /// File in the boot archive, such as `bin/shell`. Empty in [`DEFAULT`]: the image is then `bin/` and the name asked for.
    pub image: String,
    /// When it starts.
    pub start: Start,
    /// Of its first thread, at most [`PRIORITY_MAX`].
    pub priority: u8,
    /// Memory it may use, in KiB; a multiple of 4. Taken from its starter's, and returned when it ends.
    pub memory_kib: u32,
    /// Stack of its first thread, in KiB; a multiple of 4, part of `memory_kib`.
    pub stack_kib: u32,
    /// Endpoints it serves, by name; no two programs serve the same.
    pub serves: Vec<String>,
    /// Endpoints it may call, by name; each is served by some program.
    pub calls: Vec<String>,
    /// I/O ports it may use.
    pub ports: Vec<PortRange>,
    /// Interrupt lines it may wait for (global system interrupt numbers).
    pub interrupts: Vec<u32>,
    /// Device memory it may map.
    pub device_memory: Vec<DeviceRange>,
    /// PCI function that it drives, if the machine has it.
    pub pci: Option<PciFunction>,
    /// Whether it controls the profiling driver.
    pub profiler: bool,
    /// Whether it may read the boot archive.
    pub bootfs: bool,
    /// Whether it may write to the kernel log.
    pub log: bool,
    /// What it may do to the system.
    pub system: Vec<SystemRight>,
    /// What init does when it ends.
    pub on_death: OnDeath,
}

impl Program {
    /// The rights of its system handle; empty if it gets none.
    #[must_use]
    pub fn system_rights(&self) -> Rights {
        let rights = self.system.iter().map(|right| right.rights());
        rights.fold(Rights::empty(), Rights::union)
    }
}

/// When a program starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// With the system.
    Boot,
    /// When someone asks for it.
    Demand,
}

/// What init does when a program ends, for whatever reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnDeath {
    /// Says so and starts it again.
    Restart,
    /// Says so.
    Leave,
    /// Says so and ends the system: nothing works without it.
    Halt,
    /// As [`Self::Restart`], but where that would be given up, as [`Self::Halt`].
    RestartOrHalt,
}

/// Something a program may do to the whole system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SystemRight {
    /// Read the kernel log.
    LogRead,
    /// Read the state of memory, CPUs and other facts.
    Inspect,
    /// Power off and reboot.
    Power,
    /// Create processes.
    Spawn,
    /// Make handles to devices.
    Devices,
}

impl SystemRight {
    /// The right on a system handle.
    #[must_use]
    pub const fn rights(self) -> Rights {
        match self {
            Self::LogRead => Rights::LOG_READ,
            Self::Inspect => Rights::INSPECT,
            Self::Power => Rights::POWER,
            Self::Spawn => Rights::SPAWN,
            Self::Devices => Rights::DEVICES,
        }
    }
}

/// Consecutive I/O ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortRange {
    /// The first.
    pub first: u16,
    /// How many; at least one, and the last is at most `0xffff`.
    pub count: u16,
}

/// Consecutive physical addresses of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRange {
    /// The first; on a page boundary.
    pub base: u64,
    /// Bytes; whole pages, at least one.
    pub bytes: u64,
}

/// A PCI function that a program drives: the first one found of this vendor and one of these devices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PciFunction {
    /// Vendor ID; not `0xffff`.
    pub vendor: u16,
    /// Device IDs that the driver knows; at least one.
    pub devices: Vec<u16>,
    /// Message-signalled interrupts that it wants, 1 to [`VECTORS_MAX`]; where the function has fewer, it gets fewer.
    pub vectors: u8,
    /// Memory for DMA, in KiB: whole pages, at least one and at most [`DMA_KIB_MAX`].
    pub dma_kib: u32,
}

/// Most message-signalled interrupts of a program.
pub const VECTORS_MAX: u8 = 8;
/// Most memory for DMA of a program, in KiB: what the kernel can find in a row.
pub const DMA_KIB_MAX: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str) -> Program {
        Program {
            name: name.into(),
            image: String::new(),
            start: Start::Demand,
            priority: 3,
            memory_kib: 512,
            stack_kib: 64,
            serves: Vec::new(),
            calls: Vec::from(["init".into()]),
            ports: Vec::from([PortRange {
                first: 0x3f8,
                count: 8,
            }]),
            interrupts: Vec::from([4]),
            device_memory: Vec::new(),
            pci: Some(PciFunction {
                vendor: 0x1af4,
                devices: Vec::from([0x1041]),
                vectors: 2,
                dma_kib: 64,
            }),
            profiler: false,
            bootfs: true,
            log: true,
            system: Vec::from([SystemRight::LogRead, SystemRight::Power]),
            on_death: OnDeath::Leave,
        }
    }

    #[test]
    fn a_program_without_an_entry_gets_the_default() {
        let programs = Vec::from([program(DEFAULT), program("shell")]);
        let config = SystemConfig { programs };
        assert_eq!(config.entry("shell").unwrap().name, "shell");
        assert_eq!(config.entry("spin").unwrap().name, DEFAULT);
    }

    #[test]
    fn system_rights_are_those_named() {
        let rights = program("shell").system_rights();
        assert_eq!(rights, Rights::LOG_READ | Rights::POWER);
    }

    #[test]
    fn the_bytes_of_an_entry_are_pinned() {
        let mut buffer = [0; 64];
        let bytes = postcard::to_slice(&program("ab"), &mut buffer).unwrap();
        let expected = [
            2, b'a', b'b', // name
            0,    // image
            1,    // start: demand
            3,    // priority
            0x80, 4,  // memory_kib: 512
            64, // stack_kib
            0,  // serves
            1, 4, b'i', b'n', b'i', b't', // calls
            1, 0xf8, 7, 8, // ports
            1, 4, // interrupts
            0, // device_memory
            1, 0xf4, 0x35, 1, 0xc1, 0x20, 2, 64, // pci
            0, 1, 1, // profiler, bootfs, log
            2, 0, 2, // system: log-read, power
            1, // on_death: leave
        ];
        assert_eq!(bytes, expected);
    }
}

//! The machine's bus, by QEMU's port for device tests: what a device would do there is done from outside, also while the CPU stands
//! still.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::port;

/// A message-signalled interrupt's address, and where in it the APIC id is (Intel SDM volume 3, "Message Address Register Format").
const MESSAGE_ADDRESS: u64 = 0xfee0_0000;
const DESTINATION: u32 = 12;
/// Its data (there, "Message Data Register Format"): delivery mode NMI; a vector alone is delivered as it is.
const NMI: u32 = 0b100 << 8;

/// The port.
pub struct Bus(BufReader<UnixStream>);

impl Bus {
    /// Of the machine that listens here.
    ///
    /// # Errors
    /// If there is none.
    pub fn connect(socket: &Path) -> Result<Self> {
        Ok(Self(BufReader::new(port::connect(socket)?)))
    }

    /// Sends CPU 0 an NMI, as a device can: it is pending when this returns.
    ///
    /// # Errors
    /// If the machine does not take it.
    pub fn send_nmi(&mut self) -> Result<()> {
        self.send_nmi_to(0)
    }

    /// Sends the CPU with this APIC id an NMI, likewise.
    ///
    /// # Errors
    /// If the machine does not take it.
    pub fn send_nmi_to(&mut self, apic_id: u8) -> Result<()> {
        self.message(apic_id, NMI)
    }

    /// Sends CPU 0 an interrupt: it is pending when this returns.
    ///
    /// # Errors
    /// If the machine does not take it.
    pub fn send_interrupt(&mut self, vector: u8) -> Result<()> {
        self.message(0, vector.into())
    }

    fn message(&mut self, apic_id: u8, data: u32) -> Result<()> {
        let address = MESSAGE_ADDRESS | u64::from(apic_id) << DESTINATION;
        let command = format!("writel {address:#x} {data:#x}\n");
        self.0.get_mut().write_all(command.as_bytes())?;
        let mut reply = String::new();
        self.0.read_line(&mut reply).context("no reply in time")?;
        ensure!(reply == "OK\n", "the bus answers {reply:?}");
        Ok(())
    }
}

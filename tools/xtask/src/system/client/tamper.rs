//! A network card that breaks its promises: the test writes into the guest's memory what a card of QEMU never would.
//!
//! Two of QEMU's own interfaces do: its monitor says where the rings are, its debugger's port writes physical memory, and keeps the
//! machine still meanwhile.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::gdb;
use crate::test::Verdict;

/// How long QEMU may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Offset of the index in a used ring, of its entries, and their size (virtio 1.2, 2.7.8).
const INDEX: u64 = 2;
const ENTRIES: u64 = 4;
const ENTRY_BYTES: u64 = 8;
/// A descriptor that no ring has.
const NO_DESCRIPTOR: u32 = 0xffff;

/// The ports by which a machine lets itself be tampered with.
pub struct Ports {
    monitor: u16,
    debugger: u16,
}

impl Ports {
    /// Two that are free.
    pub fn free() -> Result<Self> {
        Ok(Self {
            monitor: gdb::free_port(0)?,
            debugger: gdb::free_port(0)?,
        })
    }

    /// QEMU's arguments.
    pub fn arguments(&self) -> Vec<String> {
        let Self { monitor, debugger } = self;
        vec![
            "-qmp".into(),
            format!("tcp:127.0.0.1:{monitor},server=on,wait=off"),
            "-gdb".into(),
            format!("tcp:127.0.0.1:{debugger}"),
        ]
    }

    /// Has the network card give back a buffer that it never had.
    pub fn break_card(&self) -> Verdict {
        // The machine stands still from here on, until the debugger is gone.
        let mut debugger = Debugger::attach(self.debugger)?;
        let ring = Monitor::attach(self.monitor)?.receive_ring()?;
        let entry = ring.address + ENTRIES + u64::from(ring.index) % ring.size * ENTRY_BYTES;
        debugger.write(entry, &NO_DESCRIPTOR.to_le_bytes())?;
        let index = ring.index.wrapping_add(1);
        debugger.write(ring.address + INDEX, &index.to_le_bytes())?;
        debugger.detach()
    }
}

fn connect(port: u16) -> Result<TcpStream> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// The used ring of the queue that frames are received by.
struct Ring {
    address: u64,
    size: u64,
    index: u16,
}

/// QEMU's monitor, as the QEMU Machine Protocol has it: a line of JSON for each message.
struct Monitor(BufReader<TcpStream>);

impl Monitor {
    fn attach(port: u16) -> Result<Self> {
        let mut monitor = Self(BufReader::new(connect(port)?));
        monitor.ask("qmp_capabilities", json!({}))?;
        Ok(monitor)
    }

    fn ask(&mut self, command: &str, arguments: Value) -> Result<Value> {
        let message = json!({ "execute": command, "arguments": arguments });
        writeln!(self.0.get_mut(), "{message}")?;
        loop {
            let mut line = String::new();
            ensure!(self.0.read_line(&mut line)? > 0, "the monitor is gone");
            let mut answer: Value = serde_json::from_str(&line)?;
            ensure!(answer.get("error").is_none(), "{command}: {line}");
            // Others are greetings and events.
            if let Some(value) = answer.get_mut("return") {
                return Ok(value.take());
            }
        }
    }

    fn receive_ring(&mut self) -> Result<Ring> {
        let devices = self.ask("x-query-virtio", json!({}))?;
        let mut devices = devices.as_array().into_iter().flatten();
        let card = devices.find(|device| device["name"] == "virtio-net");
        let path = &card.context("no network card")?["path"];
        let arguments = json!({ "path": path, "queue": 0 });
        let queue = self.ask("x-query-virtio-queue-status", arguments)?;
        let number = |name: &str| {
            let number = queue[name].as_u64();
            number.with_context(|| format!("no {name} in {queue}"))
        };
        Ok(Ring {
            address: number("vring-used")?,
            size: number("vring-num")?,
            index: u16::try_from(number("used-idx")?)?,
        })
    }
}

/// QEMU's end of gdb's remote protocol.
struct Debugger(TcpStream);

impl Debugger {
    /// Has the machine stand still, and its physical memory be written.
    fn attach(port: u16) -> Result<Self> {
        let mut debugger = Self(connect(port)?);
        debugger.send("?")?;
        debugger.packet()?;
        debugger.command("Qqemu.PhyMemMode:1")?;
        Ok(debugger)
    }

    fn write(&mut self, address: u64, bytes: &[u8]) -> Verdict {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        self.command(&format!("M{address:x},{:x}:{hex}", bytes.len()))
    }

    fn detach(mut self) -> Verdict {
        self.command("D")
    }

    fn command(&mut self, command: &str) -> Verdict {
        self.send(command)?;
        let mut answer = self.packet()?;
        // That the machine stands still may be told twice: asked for, and when it does.
        while answer.starts_with('T') {
            answer = self.packet()?;
        }
        ensure!(answer == "OK", "{command}: {answer}");
        Ok(())
    }

    fn send(&mut self, packet: &str) -> Verdict {
        let sum = packet.bytes().fold(0, u8::wrapping_add);
        write!(self.0, "${packet}#{sum:02x}")?;
        Ok(())
    }

    /// The next packet.
    fn packet(&mut self) -> Result<String> {
        let mut answer = Vec::new();
        while answer.first() != Some(&b'$') || answer.iter().rev().nth(2) != Some(&b'#') {
            let mut byte = [0];
            self.0.read_exact(&mut byte)?;
            // What comes before a packet acknowledges the last one.
            if !answer.is_empty() || byte == *b"$" {
                answer.extend(byte);
            }
        }
        self.0.write_all(b"+")?;
        Ok(String::from_utf8(answer[1..answer.len() - 3].to_vec())?)
    }
}

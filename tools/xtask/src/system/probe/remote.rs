//! A client of QEMU's debugger port: GDB's remote serial protocol (GDB manual, appendix E), as much of it as it takes to stop a
//! machine, look at the registers of the CPU that stopped it, and move it on, instruction by instruction.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};

use super::port;
use super::registers::Registers;

/// A machine that is stopped whenever nothing is asked of it.
pub struct Remote {
    stream: UnixStream,
    /// Bytes of replies that were not looked at yet.
    received: Vec<u8>,
}

impl Remote {
    /// Stops the machine that listens here.
    ///
    /// # Errors
    /// If there is none.
    pub fn attach(socket: &Path) -> Result<Self> {
        let mut remote = Self::connect(socket)?;
        // It ran, so it says that it has stopped.
        remote.stopped()?;
        remote.prepare()?;
        Ok(remote)
    }

    /// Of the machine that listens here and has not begun to run.
    ///
    /// # Errors
    /// If there is none.
    pub fn attach_before_reset(socket: &Path) -> Result<Self> {
        let mut remote = Self::connect(socket)?;
        remote.prepare()?;
        Ok(remote)
    }

    fn connect(socket: &Path) -> Result<Self> {
        Ok(Self {
            stream: port::connect(socket)?,
            received: Vec::new(),
        })
    }

    fn prepare(&mut self) -> Result<()> {
        // QEMU manual, "GDB usage": 1 steps, 2 masks interrupts, 4 stops timers.
        self.expect_ok("Qqemu.sstep=7")?;
        // QEMU names single registers only to those who asked for its description of them.
        self.ask("qXfer:features:read:target.xml:0,1")?;
        Ok(())
    }

    /// Lets the machine go.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn detach(mut self) -> Result<()> {
        self.expect_ok("D")
    }

    /// The registers now.
    ///
    /// # Errors
    /// If the machine does not tell.
    pub fn registers(&mut self) -> Result<Registers> {
        Registers::parse(&self.ask("g")?)
    }

    /// Has the program go on elsewhere.
    ///
    /// # Errors
    /// If the machine refuses.
    pub fn set_rip(&mut self, rip: u64) -> Result<()> {
        self.set(Registers::RIP_NUMBER, rip)
    }

    /// Changes RAX: what a function returns.
    ///
    /// # Errors
    /// If the machine refuses.
    pub fn set_rax(&mut self, rax: u64) -> Result<()> {
        self.set(Registers::RAX_NUMBER, rax)
    }

    fn set(&mut self, register: usize, value: u64) -> Result<()> {
        self.expect_ok(&format!("P{register:x}={}", digits(value)))
    }

    /// A word of memory, as the CPU sees it.
    ///
    /// # Errors
    /// If it is not mapped.
    pub fn read(&mut self, at: u64) -> Result<u64> {
        let reply = self.ask(&format!("m{at:x},8"))?;
        let word = u64::from_str_radix(&reply, 16).ok();
        let word = word.with_context(|| format!("{at:#x} is answered {reply:?}"))?;
        Ok(word.swap_bytes())
    }

    /// Writes a word of memory, as the CPU sees it.
    ///
    /// # Errors
    /// If it is not mapped.
    pub fn write(&mut self, at: u64, word: u64) -> Result<()> {
        self.expect_ok(&format!("M{at:x},8:{}", digits(word)))
    }

    /// Executes one instruction, and lets no interrupt in, NMIs among them. Other CPUs run meanwhile; if one of them starts this one again
    /// (INIT or SIPI), QEMU takes that for the step, also where it changes nothing.
    ///
    /// # Errors
    /// If the machine does not come back.
    pub fn step(&mut self) -> Result<()> {
        self.send("s")?;
        self.stopped()
    }

    /// Goes on until one of these instructions is the next, at once if nothing comes before it.
    ///
    /// # Errors
    /// If none is.
    pub fn run_to(&mut self, addresses: &[u64]) -> Result<Registers> {
        for at in addresses {
            self.expect_ok(&format!("Z0,{at:x},1"))?;
        }
        self.send("c")?;
        self.stopped()?;
        for at in addresses {
            self.expect_ok(&format!("z0,{at:x},1"))?;
        }
        let registers = self.registers()?;
        let rip = registers.rip();
        ensure!(
            addresses.contains(&rip),
            "it stopped at {rip:#x}, not at any of {addresses:x?}"
        );
        Ok(registers)
    }

    fn stopped(&mut self) -> Result<()> {
        let reply = self.reply()?;
        ensure!(
            reply.starts_with('T'),
            "the machine did not stop, but said {reply:?}"
        );
        Ok(())
    }

    fn expect_ok(&mut self, command: &str) -> Result<()> {
        let reply = self.ask(command)?;
        ensure!(reply == "OK", "`{command}` is answered {reply:?}");
        Ok(())
    }

    fn ask(&mut self, command: &str) -> Result<String> {
        self.send(command)?;
        self.reply()
    }

    fn send(&mut self, command: &str) -> Result<()> {
        Ok(self.stream.write_all(packet(command).as_bytes())?)
    }

    fn reply(&mut self) -> Result<String> {
        loop {
            if let Some((reply, used)) = first_packet(&self.received) {
                let reply = reply?;
                self.received.drain(..used);
                // A machine that was let go may have ended since; if it should not have, the next command fails.
                let _ = self.stream.write_all(b"+");
                return Ok(reply);
            }
            let mut bytes = [0; 4096];
            let count = self.stream.read(&mut bytes).context("no reply in time")?;
            if count == 0 {
                bail!("the machine has ended");
            }
            self.received.extend_from_slice(&bytes[..count]);
        }
    }
}

/// A word as memory has it.
fn digits(word: u64) -> String {
    word.to_le_bytes()
        .map(|byte| format!("{byte:02x}"))
        .concat()
}

/// `$`, the text, `#` and the sum of its bytes.
fn packet(text: &str) -> String {
    format!("${text}#{:02x}", sum(text.as_bytes()))
}

fn sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| sum.wrapping_add(*byte))
}

/// The text of the first whole packet, and the bytes up to its end; acknowledgements before it are passed over.
fn first_packet(bytes: &[u8]) -> Option<(Result<String>, usize)> {
    let start = 1 + bytes.iter().position(|&byte| byte == b'$')?;
    let end = start + bytes[start..].iter().position(|&byte| byte == b'#')?;
    let told = bytes.get(end + 1..end + 3)?;
    let text = &bytes[start..end];
    let is_whole = format!("{:02x}", sum(text)).as_bytes() == told;
    let text = String::from_utf8_lossy(text).into_owned();
    let reply = if is_whole {
        Ok(text)
    } else {
        Err(anyhow::anyhow!("a damaged reply: {text:?}"))
    };
    Some((reply, end + 3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_read_as_they_are_written() {
        assert_eq!(packet("g"), "$g#67");
        let bytes = format!("+{}{}", packet("OK"), packet("T05"));
        let (reply, used) = first_packet(bytes.as_bytes()).unwrap();
        assert_eq!(reply.unwrap(), "OK");
        let (reply, _) = first_packet(&bytes.as_bytes()[used..]).unwrap();
        assert_eq!(reply.unwrap(), "T05");
    }

    #[test]
    fn half_a_packet_is_waited_for_and_a_damaged_one_refused() {
        assert!(first_packet(b"+$OK#9").is_none());
        assert!(first_packet(b"+").is_none());
        assert!(first_packet(b"$OK#00").unwrap().0.is_err());
    }
}

//! An NMI sent to a machine that stands still, and whether what it leaves is true.

use anyhow::{Context as _, Result, ensure};
use ipc::abi::profile::{FIRST_FRAMES, flags};
use sample_ring::Sample;

use crate::test::Verdict;

use super::super::probe::{Probe, Ram, Registers, Remote, Ring};

/// Where a program is, or was when it entered the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its next instruction.
    pub rip: u64,
    /// Its stack pointer.
    pub rsp: u64,
    /// Its frame pointer.
    pub rbp: u64,
}

impl Program {
    /// By these registers.
    #[must_use]
    pub fn of(registers: &Registers) -> Self {
        Self {
            rip: registers.rip(),
            rsp: registers.rsp(),
            rbp: registers.rbp(),
        }
    }
}

/// The interrupts' flag in RFLAGS.
const RFLAGS_IF: u64 = 1 << 9;
/// Where the hardware pushes, from RSP upwards (Intel SDM volume 3, "Exception and Interrupt Handling in 64-bit Mode").
const PUSHED_RIP: u64 = 0;
const PUSHED_CS: u64 = 8;
const PUSHED_RSP: u64 = 24;

/// No register's value: neither an address nor a frame.
const SPOILT: u64 = 0x5a5a_5a5a_5a5a_5a5a;

/// A machine that samples and stands still.
pub struct Landing<'p> {
    /// Its processor.
    pub remote: Remote,
    probe: &'p mut Probe,
    ring: Ring,
    /// The last instruction of the stub of NMIs.
    iret: u64,
    sent: u64,
    pid: Option<u64>,
}

impl<'p> Landing<'p> {
    /// Of a machine that was stopped.
    pub const fn new(probe: &'p mut Probe, remote: Remote, ring: Ring, iret: u64) -> Self {
        Self {
            probe,
            remote,
            ring,
            iret,
            sent: 0,
            pid: None,
        }
    }

    /// Lets the machine go. Returns how many NMIs were sent.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn leave(self) -> Result<u64> {
        self.remote.detach()?;
        Ok(self.sent)
    }

    /// Spoils what an entry before this one left where the thread's registers are saved: so many words below an address, to which
    /// nothing has been saved yet.
    ///
    /// # Errors
    /// If they are not mapped.
    pub fn spoil(&mut self, end: u64, words: usize) -> Verdict {
        for word in 1..=words as u64 {
            self.remote.write(end - 8 * word, SPOILT)?;
        }
        Ok(())
    }

    /// A word of memory as the CPU sees it with these registers.
    ///
    /// # Errors
    /// If it is not mapped.
    pub fn word(&self, by: &Registers, at: u64) -> Result<u64> {
        let word = self.probe.ram.word_at(by.cr3(), at);
        word.with_context(|| format!("{at:#x} is not mapped"))
    }

    /// The program that was interrupted at the start of a vector's stub, by what the hardware has pushed; `None` if it was the kernel.
    /// An error code lies below the rest, and makes RSP a multiple of 16: the hardware aligns the top, and pushes 5 words without one.
    ///
    /// # Errors
    /// If the stack is not mapped.
    pub fn interrupted(&self, at: &Registers) -> Result<Option<Program>> {
        let top = if at.rsp().is_multiple_of(16) {
            at.rsp() + 8
        } else {
            at.rsp()
        };
        if self.word(at, top + PUSHED_CS)? & 3 == 0 {
            return Ok(None);
        }
        Ok(Some(Program {
            rip: self.word(at, top + PUSHED_RIP)?,
            rsp: self.word(at, top + PUSHED_RSP)?,
            rbp: at.rbp(),
        }))
    }

    /// Sends an NMI, which is pending from now on.
    ///
    /// # Errors
    /// If the bus does not take it.
    pub fn send_nmi(&mut self) -> Verdict {
        self.sent += 1;
        self.probe.bus.send_nmi()
    }

    /// Passes over the records of what the timer took on the way here.
    ///
    /// # Errors
    /// If one is none.
    pub fn forget(&mut self) -> Verdict {
        self.ring.fresh(&self.probe.ram).map(drop)
    }

    /// Has an NMI interrupt the next instruction, and checks what it left.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn hit(&mut self, at: &Registers, program: Option<Program>) -> Verdict {
        self.interrupt()?;
        self.handled(at, program, 1)
    }

    fn interrupt(&mut self) -> Verdict {
        self.forget()?;
        self.send_nmi()?;
        self.remote.run_to(&[self.iret])?;
        // Masked, so that nothing else comes before the instruction itself.
        self.remote.step()
    }

    /// Has an NMI interrupt the next instruction, and returns its sample.
    ///
    /// # Errors
    /// If it leaves none, or another state.
    pub fn take(&mut self, at: &Registers) -> Result<Sample> {
        self.interrupt()?;
        self.left(at, 1)?.pop().context("no sample")
    }

    /// The machine's RAM.
    #[must_use]
    pub const fn ram(&self) -> &Ram {
        &self.probe.ram
    }

    /// Checks what NMIs have left that interrupted here: at least so many, since the timer's own may come as well.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn handled(&mut self, at: &Registers, program: Option<Program>, sent: usize) -> Verdict {
        let rip = at.rip();
        let samples = self.left(at, sent)?;
        let chain = chain(&self.probe.ram, at, program)?;
        for sample in &samples {
            let checked = self.check(sample, at, &chain);
            checked.with_context(|| format!("at {rip:#x}: {sample:x?}"))?;
        }
        Ok(())
    }

    /// The samples that NMIs have left that interrupted here, and nothing else: at least so many.
    fn left(&mut self, at: &Registers, sent: usize) -> Result<Vec<Sample>> {
        let rip = at.rip();
        let now = self.remote.registers()?;
        ensure!(now == *at, "an NMI at {rip:#x} changed {at:x?} to {now:x?}");
        let samples = self.ring.fresh(&self.probe.ram)?;
        ensure!(
            samples.len() >= sent,
            "{sent} NMIs at {rip:#x} left {} records",
            samples.len()
        );
        Ok(samples)
    }

    /// The process that the last record is of.
    #[must_use]
    pub const fn pid(&self) -> Option<u64> {
        self.pid
    }

    fn check(&mut self, sample: &Sample, at: &Registers, chain: &[u64]) -> Verdict {
        let pushed = (sample.rsp(), sample.rbp());
        ensure!(pushed == (at.rsp(), at.rbp()), "RSP or RBP is wrong");
        let has = |flag| sample.header().flags & flag != 0;
        ensure!(has(flags::KERNEL) != at.is_user(), "the mode is wrong");
        let off = at.rflags() & RFLAGS_IF == 0;
        ensure!(has(flags::INTERRUPTS_OFF) == off, "interrupts were not so");
        let own = sample.parts().next().context("it has no frames")?;
        ensure!(own.frames[0] == at.rip(), "the address is wrong");
        self.pid = Some(own.owner.pid.into());
        let kept = chain.len().min(FIRST_FRAMES);
        ensure!(own.frames == &chain[..kept], "the chain is not {chain:x?}");
        let whole = !has(flags::CUT) && has(flags::TRUNCATED) == (kept < chain.len());
        ensure!(whole, "how the chain ended is wrong");
        Ok(())
    }
}

/// The frames that a record must have: the address, then the program's RIP and the return addresses on its stack. In the stubs there
/// are none of the kernel.
fn chain(ram: &Ram, at: &Registers, program: Option<Program>) -> Result<Vec<u64>> {
    let mut chain = vec![at.rip()];
    let Some(program) = program else {
        return Ok(chain);
    };
    if !at.is_user() {
        chain.push(program.rip);
    }
    let (mut floor, mut frame) = (program.rsp, program.rbp);
    while frame != 0 {
        ensure!(
            frame >= floor,
            "the program's chain goes back to {frame:#x}"
        );
        let word = |at_word| ram.word_at(at.cr3(), at_word);
        let (outer, address) = word(frame).zip(word(frame + 8)).context("no stack")?;
        if address == 0 {
            break;
        }
        chain.push(address);
        (floor, frame) = (frame + 16, outer);
    }
    Ok(chain)
}

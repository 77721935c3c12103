//! The true chain, from what was executed: every call since the stepping began is kept until its return.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use iced_x86::{FlowControl, Instruction};

use super::super::disassembly::decoder;
use super::super::probe::{Ram, Registers};

/// Bytes of the longest instruction.
const LONGEST: u64 = 15;

/// What an instruction does to the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It calls; this is the return address.
    Call(u64),
    /// It returns.
    Return,
    /// It enters the kernel, to come back to this address.
    Enter(u64),
    /// Nothing.
    Other,
}

impl Flow {
    /// What an instruction does.
    #[must_use]
    pub fn of(instruction: &Instruction) -> Self {
        let next = instruction.next_ip();
        match instruction.flow_control() {
            FlowControl::Call if instruction.code() == iced_x86::Code::Syscall => Self::Enter(next),
            FlowControl::Call | FlowControl::IndirectCall => Self::Call(next),
            FlowControl::Return if !is_return_to_program(instruction) => Self::Return,
            _ => Self::Other,
        }
    }
}

/// The instruction at RIP.
#[must_use]
pub fn decode(ram: &Ram, at: &Registers) -> Instruction {
    let bytes = (at.rip()..at.rip() + LONGEST).map_while(|byte| ram.byte_at(at.cr3(), byte));
    let bytes: Vec<u8> = bytes.collect();
    decoder(&bytes, at.rip()).decode()
}

fn is_return_to_program(instruction: &Instruction) -> bool {
    use iced_x86::Mnemonic::{Iretq, Sysretq};
    matches!(instruction.mnemonic(), Iretq | Sysretq)
}

/// The calls of a stack that have not returned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Their return addresses, outermost first.
    addresses: Vec<u64>,
    /// Whether those are all there are; else the stepping began in the middle.
    pub complete: bool,
}

impl Calls {
    /// None, and there is nobody who called.
    pub const fn none() -> Self {
        Self {
            addresses: Vec::new(),
            complete: true,
        }
    }

    /// These, innermost first.
    #[must_use]
    pub fn all(mut callers: Vec<u64>) -> Self {
        callers.reverse();
        Self {
            addresses: callers,
            complete: true,
        }
    }

    /// The return addresses, innermost first.
    pub fn innermost_first(&self) -> impl Iterator<Item = u64> {
        self.addresses.iter().rev().copied()
    }

    /// An instruction was executed that led here.
    ///
    /// # Errors
    /// If it returned to somewhere else than where it was called from.
    pub fn executed(&mut self, flow: Flow, to: u64) -> Result<()> {
        match flow {
            Flow::Call(back) => self.addresses.push(back),
            Flow::Return => match self.addresses.pop() {
                Some(back) => ensure!(back == to, "a call of {back:#x} returned to {to:#x}"),
                None => ensure!(!self.complete, "the outermost function returned to {to:#x}"),
            },
            Flow::Enter(_) | Flow::Other => {}
        }
        Ok(())
    }
}

/// A thread that was in user mode since the stepping began.
#[derive(Clone, Debug)]
pub struct Known {
    /// Root of its page tables.
    pub root: u64,
    /// Where it goes on from the kernel: RIP and RSP.
    pub left: (u64, u64),
    /// Where its system call was, if that is how it entered the kernel last.
    made: Option<u64>,
    /// Its calls.
    pub calls: Calls,
}

impl Known {
    /// Its saved RIP is this. Returns whether the kernel has set it back since, for the system call to be made again; it is set back to
    /// nothing else.
    pub fn saved(&mut self, rip: u64) -> bool {
        let again = self.made == Some(rip) && self.left.0 != rip;
        if again {
            self.left.0 = rip;
        }
        again
    }
}

/// What there is to know of a machine of one CPU.
#[derive(Default)]
pub struct Shadow {
    /// The kernel's calls since it was entered.
    pub kernel: Calls,
    /// The kernel was entered by an interrupt that came where a caller is hard to find.
    pub on_purpose: bool,
    /// The threads, by where their registers end.
    pub threads: BTreeMap<u64, Known>,
}

impl Shadow {
    /// At the first instruction of an entry.
    #[must_use]
    pub fn at_entry() -> Self {
        Self {
            kernel: Calls::none(),
            on_purpose: false,
            threads: BTreeMap::new(),
        }
    }

    /// An instruction was executed by the thread whose registers end there.
    ///
    /// # Errors
    /// If what happened cannot be followed.
    pub fn step(
        &mut self,
        flow: Flow,
        before: &Registers,
        after: &Registers,
        end: u64,
    ) -> Result<()> {
        match (before.is_user(), after.is_user()) {
            (false, false) => self.kernel.executed(flow, after.rip())?,
            (true, true) => {
                if let Some(known) = self.threads.get_mut(&end) {
                    known.calls.executed(flow, after.rip())?;
                }
            }
            (true, false) => {
                self.kernel = Calls::none();
                let (back, made) = match flow {
                    Flow::Enter(back) => (back, Some(before.rip())),
                    _ => (before.rip(), None),
                };
                if let Some(known) = self.threads.get_mut(&end) {
                    known.left = (back, before.rsp());
                    known.made = made;
                }
            }
            (false, true) => {
                self.kernel = Calls::none();
                self.on_purpose = false;
                self.arrives(after, end);
            }
        }
        Ok(())
    }

    /// A thread is in user mode: one that went on where it left, or another, which may have the place of one that has ended.
    fn arrives(&mut self, at: &Registers, end: u64) {
        let is_same = |known: &Known| known.left == (at.rip(), at.rsp()) && known.root == at.cr3();
        if !self.threads.get(&end).is_some_and(is_same) {
            let known = Known {
                root: at.cr3(),
                left: (at.rip(), at.rsp()),
                made: None,
                calls: Calls::default(),
            };
            self.threads.insert(end, known);
        }
    }

    /// In a stub, or on the way to idle, nothing of the kernel's stack is used any more, or yet.
    pub fn forget_kernel(&mut self) {
        self.kernel = Calls::none();
    }
}

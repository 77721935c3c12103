//! The instructions of the kernel's stubs, from the disassembly, and which of them an NMI has hit.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;

use anyhow::{Context as _, ensure};
use iced_x86::{Instruction, Mnemonic};

use crate::test::Verdict;

use super::super::disassembly::Kernel;

/// A stub and what has been hit of it.
struct Stub {
    name: String,
    /// Those that a machine executes that goes on; the rest are behind a call that does not return, or end the machine.
    reachable: BTreeMap<u64, Instruction>,
    unreachable: usize,
    hit: BTreeSet<u64>,
}

/// All stubs.
#[derive(Default)]
pub struct Coverage {
    stubs: Vec<Stub>,
}

impl Coverage {
    /// Adds a function, up to the last of the instructions of this kind if one is named; the others end the machine.
    ///
    /// # Errors
    /// If it is not there.
    pub fn function(&mut self, kernel: &Kernel, name: &str, last: Option<Mnemonic>) -> Verdict {
        let span = kernel.span(name)?;
        self.add(name.to_owned(), kernel.instructions(span)?, last)
    }

    /// Adds a vector's stub. All vectors have the same but for the number and a word that is pushed for those without an error code.
    ///
    /// # Errors
    /// If it is not there.
    pub fn vector(&mut self, kernel: &Kernel, vector: u8) -> Verdict {
        let instructions = kernel.instructions(kernel.vector(vector)?)?;
        let name = format!("vector {vector}");
        self.add(name, instructions, Some(Mnemonic::Jmp))
    }

    fn add(&mut self, name: String, all: Vec<Instruction>, last: Option<Mnemonic>) -> Verdict {
        let is_last = |instruction: &Instruction| Some(instruction.mnemonic()) == last;
        let end = match last {
            Some(_) => 1 + all.iter().position(is_last).context(name.clone())?,
            None => all.len(),
        };
        // Between vectors' stubs there is only padding.
        let beyond = if last == Some(Mnemonic::Jmp) {
            0
        } else {
            all.len() - end
        };
        let is_trap = |instruction: &Instruction| instruction.mnemonic() == Mnemonic::Ud2;
        let run: BTreeMap<u64, Instruction> = all[..end]
            .iter()
            .filter(|instruction| !is_trap(instruction))
            .map(|instruction| (instruction.ip(), *instruction))
            .collect();
        self.stubs.push(Stub {
            name,
            unreachable: end - run.len() + beyond,
            reachable: run,
            hit: BTreeSet::new(),
        });
        Ok(())
    }

    /// Whether an instruction begins here that is part of a stub.
    #[must_use]
    pub fn has(&self, at: u64) -> bool {
        self.stubs
            .iter()
            .any(|stub| stub.reachable.contains_key(&at))
    }

    /// The last instruction of a stub that goes on, and the one before it.
    #[must_use]
    pub fn last_two(&self, stub: &Range<u64>) -> Option<(u64, u64)> {
        let all = self
            .stubs
            .iter()
            .find(|it| it.reachable.contains_key(&stub.start))?;
        let mut backwards = all.reachable.keys().rev();
        Some((*backwards.next()?, *backwards.next()?))
    }

    /// Whether it was hit.
    #[must_use]
    pub fn is_hit(&self, at: u64) -> bool {
        self.stubs.iter().any(|stub| stub.hit.contains(&at))
    }

    /// Counts a hit.
    ///
    /// # Errors
    /// If the disassembly has no instruction there.
    pub fn hit(&mut self, at: u64) -> Verdict {
        let mut stubs = self.stubs.iter_mut();
        let stub = stubs.find(|stub| stub.reachable.contains_key(&at));
        let stub = stub.with_context(|| format!("{at:#x} was hit, where no instruction begins"))?;
        stub.hit.insert(at);
        Ok(())
    }

    /// Fails if an instruction was not hit.
    ///
    /// # Errors
    /// Which ones.
    pub fn check(&self) -> Verdict {
        for stub in &self.stubs {
            let missed: Vec<String> = stub
                .reachable
                .values()
                .filter(|instruction| !stub.hit.contains(&instruction.ip()))
                .map(|instruction| format!("{:#x} {:?}", instruction.ip(), instruction.mnemonic()))
                .collect();
            ensure!(
                missed.is_empty(),
                "`{}` was not hit at {missed:?}",
                stub.name
            );
        }
        Ok(())
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:18} {:>12} {:>4} {:>12}",
            "STUB", "INSTRUCTIONS", "HIT", "NEVER RUN"
        )?;
        for stub in &self.stubs {
            let (all, hit) = (stub.reachable.len(), stub.hit.len());
            writeln!(
                f,
                "{:18} {all:>12} {hit:>4} {:>12}",
                stub.name, stub.unreachable
            )?;
        }
        Ok(())
    }
}

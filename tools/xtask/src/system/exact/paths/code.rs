//! The code of an image, and where each of its instructions leads.

use std::collections::BTreeMap;

use anyhow::Result;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use object::{Object as _, ObjectSection as _, SectionKind};

use super::super::super::disassembly;
use super::state::Lost;
use crate::build::elf::{self, Function};

/// An image's code.
pub struct Code<'a> {
    /// Its functions.
    pub functions: Vec<Function>,
    instructions: BTreeMap<u64, Instruction>,
    constants: Vec<(u64, &'a [u8])>,
}

/// Where an instruction leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leads {
    /// To any of these.
    On(Vec<u64>),
    /// Into a function, if it is known which, and back to the next instruction, if that function returns.
    Call(Option<u64>),
    /// Into the kernel, and back to the next instruction.
    Kernel,
    /// Out of the function by a jump, as if the caller had called what is there.
    Elsewhere,
    /// Back to the caller.
    Return,
    /// Nowhere.
    Stop,
}

impl<'a> Code<'a> {
    /// Decodes the functions of a file that are wanted, by where they begin.
    ///
    /// # Errors
    /// If it is not ELF.
    pub fn decode(file: &'a [u8], is_wanted: impl Fn(u64) -> bool) -> Result<Self> {
        let mut functions = elf::functions(file)?;
        functions.retain(|function| is_wanted(function.address));
        let mut instructions = BTreeMap::new();
        for function in &functions {
            let all = disassembly::instructions(file, function)?;
            instructions.extend(all.into_iter().map(|it| (it.ip(), it)));
        }
        let object = object::File::parse(file)?;
        let mut constants = Vec::new();
        for section in object.sections() {
            if matches!(
                section.kind(),
                SectionKind::ReadOnlyData | SectionKind::ReadOnlyString | SectionKind::Data
            ) {
                constants.push((section.address(), section.data()?));
            }
        }
        Ok(Self {
            functions,
            instructions,
            constants,
        })
    }

    /// Of functions that a test makes up: where they begin, and their bytes.
    #[cfg(test)]
    pub fn of_pieces<'p>(pieces: impl Iterator<Item = (u64, &'p [u8])>) -> Self {
        let mut code = Self {
            functions: Vec::new(),
            instructions: BTreeMap::new(),
            constants: Vec::new(),
        };
        for (address, bytes) in pieces {
            code.functions.push(Function {
                address,
                size: bytes.len() as u64,
                name: format!("at {address}"),
            });
            let all = disassembly::decoder(bytes, address).into_iter();
            let all = all.map(|it| (it.ip(), it));
            code.instructions.extend(all);
        }
        code
    }

    /// The instruction at an address.
    ///
    /// # Errors
    /// If none is.
    pub fn at(&self, address: u64) -> Result<&Instruction, Lost> {
        self.instructions.get(&address).ok_or(Lost::NoCode)
    }

    /// The instructions of a function.
    pub fn of(&self, function: &Function) -> impl DoubleEndedIterator<Item = &Instruction> {
        self.instructions.range(function.range()).map(|(_, it)| it)
    }

    /// The function that an address belongs to: the last that begins before it.
    pub fn function(&self, address: u64) -> Option<&Function> {
        let after = self.functions.partition_point(|it| it.address <= address);
        after.checked_sub(1).map(|index| &self.functions[index])
    }

    /// Whether a function has no caller: it begins with RBP 0 (System V ABI for AMD64, section 3.4.1).
    pub fn is_outermost(&self, function: &Function) -> bool {
        let first = self.of(function).next();
        first.is_some_and(|first| {
            first.mnemonic() == Mnemonic::Xor && first.op0_register() == Register::EBP
        })
    }

    /// All instructions.
    pub fn all(&self) -> impl Iterator<Item = &Instruction> {
        self.instructions.values()
    }

    /// Where an instruction leads.
    ///
    /// # Errors
    /// If it cannot be told.
    pub fn leads(&self, instruction: &Instruction) -> Result<Leads, Lost> {
        let next = instruction.next_ip();
        let linked = self.linked(instruction);
        let target = instruction.near_branch_target();
        Ok(match instruction.flow_control() {
            FlowControl::Next => Leads::On(vec![next]),
            FlowControl::ConditionalBranch => Leads::On(vec![next, target]),
            FlowControl::UnconditionalBranch if self.instructions.contains_key(&target) => {
                Leads::On(vec![target])
            }
            FlowControl::UnconditionalBranch => Leads::Elsewhere,
            FlowControl::IndirectBranch => {
                let targets = match linked {
                    Some(target) => vec![target],
                    None => self.table(instruction),
                };
                if targets.is_empty() {
                    Leads::Elsewhere
                } else {
                    Leads::On(targets)
                }
            }
            FlowControl::Call if instruction.mnemonic() == Mnemonic::Syscall => Leads::Kernel,
            FlowControl::Call => Leads::Call(Some(target)),
            FlowControl::IndirectCall => Leads::Call(linked),
            // The one way to set CS.
            FlowControl::Return if instruction.mnemonic() == Mnemonic::Retf => {
                Leads::On(vec![next])
            }
            FlowControl::Return => Leads::Return,
            FlowControl::Interrupt | FlowControl::Exception => Leads::Stop,
            FlowControl::XbeginXabortXend => return Err(Lost::Jump),
        })
    }

    /// The function whose address the linker put where an instruction finds it.
    fn linked(&self, instruction: &Instruction) -> Option<u64> {
        if !instruction.is_ip_rel_memory_operand() {
            return None;
        }
        let address = self.constant(instruction.ip_rel_memory_address())?;
        let address = u64::from_le_bytes(address);
        self.instructions.contains_key(&address).then_some(address)
    }

    /// Where a jump by a table can lead: one of addresses, or of distances from the table, which the function finds by an LEA.
    fn table(&self, jump: &Instruction) -> Vec<u64> {
        let Some(function) = self.function(jump.ip()) else {
            return Vec::new();
        };
        if jump.op0_kind() == OpKind::Memory {
            let is_table =
                jump.memory_base() == Register::None && jump.memory_index() != Register::None;
            let start = jump.memory_displacement64();
            let entries = (0..).map_while(|index| self.constant(start + 8 * index));
            let entries = entries.map(u64::from_le_bytes);
            return if is_table {
                self.inside(function, entries)
            } else {
                Vec::new()
            };
        }
        // A distance is added to where its table is; else the jump is to a function that is known at run time.
        let register = jump.op0_register();
        let before = self
            .of(function)
            .rev()
            .skip_while(|it| it.ip() >= jump.ip());
        let mut sets = before.filter(|it| it.op0_register().full_register() == register);
        if sets.next().is_none_or(|it| it.mnemonic() != Mnemonic::Add) {
            return Vec::new();
        }
        let tables = self
            .of(function)
            .filter(|it| it.mnemonic() == Mnemonic::Lea && it.is_ip_rel_memory_operand());
        let targets = tables.flat_map(|lea| {
            let start = lea.ip_rel_memory_address();
            let distances = (0..).map_while(move |index| self.constant(start + 4 * index));
            let distances = distances.map(i32::from_le_bytes);
            let targets = distances.map(|by| start.wrapping_add_signed(by.into()));
            self.inside(function, targets)
        });
        targets.collect()
    }

    /// The entries of a table up to the first that is not in the function.
    fn inside(&self, function: &Function, targets: impl Iterator<Item = u64>) -> Vec<u64> {
        let is_inside =
            |at: &u64| function.range().contains(at) && self.instructions.contains_key(at);
        targets.take_while(is_inside).collect()
    }

    fn constant<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let mut found = self.constants.iter().filter_map(|&(start, data)| {
            let from = usize::try_from(at.checked_sub(start)?).ok()?;
            data.get(from..)?.first_chunk().copied()
        });
        found.next()
    }
}

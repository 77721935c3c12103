//! Every path through a function: at a branch both sides are taken, whatever the registers hold.

use std::collections::{BTreeSet, HashMap, HashSet};

use anyhow::Result;
use iced_x86::{Instruction, InstructionInfoFactory};

use super::code::{Code, Leads};
use super::state::{Lost, State};
use crate::build::elf::Function;

/// States at an instruction after which it is given up. Nearly always there is one.
const STATES: usize = 16;

/// What came of a function.
#[derive(Debug, Default)]
pub struct Found {
    /// It comes back to its caller.
    pub returns: bool,
    /// Where paths could not be followed.
    pub lost: Vec<(u64, Lost)>,
}

/// Code, and which functions of it return. What follows a call of one that does not is not its code.
pub struct Explorer<'c, 'a> {
    code: &'c Code<'a>,
    returning: BTreeSet<u64>,
}

impl<'c, 'a> Explorer<'c, 'a> {
    /// Finds out which functions return: those that get to their end by calls of such.
    ///
    /// # Errors
    /// None but of a visit, and there is none.
    pub fn new(code: &'c Code<'a>, entry: &State) -> Result<Self> {
        let returning = BTreeSet::new();
        let mut explorer = Self { code, returning };
        let mut open: Vec<&Function> = code.functions.iter().collect();
        loop {
            let before = open.len();
            let mut rest = Vec::new();
            for function in open {
                if explorer.explore(function, entry, |_, _| Ok(()))?.returns {
                    explorer.returning.insert(function.address);
                } else {
                    rest.push(function);
                }
            }
            if rest.len() == before {
                return Ok(explorer);
            }
            open = rest;
        }
    }

    /// Visits each instruction that can be reached from a function's first one, in each state that the stack can have there.
    ///
    /// # Errors
    /// Of a visit.
    pub fn explore(
        &self,
        function: &Function,
        entry: &State,
        mut visit: impl FnMut(&Instruction, &State) -> Result<()>,
    ) -> Result<Found> {
        let mut info = InstructionInfoFactory::new();
        let mut found = Found::default();
        let mut seen: HashMap<u64, HashSet<State>> = HashMap::new();
        let mut open = vec![(function.address, entry.clone())];
        let mut entries = vec![(entry.rsp, entry.rbp)];
        while let Some((address, state)) = open.pop() {
            let states = seen.entry(address).or_default();
            if !states.insert(state.clone()) {
                continue;
            }
            if states.len() > STATES {
                found.lost.push((address, Lost::States));
                break;
            }
            let next = self.code.at(address).and_then(|instruction| {
                let leads = self.code.leads(instruction)?;
                let after = state.after(instruction, &mut info, |_| None);
                Ok((instruction, leads, after))
            });
            let (instruction, leads, after) = match next {
                Ok(next) => next,
                Err(lost) => {
                    found.lost.push((address, lost));
                    continue;
                }
            };
            visit(instruction, &state)?;
            let next = instruction.next_ip();
            let is_entry = entries.contains(&(state.rsp, state.rbp));
            match leads {
                Leads::On(targets) => match after {
                    Ok(after) => {
                        for target in targets {
                            let is_elsewhere =
                                self.code.function(target) != self.code.function(address);
                            if is_entry && is_elsewhere {
                                // As if its caller had called what is there.
                                found.returns |= self.returning.contains(&target);
                                continue;
                            }
                            if is_elsewhere && self.code.is_outermost(function) {
                                // To the first function that has a frame; what is on the stack is its end.
                                entries.push((after.rsp, after.rbp));
                            }
                            open.push((target, after.clone()));
                        }
                    }
                    Err(lost) => found.lost.push((address, lost)),
                },
                Leads::Kernel => open.push((next, state)),
                Leads::Call(target) => {
                    // A recursion has an end where code follows it.
                    let returns =
                        |target| target == function.address || self.returning.contains(&target);
                    if target.is_none_or(returns) {
                        open.push((next, state));
                    }
                }
                // A thread's first function may begin like this.
                Leads::Elsewhere if is_entry || self.code.is_outermost(function) => {
                    found.returns |= is_entry;
                }
                Leads::Return if is_entry => found.returns = true,
                Leads::Elsewhere => found.lost.push((address, Lost::Jump)),
                Leads::Return => found.lost.push((address, Lost::Return)),
                Leads::Stop => {}
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::exact::paths::scene::Called;

    /// Functions at 0, 16, 32 and so on, and which instructions of the first are visited, and what comes of it.
    fn first(functions: &[&[u8]]) -> (Vec<u64>, Found) {
        let pieces = functions.iter().zip((0..).step_by(16));
        let code = Code::of_pieces(pieces.map(|(&bytes, at)| (at, bytes)));
        let entry = Called::in_program(&[0x10, 0x20]).entry;
        let mut visited = BTreeSet::new();
        let explorer = Explorer::new(&code, &entry).unwrap();
        let found = explorer.explore(&code.functions[0], &entry, |at, _| {
            visited.insert(at.ip());
            Ok(())
        });
        (visited.into_iter().collect(), found.unwrap())
    }

    #[test]
    fn both_sides_of_a_branch_are_taken_and_a_loop_ends() {
        // jz 4; jmp 0; ret
        let (visited, found) = first(&[&[0x74, 0x02, 0xeb, 0xfc, 0xc3]]);
        assert_eq!(visited, [0, 2, 4]);
        assert!(found.returns && found.lost.is_empty());
    }

    #[test]
    fn behind_a_call_that_does_not_return_is_no_code() {
        // call 16; ret
        let call: &[u8] = &[0xe8, 0x0b, 0, 0, 0, 0xc3];
        // jmp 32, and there an UD2 or a RET
        let jump: &[u8] = &[0xeb, 0x0e];
        let (visited, found) = first(&[call, jump, &[0x0f, 0x0b]]);
        assert_eq!((visited, found.returns), (vec![0], false));
        let (visited, found) = first(&[call, jump, &[0xc3]]);
        assert_eq!((visited, found.returns), (vec![0, 5], true));
    }

    #[test]
    fn what_cannot_be_followed_is_told() {
        let lost = |bytes: &[u8]| first(&[bytes]).1.lost;
        // push rbp; ret
        assert_eq!(lost(&[0x55, 0xc3]), [(1, Lost::Return)]);
        // push rbp; jmp rax
        assert_eq!(lost(&[0x55, 0xff, 0xe0]), [(1, Lost::Jump)]);
        // push rbp; jmp 0
        assert_eq!(lost(&[0x55, 0xeb, 0xfd]), [(0, Lost::States)]);
        // nop
        assert_eq!(lost(&[0x90]), [(1, Lost::NoCode)]);
    }
}

//! What a chain hangs on, and what each instruction does to it: RSP, RBP, and the words of the stack that hold what RBP was.
//!
//! Only the few instructions by which compilers and people build frames are understood. One that changes RSP in another way is an
//! error, and not a guess; RBP and words of the stack that are set in another way are not known from there on.

use std::collections::BTreeMap;
use std::fmt;

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

/// Bytes of a word.
const WORD: u64 = 8;

/// Why an instruction cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// It sets RSP in a way that is not understood, or from a value that is not known.
    StackPointer,
    /// It jumps to where a register says, and no table tells where that can be.
    Jump,
    /// It returns with RSP or RBP not as they were at the call.
    Return,
    /// It leads to where no code is.
    NoCode,
    /// The function goes on and on with other states of its stack.
    States,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StackPointer => "sets RSP in a way that is not understood",
            Self::Jump => "jumps nobody knows where",
            Self::Return => "returns with other registers",
            Self::NoCode => "leads to no code",
            Self::States => "has no end of states",
        })
    }
}

/// At an instruction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    /// RSP.
    pub rsp: u64,
    /// RBP, if it is known.
    pub rbp: Option<u64>,
    /// The words of the stack that are known.
    pub stack: BTreeMap<u64, u64>,
}

impl State {
    /// After an instruction that does not branch. Words that the state does not have are asked of `elsewhere`.
    ///
    /// # Errors
    /// If RSP is not known any more.
    pub fn after(
        &self,
        instruction: &Instruction,
        info: &mut InstructionInfoFactory,
        elsewhere: impl Fn(u64) -> Option<u64>,
    ) -> Result<Self, Lost> {
        let load = |at: u64| self.stack.get(&at).copied().or_else(|| elsewhere(at));
        let mut after = self.clone();
        let first = operand(instruction, 0);
        let second = operand(instruction, 1);
        match (instruction.mnemonic(), first, second) {
            (Mnemonic::Push, pushed, _) if instruction.stack_pointer_increment() == -8 => {
                after.push(self.kept(pushed));
            }
            (Mnemonic::Pushfq, ..) => after.push(None),
            (Mnemonic::Pop, Operand::Frame, _) => {
                after.rbp = load(self.rsp);
                after.release(self.rsp + WORD);
            }
            (Mnemonic::Popfq, ..) | (Mnemonic::Pop, Operand::Other, _) => {
                after.release(self.rsp + WORD);
            }
            (Mnemonic::Leave, ..) => {
                let frame = self.rbp.ok_or(Lost::StackPointer)?;
                after.rbp = load(frame);
                after.release(frame + WORD);
            }
            (Mnemonic::Mov, Operand::Frame, from) => {
                after.rbp = match from {
                    Operand::Word(at) => at.in_state(self).and_then(load),
                    from => self.value(from),
                };
            }
            (Mnemonic::Mov, Operand::Stack, from) => {
                after.release(self.value(from).ok_or(Lost::StackPointer)?);
            }
            (Mnemonic::Mov, Operand::Word(at), from) if !from.is_other() => {
                let at = at.in_state(self).ok_or(Lost::StackPointer)?;
                after.store(at, self.kept(from));
            }
            (Mnemonic::Lea, Operand::Frame, Operand::Word(at)) => after.rbp = at.in_state(self),
            (Mnemonic::Lea, Operand::Stack, Operand::Word(at)) => {
                after.release(at.in_state(self).ok_or(Lost::StackPointer)?);
            }
            (Mnemonic::Add, Operand::Stack, Operand::Number(by)) => {
                after.release(self.rsp.wrapping_add(by));
            }
            (Mnemonic::Sub, Operand::Stack, Operand::Number(by)) => {
                after.release(self.rsp.wrapping_sub(by));
            }
            (Mnemonic::And, Operand::Stack, Operand::Number(mask)) => {
                after.release(self.rsp & mask);
            }
            // As a fence: the word keeps what it holds.
            (Mnemonic::Or, Operand::Word(_), Operand::Number(0)) => {}
            // Back to the next instruction with another CS, which was pushed together with its address.
            (Mnemonic::Retf, ..) => after.release(self.rsp + 2 * WORD),
            (Mnemonic::Xor, Operand::Frame, Operand::Frame) => after.rbp = Some(0),
            _ => after.anything(instruction, info)?,
        }
        Ok(after)
    }

    /// After a call at which this return address is pushed: at the first instruction of who is called.
    #[must_use]
    pub fn called(&self, back: u64) -> Self {
        let mut callee = self.clone();
        callee.push(Some(back));
        callee
    }

    /// After a return.
    #[must_use]
    pub fn returned(&self) -> Self {
        let mut caller = self.clone();
        caller.release(self.rsp.wrapping_add(WORD));
        caller
    }

    /// After the callee built its frame.
    #[must_use]
    pub fn framed(&self) -> Self {
        let mut framed = self.clone();
        framed.push(self.rbp);
        framed.rbp = Some(framed.rsp);
        framed
    }

    fn value(&self, operand: Operand) -> Option<u64> {
        match operand {
            Operand::Stack => Some(self.rsp),
            Operand::Frame => self.rbp,
            Operand::Number(value) => Some(value),
            Operand::Word(_) | Operand::Other => None,
        }
    }

    /// What a word of the stack is known to hold once an operand is put there: what RBP was, and nothing else.
    fn kept(&self, operand: Operand) -> Option<u64> {
        matches!(operand, Operand::Frame)
            .then_some(self.rbp)
            .flatten()
    }

    fn push(&mut self, value: Option<u64>) {
        self.rsp = self.rsp.wrapping_sub(WORD);
        self.store(self.rsp, value);
    }

    fn store(&mut self, at: u64, value: Option<u64>) {
        match value {
            Some(value) => self.stack.insert(at, value),
            None => self.stack.remove(&at),
        };
    }

    /// Sets RSP; what is below may change at any time.
    fn release(&mut self, rsp: u64) {
        self.rsp = rsp;
        self.stack = self.stack.split_off(&rsp);
    }

    /// An instruction that builds no frame.
    fn anything(
        &mut self,
        instruction: &Instruction,
        info: &mut InstructionInfoFactory,
    ) -> Result<(), Lost> {
        let info = info.info(instruction);
        let mut written = info.used_registers().iter().filter(|used| {
            matches!(
                used.access(),
                OpAccess::Write
                    | OpAccess::CondWrite
                    | OpAccess::ReadWrite
                    | OpAccess::ReadCondWrite
            )
        });
        let mut frame = false;
        for used in &mut written {
            match used.register().full_register() {
                Register::RSP => return Err(Lost::StackPointer),
                Register::RBP => frame = true,
                _ => {}
            }
        }
        if frame {
            self.rbp = None;
        }
        if let Operand::Word(at) = operand(instruction, 0)
            && let Some(at) = at.in_state(self)
            && info.op0_access() != OpAccess::Read
        {
            self.stack.remove(&(at & !(WORD - 1)));
        }
        Ok(())
    }
}

/// An operand, as far as frames are concerned.
#[derive(Clone, Copy, Debug)]
enum Operand {
    Stack,
    Frame,
    Number(u64),
    Word(At),
    Other,
}

impl Operand {
    const fn is_other(self) -> bool {
        matches!(self, Self::Other)
    }
}

/// A place in memory, at an offset from RSP or RBP.
#[derive(Clone, Copy, Debug)]
struct At {
    from_frame: bool,
    offset: u64,
}

impl At {
    fn in_state(self, state: &State) -> Option<u64> {
        let base = if self.from_frame {
            state.rbp?
        } else {
            state.rsp
        };
        Some(base.wrapping_add(self.offset))
    }
}

fn operand(instruction: &Instruction, index: u32) -> Operand {
    if index >= instruction.op_count() {
        return Operand::Other;
    }
    match instruction.op_kind(index) {
        OpKind::Register => match instruction.op_register(index) {
            Register::RSP => Operand::Stack,
            // The upper half of RBP becomes 0, as in the whole.
            Register::RBP => Operand::Frame,
            Register::EBP if instruction.mnemonic() == Mnemonic::Xor => Operand::Frame,
            _ => Operand::Other,
        },
        OpKind::Memory if instruction.memory_index() == Register::None => {
            let offset = instruction.memory_displacement64();
            match instruction.memory_base() {
                Register::RSP => Operand::Word(At {
                    from_frame: false,
                    offset,
                }),
                Register::RBP => Operand::Word(At {
                    from_frame: true,
                    offset,
                }),
                _ => Operand::Other,
            }
        }
        _ => instruction
            .try_immediate(index)
            .map_or(Operand::Other, Operand::Number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::disassembly::decoder;

    /// The state after instructions, from one with RSP 0x1000 and RBP 0x2000.
    fn after(bytes: &[u8]) -> Result<State, Lost> {
        let start = State {
            rsp: 0x1000,
            rbp: Some(0x2000),
            stack: BTreeMap::new(),
        };
        let mut info = InstructionInfoFactory::new();
        let mut all = decoder(bytes, 0).into_iter();
        all.try_fold(start, |state, it| state.after(&it, &mut info, |_| None))
    }

    #[test]
    fn a_frame_is_built_and_left_again() {
        // push rbp; mov rbp, rsp; push rbx; sub rsp, 0x18
        let built = [0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x83, 0xec, 0x18];
        let inside = after(&built).unwrap();
        assert_eq!((inside.rsp, inside.rbp), (0xfd8, Some(0xff8)));
        assert_eq!(inside.stack, BTreeMap::from([(0xff8, 0x2000)]));
        for end in [
            // add rsp, 0x18; pop rbx; pop rbp
            &[0x48, 0x83, 0xc4, 0x18, 0x5b, 0x5d][..],
            // lea rsp, [rbp - 8]; pop rbx; pop rbp
            &[0x48, 0x8d, 0x65, 0xf8, 0x5b, 0x5d],
            // mov rsp, rbp; pop rbp
            &[0x48, 0x89, 0xec, 0x5d],
            // leave
            &[0xc9],
        ] {
            let left = after(&[&built, end].concat()).unwrap();
            assert_eq!((left.rsp, left.rbp), (0x1000, Some(0x2000)), "{end:x?}");
            assert!(left.stack.is_empty());
        }
    }

    #[test]
    fn what_rbp_was_is_known_only_where_it_is_kept() {
        // mov [rsp - 8], rbp; xor ebp, ebp; mov rbp, [rsp - 8]
        let kept = [0x48, 0x89, 0x6c, 0x24, 0xf8, 0x31, 0xed];
        let load = [0x48, 0x8b, 0x6c, 0x24, 0xf8];
        assert_eq!(after(&kept).unwrap().rbp, Some(0));
        assert_eq!(
            after(&[&kept[..], &load].concat()).unwrap().rbp,
            Some(0x2000)
        );
        // mov [rsp - 8], rax; lock or dword [rsp - 8], 0
        let spoilt = [0x48, 0x89, 0x44, 0x24, 0xf8];
        let fence = [0xf0, 0x83, 0x4c, 0x24, 0xf8, 0x00];
        let last = |between: &[u8]| after(&[&kept, between, &load].concat()).unwrap().rbp;
        assert_eq!((last(&spoilt), last(&fence)), (None, Some(0x2000)));
        // mov ebp, ebx: a register like others.
        assert_eq!(after(&[0x89, 0xdd]).unwrap().rbp, None);
    }

    #[test]
    fn a_stack_pointer_from_elsewhere_is_an_error() {
        // mov rsp, rcx; sub rsp, rax; xchg rsp, rax
        for bytes in [[0x48, 0x89, 0xcc], [0x48, 0x29, 0xc4], [0x48, 0x87, 0xe0]] {
            assert_eq!(after(&bytes), Err(Lost::StackPointer), "{bytes:x?}");
        }
    }
}

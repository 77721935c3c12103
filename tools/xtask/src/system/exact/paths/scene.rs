//! A machine of nothing but a program's stack and the kernel's, for the kernel's own code to take a sample of.

use std::collections::BTreeMap;

use ipc::abi::layout::PAGE_SIZE;
use kcore::base::addr::{Frame, Tsc};
use kcore::base::cpu::CpuId;
use kcore::base::regs::{Reg, SavedRegs};
use kcore::hardware::{PhysWords, Words};
use kcore::pmu::NoMonitor;
use kcore::profile::{Interrupted, KernelWords, Machine, Span};

use super::super::thread::{Current, Thread};
use super::state::State;

/// Bytes of each stack.
const STACK: u64 = 64 * PAGE_SIZE;
/// Where the program's stack is: it has the last of its page tables for itself.
const PROGRAM_STACK: Span = stack(0x7fff_0000_0000);
/// Where the kernel's is.
const KERNEL_STACK: Span = stack(0xffff_9000_0000_0000);
/// Bytes of a stack above the frame of the function that is looked at: callers.
const CALLERS: u64 = 256;
/// The tables, one for each level, the root first; then come the frames of the stack.
const ROOT: u32 = 1;
const FIRST: u32 = 5;
/// A page is there, can be written, and is the program's (Intel SDM volume 3, "4-Level Paging").
const ENTRY: u64 = 0b111;

const fn stack(start: u64) -> Span {
    Span {
        start,
        end: start + STACK,
    }
}

/// Callers, and what RBP and RSP are at the first instruction of who was called.
#[derive(Clone, Debug)]
pub struct Called {
    /// The return addresses, innermost first.
    pub callers: Vec<u64>,
    /// At the first instruction.
    pub entry: State,
}

impl Called {
    /// By these, in a program; each has two words of its own. With none, a thread begins there, with RBP 0.
    #[must_use]
    pub fn in_program(callers: &[u64]) -> Self {
        Self::on(PROGRAM_STACK, callers, 0)
    }

    /// The same in the kernel. The outermost function was entered with an RBP of the program's making, which points to what looks like
    /// a frame of the kernel.
    #[must_use]
    pub fn in_kernel(callers: &[u64]) -> Self {
        Self::on(KERNEL_STACK, callers, KERNEL_STACK.end - 64)
    }

    fn on(span: Span, callers: &[u64], last: u64) -> Self {
        /// Words from a frame to the next.
        const APART: u64 = 4;
        let top = span.end - CALLERS;
        let mut stack = BTreeMap::new();
        for (index, &caller) in (0..).zip(callers) {
            let at = top + 8 * APART * index;
            stack.insert(at, caller);
            if index > 0 {
                let is_last = index + 1 == callers.len() as u64;
                let outer = if is_last { last } else { at - 8 + 8 * APART };
                stack.insert(at - 8, outer);
            }
        }
        let rbp = if callers.len() > 1 {
            top + 8 * APART - 8
        } else {
            0
        };
        Self {
            callers: callers.to_vec(),
            entry: State {
                rsp: top,
                rbp: Some(rbp),
                stack,
            },
        }
    }
}

/// A moment: who runs, or is worked for, and what the kernel's stack holds.
pub struct Scene<'s> {
    program: &'s State,
    kernel: &'s State,
    thread: Thread,
    /// What words are that nobody knows. It looks like a return address.
    unknown: u64,
}

impl<'s> Scene<'s> {
    /// Of a program that is at an address of its own, by the words of a stack.
    #[must_use]
    pub fn new(pid: u32, rip: u64, program: &'s State, kernel: &'s State, unknown: u64) -> Self {
        let regs = SavedRegs::new();
        regs.set(Reg::Rip, rip);
        regs.set(Reg::Rsp, program.rsp);
        regs.set(Reg::Rbp, program.rbp.unwrap_or(unknown));
        Self {
            program,
            kernel,
            thread: Thread::new(pid, Frame(ROOT), regs),
            unknown,
        }
    }

    /// Its thread.
    #[must_use]
    pub const fn current(&self) -> Current<'_> {
        Current(Some(&self.thread))
    }

    /// It is interrupted in its program.
    #[must_use]
    pub fn in_program(&self, rip: u64) -> Interrupted {
        Interrupted {
            user: true,
            ..self.at(rip, self.program)
        }
    }

    /// It is interrupted in the kernel.
    #[must_use]
    pub fn in_kernel(&self, rip: u64) -> Interrupted {
        self.at(rip, self.kernel)
    }

    fn at(&self, rip: u64, state: &State) -> Interrupted {
        Interrupted {
            rip,
            rsp: state.rsp,
            rbp: state.rbp.unwrap_or(self.unknown),
            rflags: 2,
            rcx: self.unknown,
            scratch: self.unknown,
            entered: self.thread.entered(),
            user: false,
            idle: false,
        }
    }

    fn word(&self, state: &State, at: u64) -> u64 {
        state.stack.get(&at).copied().unwrap_or(self.unknown)
    }

    /// A word of RAM.
    fn physical(&self, frame: u32, index: u64) -> u64 {
        let level = u64::from(FIRST - 1).wrapping_sub(frame.into());
        if frame >= FIRST {
            let page = u64::from(frame - FIRST) * PAGE_SIZE;
            return self.word(self.program, PROGRAM_STACK.start + page + 8 * index);
        }
        let is_on_the_way = index == PROGRAM_STACK.start >> (12 + 9 * level) & 0x1ff;
        match level {
            0 if index < STACK / PAGE_SIZE => (u64::from(FIRST) + index) << 12 | ENTRY,
            1..=3 if is_on_the_way => u64::from(frame + 1) << 12 | ENTRY,
            _ => 0,
        }
    }
}

/// A frame of RAM.
#[derive(Clone, Copy)]
pub struct SceneWords<'a, 's>(&'a Scene<'s>, u32);

impl Words for SceneWords<'_, '_> {
    fn word(self, index: usize) -> u64 {
        self.0.physical(self.1, index as u64 % (PAGE_SIZE / 8))
    }
}

impl<'s> PhysWords for Scene<'s> {
    type Words<'a>
        = SceneWords<'a, 's>
    where
        Self: 'a;

    fn words(&self, frame: Frame) -> Option<SceneWords<'_, 's>> {
        let end = FIRST + (STACK / PAGE_SIZE) as u32;
        (ROOT..end)
            .contains(&frame.0)
            .then_some(SceneWords(self, frame.0))
    }
}

/// The kernel's stack.
#[derive(Clone, Copy)]
pub struct KernelStack<'a, 's>(&'a Scene<'s>);

impl KernelWords for KernelStack<'_, '_> {
    fn span(self) -> Span {
        KERNEL_STACK
    }
    fn word(self, at: u64) -> Option<u64> {
        let is_there = at.is_multiple_of(8) && KERNEL_STACK.contains(at);
        is_there.then(|| self.0.word(self.0.kernel, at))
    }
}

impl<'s> Machine for Scene<'s> {
    type KernelWords<'a>
        = KernelStack<'a, 's>
    where
        Self: 'a;
    type Monitor = NoMonitor;

    fn tsc(&self) -> Tsc {
        Tsc(1)
    }
    fn kernel_stack(&self, _: CpuId, rsp: u64) -> Option<KernelStack<'_, 's>> {
        KERNEL_STACK.contains(rsp).then_some(KernelStack(self))
    }
    fn space(&self) -> Frame {
        Frame(ROOT)
    }
    fn monitor(&self) -> &NoMonitor {
        &NoMonitor
    }
}

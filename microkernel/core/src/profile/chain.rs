//! The call chain of what was interrupted itself: the frames of the kernel, and of the program that it works for.
//!
//! Part of the sampling path; its rules are in [`super`].

use super::findings::{Findings, KERNEL, PROGRAM};
use super::interrupted::Interrupted;
use super::layout::KernelMap;
use super::machine::KernelWords;
use super::program::Program;
use super::stack::{KernelStack, UserStack};
use super::threads::ThreadView;
use super::walk::{End, follow};
use crate::hardware::PhysWords;
use ipc::abi::layout::USER_END;
use ipc::abi::profile::{FIRST_FRAMES, Marker, flags};
use sample_ring::Slot;

/// The frames of a program that was interrupted; the first one is its RIP, exactly. `None` for the stack: user code and no thread.
pub(super) fn program_part<M: PhysWords>(
    slot: &mut Slot<'_>,
    findings: &mut Findings,
    at: &Interrupted,
    stack: Option<&mut UserStack<'_, M>>,
) {
    let registers = Program::interrupted(at);
    match stack {
        Some(stack) if at.rip < USER_END => {
            findings.end(PROGRAM, registers.frames(stack, FIRST_FRAMES, slot));
        }
        // No thread, or a program that jumped out of its half and has not faulted yet: only the address is known.
        _ => {
            findings.end(PROGRAM, End::Cut);
            if !slot.push(Marker::frame(at.rip)) {
                findings.truncated();
            }
        }
    }
}

/// The frames of the kernel that was interrupted, the first one exactly, then of the program that it works for. `kernel` is the
/// stack that RSP points into.
pub(super) fn kernel_part<M: PhysWords, W: KernelWords>(
    slot: &mut Slot<'_>,
    findings: &mut Findings,
    at: &Interrupted,
    map: &KernelMap,
    kernel: Option<&mut KernelStack<'_, W>>,
    program: Option<(&ThreadView<'_>, &mut UserStack<'_, M>)>,
) {
    let last = slot.used() + FIRST_FRAMES;
    if !slot.push(at.rip) {
        findings.truncated();
    }
    // In a stub RBP is the program's, or about to be.
    if !map.in_stub(at.rip) {
        let end = match kernel {
            Some(stack) => {
                let places = slot.free(FIRST_FRAMES - 1);
                let (taken, end) = follow(stack, at.rsp, at.rbp, places);
                slot.fill(taken);
                end
            }
            None => End::Cut,
        };
        findings.end(KERNEL, end);
    }
    if let Some((thread, stack)) = program {
        // After a change of threads the kernel's frames are those of another's entry, of which nothing is left.
        if at.entered != thread.regs.end() && !map.in_stub(at.rip) {
            findings.flags |= flags::incomplete(KERNEL);
        }
        let registers = Program::of(thread, at, map);
        let limit = last - slot.used();
        findings.end(PROGRAM, registers.frames(stack, limit, slot));
    }
}

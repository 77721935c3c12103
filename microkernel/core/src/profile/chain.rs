//! The call chain of a sample: the interrupted thread's frames, then those of the client it serves, and so on.
//!
//! Part of the sampling path; its rules are in [`super`].

use super::interrupted::Interrupted;
use super::layout::{KernelMap, Span};
use super::machine::Machine;
use super::stack::{KernelStack, UserStack};
use super::threads::{ThreadView, Threads};
use super::walk::{End, follow};
use crate::base::regs::Reg;
use core::sync::atomic::{Ordering, fence};
use ipc::abi::layout::USER_END;
use ipc::abi::profile::{CLIENT_FRAMES, FIRST_FRAMES, Marker, flags};
use sample_ring::Slot;

/// Words of a marker and of the frames that are kept for it at least.
const CLIENT_WORDS: usize = 2 + CLIENT_FRAMES;
/// Most clients that can ever fit behind a frame of the first part.
const CLIENTS_MAX: usize = 8;

/// What was found about a chain, besides its frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// There were more frames or clients than were kept.
    pub truncated: bool,
    /// A part ended where it could not be believed.
    pub cut: bool,
    /// A part ended where the stack was not mapped.
    pub unmapped: bool,
    /// A client's part changed while it was read, and was left out with all that would have followed.
    pub changed: bool,
}

impl Findings {
    const fn end(&mut self, end: End) {
        match end {
            End::Complete => {}
            End::Truncated => self.truncated = true,
            End::Cut => self.cut = true,
            End::Unmapped => self.unmapped = true,
        }
    }
    /// As bits of a record's header.
    pub(super) const fn flags(self) -> u16 {
        let mut bits = 0;
        if self.truncated {
            bits |= flags::TRUNCATED;
        }
        if self.cut || self.unmapped {
            bits |= flags::CUT;
        }
        if self.changed {
            bits |= flags::CHANGED;
        }
        bits
    }
}

/// Where a thread's program is: the registers that a walk starts from.
#[derive(Clone, Copy, Debug)]
struct Program {
    rip: u64,
    rsp: u64,
    rbp: u64,
}

impl Program {
    /// From where the stubs saved them.
    fn saved(thread: &ThreadView<'_>) -> Self {
        Self {
            rip: thread.regs.get(Reg::Rip),
            rsp: thread.regs.get(Reg::Rsp),
            rbp: thread.regs.get(Reg::Rbp),
        }
    }
    /// Puts RIP and its callers into the slot, at most `limit` of them.
    fn frames<M: Machine>(
        self,
        stack: &mut UserStack<'_, M>,
        limit: usize,
        slot: &mut Slot<'_>,
    ) -> End {
        if self.rip >= USER_END {
            return End::Cut;
        }
        if limit == 0 || !slot.push(self.rip) {
            return End::Truncated;
        }
        let mut full = false;
        let end = follow(stack, self.rsp, self.rbp, limit - 1, |address| {
            full |= !slot.push(address);
        });
        if full { End::Truncated } else { end }
    }
}

/// The interrupted thread's frames, kernel and then user; the first one is the interrupted RIP, exactly.
pub(super) fn first_part<M: Machine>(
    slot: &mut Slot<'_>,
    findings: &mut Findings,
    at: &Interrupted,
    thread: Option<&ThreadView<'_>>,
    kernel: (&M, &KernelMap, &[Span]),
) {
    let (machine, map, stacks) = kernel;
    let last = slot.used() + FIRST_FRAMES;
    let program = if at.user {
        Program {
            rip: at.rip,
            rsp: at.rsp,
            rbp: at.rbp,
        }
    } else {
        if !slot.push(at.rip) {
            findings.truncated = true;
        }
        // In a stub RBP is the program's, or about to be.
        if !map.in_stub(at.rip) {
            findings.end(kernel_frames(slot, at, machine, map, stacks));
        }
        match thread {
            Some(thread) => Program::saved(thread),
            None => return,
        }
    };
    let Some(thread) = thread.filter(|_| !at.user || at.rip < USER_END) else {
        // User code and no thread, or a program that jumped out of its half and has not faulted yet: only the address is known.
        findings.cut = true;
        if !slot.push(at.rip) {
            findings.truncated = true;
        }
        return;
    };
    let mut stack = UserStack::new(machine, thread.root);
    let limit = last - slot.used();
    findings.end(program.frames(&mut stack, limit, slot));
}

fn kernel_frames<M: Machine>(
    slot: &mut Slot<'_>,
    at: &Interrupted,
    machine: &M,
    map: &KernelMap,
    stacks: &[Span],
) -> End {
    let Some(mut stack) = KernelStack::of(machine, map, stacks, at.rsp) else {
        return End::Cut;
    };
    let mut full = false;
    let end = follow(&mut stack, at.rsp, at.rbp, FIRST_FRAMES - 1, |address| {
        full |= !slot.push(address);
    });
    if full { End::Truncated } else { end }
}

/// The frames of the client that `server` serves, of the client that one serves, and so on, each behind a marker. All of
/// them fit, or the chain of clients is truncated: none is squeezed below [`CLIENT_FRAMES`] frames.
pub(super) fn client_parts<M: Machine, T: Threads>(
    slot: &mut Slot<'_>,
    findings: &mut Findings,
    machine: &M,
    threads: &T,
    server: T::Thread,
) {
    // Only to share the room; what counts is what is found below.
    let mut count = 0;
    let mut link = threads.served(server);
    while let Some((client, _)) = link
        && count < CLIENTS_MAX
    {
        count += 1;
        link = threads.served(client);
    }
    let fit = count.min(slot.room() / CLIENT_WORDS);

    let mut link = threads.served(server);
    for left in (1..=fit).rev() {
        let Some((client, sequence)) = link else {
            return;
        };
        let start = slot.used();
        let mut part = Findings::default();
        let limit = slot.room() / left - 2;
        let whole = client_part(slot, &mut part, machine, threads.view(client), limit);
        // Followed before the second look, so that it was this client's link while the client was still waiting.
        link = threads.served(client);
        fence(Ordering::Acquire);
        if !whole || threads.sequence(client) != sequence {
            slot.rewind(start);
            findings.changed = true;
            return;
        }
        if slot.used() == start + 2 {
            // Not even its RIP was one: a marker never stands alone.
            slot.rewind(start);
            findings.cut = true;
            return;
        }
        findings.truncated |= part.truncated;
        findings.cut |= part.cut;
        findings.unmapped |= part.unmapped;
    }
    findings.truncated |= link.is_some();
}

/// One client's marker and frames. False if the client is gone.
fn client_part<M: Machine>(
    slot: &mut Slot<'_>,
    findings: &mut Findings,
    machine: &M,
    client: Option<ThreadView<'_>>,
    limit: usize,
) -> bool {
    let Some(client) = client else {
        return false;
    };
    let marker = Marker {
        pid: client.pid,
        tid: client.tid,
        image: client.image,
    };
    let placed = marker.pack().map(|word| slot.push(word));
    if placed != [true; 2] {
        findings.truncated = true;
    }
    let mut stack = UserStack::new(machine, client.root);
    findings.end(Program::saved(&client).frames(&mut stack, limit, slot));
    true
}

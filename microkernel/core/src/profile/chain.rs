//! The call chain of a sample: the interrupted thread's frames, then those of the client it serves, and so on.
//!
//! Part of the sampling path; its rules are in [`super`].

use super::interrupted::{Context, Interrupted};
use super::layout::KernelMap;
use super::machine::{KernelWords, Machine};
use super::stack::{KernelStack, UserStack};
use super::threads::{ThreadView, Threads};
use super::translate::Window;
use super::walk::{End, Walk, follow, follow_on};
use crate::base::addr::Frame;
use crate::base::regs::Reg;
use crate::hardware::PhysMemory;
use core::sync::atomic::{Ordering, fence};
use ipc::abi::layout::USER_END;
use ipc::abi::profile::{CLIENT_FRAMES, FIRST_FRAMES, Marker, flags};
use sample_ring::{AtomicU64, Slot};

/// Words of a marker and of the frames that are kept for it at least.
const CLIENT_WORDS: usize = 2 + CLIENT_FRAMES;
/// Parts of a chain, as [`flags::incomplete`] counts them: the kernel's frames, the program's, and from there on the clients'.
const KERNEL: usize = 0;
const PROGRAM: usize = 1;
const CLIENTS: usize = 2;
/// Most clients: each has a part, and one is left for what is missing behind the last.
const CLIENTS_MAX: usize = flags::PARTS - CLIENTS - 1;

/// What was found about a chain, besides its frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// As bits of a record's header.
    pub flags: u16,
    /// A part ended where it could not be believed.
    pub cut: bool,
    /// A part ended where the stack was not mapped.
    pub unmapped: bool,
}

impl Findings {
    #[inline]
    fn end(&mut self, part: usize, end: End) {
        if end == End::Complete {
            return;
        }
        self.flags |= flags::incomplete(part);
        match end {
            End::Complete => {}
            End::Truncated => self.flags |= flags::TRUNCATED,
            End::Cut => {
                self.flags |= flags::CUT;
                self.cut = true;
            }
            End::Unmapped => {
                self.flags |= flags::CUT;
                self.unmapped = true;
            }
        }
    }
    /// There were more frames or clients than were kept.
    pub(super) fn truncated(&mut self) {
        self.flags |= flags::TRUNCATED;
    }
}

/// Where a thread's program is: the registers that a walk starts from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    pub rip: u64,
    pub rsp: u64,
    pub rbp: u64,
}

impl Program {
    /// Those of the thread for which the kernel was interrupted: where the stub has them that was interrupted, else where the stubs
    /// save them.
    #[inline]
    fn of(thread: &ThreadView<'_>, at: &Interrupted, map: &KernelMap) -> Self {
        let saved = Self::saved(thread);
        if map.syscall.contains(at.rip) {
            let switched = at.rip >= map.syscall_switched;
            Self {
                rip: at.rcx,
                rsp: if switched { at.scratch } else { at.rsp },
                rbp: at.rbp,
            }
        } else if map.interrupts.contains(at.rip) {
            Self {
                rbp: at.rbp,
                ..saved
            }
        } else {
            saved
        }
    }
    /// Those that were interrupted in the program itself.
    #[inline]
    pub(super) const fn interrupted(at: &Interrupted) -> Self {
        Self {
            rip: at.rip,
            rsp: at.rsp,
            rbp: at.rbp,
        }
    }
    /// The same, if it was in its half of the address space.
    #[inline(always)]
    pub(super) fn in_user_mode(at: impl Context) -> Option<Self> {
        let program = Self {
            rip: at.rip(),
            rsp: at.rsp(),
            rbp: at.rbp(),
        };
        (at.is_user() && program.rip < USER_END).then_some(program)
    }
    /// From where the stubs saved them.
    #[inline]
    fn saved(thread: &ThreadView<'_>) -> Self {
        Self {
            rip: thread.regs.get(Reg::Rip),
            rsp: thread.regs.get(Reg::Rsp),
            rbp: thread.regs.get(Reg::Rbp),
        }
    }
    /// Puts RIP and its callers into the slot, at most `limit` of them.
    fn frames<M: PhysMemory>(
        self,
        stack: &mut UserStack<'_, M>,
        limit: usize,
        slot: &mut Slot<'_>,
    ) -> End {
        if self.rip >= USER_END {
            return End::Cut;
        }
        let Some((first, places)) = slot.free(limit).split_first() else {
            return End::Truncated;
        };
        first.store(self.rip, Ordering::Relaxed);
        let (taken, end) = follow(stack, self.rsp, self.rbp, places);
        slot.fill(1 + taken);
        end
    }
    /// The same, of a stack of which a page is at hand: the one that nearly all frames are in.
    #[inline(always)]
    fn frames_near<'m, M: PhysMemory>(
        self,
        memory: &'m M,
        root: Frame,
        page: Window<M::Words<'m>>,
        limit: usize,
        slot: &mut Slot<'_>,
    ) -> End {
        if self.rip >= USER_END {
            return End::Cut;
        }
        let Some((first, places)) = slot.free(limit).split_first() else {
            return End::Truncated;
        };
        first.store(self.rip, Ordering::Relaxed);
        let (walk, complete) = page.follow(Walk::from(self.rsp, self.rbp), places);
        let (taken, end) = if complete {
            (walk.taken, End::Complete)
        } else {
            follow_far(UserStack::at(memory, root, page), walk, places)
        };
        slot.fill(1 + taken);
        end
    }

    /// The frames of the program itself: RIP exactly, and its callers, most of them in a page that is at hand.
    #[inline(always)]
    pub(super) fn part_near<'m, M: PhysMemory>(
        self,
        slot: &mut Slot<'_>,
        findings: &mut Findings,
        memory: &'m M,
        root: Frame,
        page: Window<M::Words<'m>>,
    ) {
        let end = self.frames_near(memory, root, page, FIRST_FRAMES, slot);
        findings.end(PROGRAM, end);
    }
}

/// The frames that are in another page than those before, or odd.
#[cold]
#[inline(never)]
fn follow_far<M: PhysMemory>(
    mut stack: UserStack<'_, M>,
    walk: Walk,
    places: &[AtomicU64],
) -> (usize, End) {
    follow_on(&mut stack, walk, places)
}

/// The frames of a program that was interrupted; the first one is its RIP, exactly. `None` for the stack: user code and no thread.
pub(super) fn program_part<M: PhysMemory>(
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
            if !slot.push(at.rip) {
                findings.truncated();
            }
        }
    }
}

/// The frames of the kernel that was interrupted, the first one exactly, then of the program that it works for. `kernel` is the
/// stack that RSP points into.
pub(super) fn kernel_part<M: PhysMemory, W: KernelWords>(
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
        let registers = Program::of(thread, at, map);
        let limit = last - slot.used();
        findings.end(PROGRAM, registers.frames(stack, limit, slot));
    }
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
    for index in 0..fit {
        let Some((client, sequence)) = link else {
            return;
        };
        let start = slot.used();
        let limit = slot.room() / (fit - index) - 2;
        let end = client_part(slot, machine, threads.view(client), limit);
        // Followed before the second look, so that it was this client's link while the client was still waiting.
        link = threads.served(client);
        fence(Ordering::Acquire);
        let same = threads.sequence(client) == sequence;
        let Some(end) = end.filter(|_| same) else {
            slot.rewind(start);
            findings.flags |= flags::CHANGED;
            return;
        };
        findings.end(CLIENTS + index, end);
        if slot.used() <= start + 2 {
            // Not even its RIP was one: a marker never stands alone.
            slot.rewind(start);
            return;
        }
    }
    if link.is_some() {
        findings.end(CLIENTS + fit, End::Truncated);
    }
}

/// One client's marker and frames. `None` if the client is gone.
fn client_part<M: Machine>(
    slot: &mut Slot<'_>,
    machine: &M,
    client: Option<ThreadView<'_>>,
    limit: usize,
) -> Option<End> {
    let client = client?;
    let marker = Marker {
        pid: client.pid,
        tid: client.tid,
        image: client.image,
    };
    for word in marker.pack() {
        // Where there is no room for it, there is none for the frames, which say so.
        let _ = slot.push(word);
    }
    let registers = Program::saved(&client);
    let end = match Window::of(machine, client.root, registers.rbp) {
        Some(page) => registers.frames_near(machine, client.root, page, limit, slot),
        None => registers.frames(&mut UserStack::new(machine, client.root), limit, slot),
    };
    Some(end)
}

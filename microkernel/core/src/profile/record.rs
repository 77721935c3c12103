//! One record: what was interrupted, the top of its stack, and its call chain.
//!
//! Part of the sampling path; its rules are in [`super`]. The layout is [`ipc::abi::profile`]'s.

use super::chain::{kernel_part, program_part};
use super::clients::{client_parts, usual_parts};
use super::cpu::CpuState;
use super::findings::{Findings, PROGRAM};
use super::interrupted::{Context, Interrupted};
use super::layout::KernelMap;
use super::machine::Machine;
use super::program::Program;
use super::stack::{KernelStack, UserStack};
use super::threads::{Names, Threads};
use super::translate::{Run, Window};
use super::walk::{Stack, Walk, follow_on};
use crate::base::addr::Tsc;
use crate::base::cpu::CpuId;
use crate::hardware::Words;
use core::sync::atomic::Ordering;
use ipc::abi::layout::USER_END;
use ipc::abi::profile::{
    FIRST_FRAMES, FIXED_WORDS, Header, KIND_SAMPLE, LAYOUT_VERSION, SLOT_WORDS, STACK_WORDS, flags,
};
use sample_ring::Slot;

/// What a sample stands for until there are sources that can say: one event.
const WEIGHT: u64 = 1;
/// The one event there is: the first of the specifications given to start.
const EVENT: u8 = 0;

// The first part always fits, and a client behind it.
const _: () = assert!(FIXED_WORDS + STACK_WORDS + FIRST_FRAMES + 6 <= SLOT_WORDS);

/// The CPU that is sampled, and what its kernel looks like.
#[derive(Debug)]
pub(super) struct Place<'a, M> {
    pub cpu: &'a CpuState,
    pub machine: &'a M,
    pub map: &'a KernelMap,
}

/// Writes a record of what was interrupted at `now`.
// One function with the NMI's claim, so that nothing is handed over in memory; what is seldom is in functions apart.
#[inline(always)]
pub(super) fn write<M: Machine, T: Threads>(
    Place { cpu, machine, map }: Place<'_, M>,
    now: Tsc,
    at: impl Context,
    threads: T,
) {
    let Some((current, usual)) = Usual::of(machine, &threads, at) else {
        return write_any(cpu, machine, map, now, at, threads);
    };
    let mut slot = cpu.ring.begin();
    let Some(walked) = usual.write(&mut slot, now, threads.names(current)) else {
        return write_any(cpu, machine, map, now, at, threads);
    };
    let callers = match walked {
        Ok(callers) => callers,
        Err(walk) => {
            let stack = UserStack::at(machine, machine.space(), usual.page);
            return write_far(cpu, machine, threads, current, stack, walk);
        }
    };
    slot.fill(1 + callers);
    if threads.served(current).is_some() {
        let used = slot.used();
        return write_clients(cpu, machine, threads, current, used, Findings::USUAL);
    }
    let more = Header {
        tagged: (slot.used() - USUAL_WORDS) as u8,
        ..Header::default()
    };
    slot.publish(cpu.usual + more.pack());
}

/// The rest of the record of a thread that serves, from the clients on. The slot is not handed over: it would have to be in memory for
/// all others, too.
#[inline(never)]
fn write_clients<M: Machine, T: Threads>(
    cpu: &CpuState,
    machine: &M,
    threads: T,
    server: T::Thread,
    used: usize,
    findings: Findings,
) {
    let mut slot = cpu.ring.resume(used);
    if usual_parts(&mut slot, machine, threads, server) {
        publish(slot, cpu, findings);
    } else {
        write_clients_any(cpu, machine, threads, server, used, findings);
    }
}

/// The same where something is odd about the clients, or there is no room for all of their frames: all over again.
#[cold]
#[inline(never)]
fn write_clients_any<M: Machine, T: Threads>(
    cpu: &CpuState,
    machine: &M,
    threads: T,
    server: T::Thread,
    used: usize,
    mut findings: Findings,
) {
    let mut slot = cpu.ring.resume(used);
    client_parts(&mut slot, &mut findings, machine, threads, server);
    publish(slot, cpu, findings);
}

/// The rest of the record of a thread whose frames are not all in one page, or odd.
#[cold]
#[inline(never)]
fn write_far<M: Machine, T: Threads>(
    cpu: &CpuState,
    machine: &M,
    threads: T,
    thread: T::Thread,
    mut stack: UserStack<'_, M>,
    walk: Walk,
) {
    let mut slot = cpu.ring.resume(USUAL_WORDS);
    let mut findings = Findings::USUAL;
    let (taken, end) = follow_on(&mut stack, walk, slot.free(FIRST_FRAMES - 1));
    slot.fill(taken);
    findings.end(PROGRAM, end);
    write_rest(slot, cpu, machine, threads, Some(thread), findings);
}

/// The rest of a record that has the frames of this thread: those of its clients, if it serves.
fn write_rest<M: Machine, T: Threads>(
    slot: Slot<'_>,
    cpu: &CpuState,
    machine: &M,
    threads: T,
    thread: Option<T::Thread>,
    findings: Findings,
) {
    match thread {
        Some(server) if threads.served(server).is_some() => {
            write_clients(cpu, machine, threads, server, slot.used(), findings);
        }
        _ => publish(slot, cpu, findings),
    }
}

/// Words of a usual record before the callers: RIP is the last.
const USUAL_WORDS: usize = FIXED_WORDS + STACK_WORDS + 1;

/// A thread that was interrupted in its program, which has interrupts on, with all words that are kept of the top of its stack in one
/// page: nearly always it is so, and most of its frames are there, too.
struct Usual<W> {
    program: Program,
    page: Window<W>,
    top: Run<STACK_WORDS>,
}

impl<W: Words> Usual<W> {
    // Inlined with `write`: see there.
    #[inline(always)]
    fn of<'m, M: Machine<Words<'m> = W>, T: Threads>(
        machine: &'m M,
        threads: &T,
        at: impl Context,
    ) -> Option<(T::Thread, Self)> {
        let current = threads.current()?;
        if !at.is_user() || at.rip() >= USER_END {
            return None;
        }
        let page = Window::of(machine, machine.space(), at.rsp())?;
        // Read only now, and so not kept over the call.
        let program = Program::interrupted(at);
        let top = page.run(program.rsp)?;
        Some((current, Self { program, page, top }))
    }

    /// Puts all into the slot, and says of the callers, which are there to be filled, how far they go. `None` if there is no room.
    // As above.
    #[inline(always)]
    fn write(
        &self,
        slot: &mut Slot<'_>,
        now: Tsc,
        names: Names<'_>,
    ) -> Option<Result<usize, Walk>> {
        let Program { rip, rsp, rbp } = self.program;
        if !slot.extend(fixed_words(now, self.program, Some(names))) {
            return None;
        }
        self.page
            .copy(self.top, slot.free(STACK_WORDS).first_chunk()?);
        slot.fill(STACK_WORDS);
        let (first, places) = slot.free(FIRST_FRAMES).split_first()?;
        first.store(rip, Ordering::Relaxed);
        Some(self.page.follow(Walk::from(rsp, rbp), places))
    }
}

/// The record of what is not [`Usual`]: of the kernel, of a program that is at the end of a page or has jumped anywhere, of user code
/// and no thread.
#[inline(never)]
fn write_any<M: Machine, T: Threads>(
    cpu: &CpuState,
    machine: &M,
    map: &KernelMap,
    now: Tsc,
    at: impl Context,
    threads: T,
) {
    let at = &at.whole();
    let mut slot = cpu.ring.begin();
    let mut findings = Findings::of(context_flags(at));
    let current = threads.current();
    let thread = current.and_then(|current| threads.view(current));
    if !slot.extend(fixed_words(
        now,
        Program::interrupted(at),
        thread.map(|thread| thread.names),
    )) {
        findings.truncated();
    }
    let mut program = thread.map(|thread| UserStack::new(machine, thread.root));
    if at.user {
        findings.stack = program
            .as_mut()
            .map_or(0, |program| top(&mut slot, program, at.rsp));
        program_part(&mut slot, &mut findings, at, program.as_mut());
    } else {
        let kernel = machine.kernel_stack(cpu.id, at.rsp);
        let mut kernel = kernel.map(|words| KernelStack { words, map });
        findings.stack = kernel
            .as_mut()
            .map_or(0, |kernel| top(&mut slot, kernel, at.rsp));
        let (kernel, program) = (kernel.as_mut(), thread.as_ref().zip(program.as_mut()));
        kernel_part(&mut slot, &mut findings, at, map, kernel, program);
    }
    write_rest(slot, cpu, machine, threads, current, findings);
}

#[inline]
fn fixed_words(now: Tsc, at: Program, names: Option<Names<'_>>) -> [u64; 5] {
    let (ids, image) = names.map_or((0, 0), |Names { ids, image }| {
        let image = image.load(Ordering::Relaxed);
        (ids.load(Ordering::Relaxed), u64::from(image))
    });
    [now.0, ids, image | WEIGHT << 32, at.rsp, at.rbp]
}

/// Puts the record where readers find it, and counts what was found.
#[inline]
fn publish(slot: Slot<'_>, cpu: &CpuState, findings: Findings) {
    let Findings { flags, stack, .. } = findings;
    let tagged = slot.used() - FIXED_WORDS - usize::from(stack);
    slot.publish(header(cpu.id, flags, stack, tagged as u8).pack());
    cpu.counters.found(findings);
}

/// The header word of a usual record without callers.
pub(super) const fn usual_header(cpu: CpuId) -> u64 {
    header(cpu, 0, STACK_WORDS as u8, 1).pack()
}

const fn header(cpu: CpuId, flags: u16, stack: u8, tagged: u8) -> Header {
    Header {
        version: LAYOUT_VERSION,
        kind: KIND_SAMPLE,
        cpu: cpu.0,
        event: EVENT,
        flags,
        stack,
        counters: 0,
        tagged,
    }
}

const fn context_flags(at: &Interrupted) -> u16 {
    let mut bits = 0;
    if !at.user {
        bits |= flags::KERNEL;
    }
    if at.interrupts_off() {
        bits |= flags::INTERRUPTS_OFF;
    }
    if at.idle {
        bits |= flags::IDLE;
    }
    bits
}

/// Copies up to [`STACK_WORDS`] words from the interrupted RSP upwards, and says how many there were: with them and the
/// unwind tables, `profd` finds the caller of a function whose frame is not there yet, or no more.
fn top<S: Stack>(slot: &mut Slot<'_>, stack: &mut S, rsp: u64) -> u8 {
    let mut copied = 0;
    while usize::from(copied) < STACK_WORDS
        && let Some(at) = rsp.checked_add(u64::from(copied) * 8)
        && let Some(word) = stack.word(at)
        && slot.push(word)
    {
        copied += 1;
    }
    copied
}

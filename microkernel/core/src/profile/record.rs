//! One record: what was interrupted, the top of its stack, and its call chain.
//!
//! Part of the sampling path; its rules are in [`super`]. The layout is [`ipc::abi::profile`]'s.

use super::chain::{Findings, Program, client_parts, kernel_part, program_part};
use super::interrupted::{Context, Interrupted};
use super::layout::KernelMap;
use super::machine::Machine;
use super::stack::{KernelStack, UserStack};
use super::threads::{ThreadView, Threads};
use super::translate::{Run, Window};
use super::walk::Stack;
use crate::base::addr::Tsc;
use crate::base::cpu::CpuId;
use crate::hardware::Words;
use ipc::abi::profile::{
    FIXED_WORDS, Header, KIND_SAMPLE, LAYOUT_VERSION, SLOT_WORDS, STACK_WORDS, flags,
};
use sample_ring::{Slot, Writer};

/// What a sample stands for until there are sources that can say: one event.
const WEIGHT: u64 = 1;
/// The one event there is: the first of the specifications given to start.
const EVENT: u8 = 0;

// The first part always fits, and a client behind it.
const _: () =
    assert!(FIXED_WORDS + STACK_WORDS + ipc::abi::profile::FIRST_FRAMES + 6 <= SLOT_WORDS);

/// The CPU that is sampled, and what its kernel looks like.
#[derive(Debug)]
pub(super) struct Place<'a, M> {
    pub cpu: CpuId,
    pub machine: &'a M,
    pub map: &'a KernelMap,
}

/// Writes a record of what was interrupted at `now`.
// In one function with the NMI's claim, so that nothing is handed over in memory; what is seldom is in a function apart.
#[inline(always)]
pub(super) fn write<M: Machine, T: Threads, C: Context>(
    ring: &Writer<'_>,
    place: &Place<'_, M>,
    now: Tsc,
    at: C,
    threads: &T,
) -> Findings {
    let current = threads.current();
    let near = Program::in_user_mode(at).and_then(|program| {
        let thread = threads.view(current?)?;
        Near::of(place.machine, thread, program)
    });
    let Some(near) = near else {
        return write_any(ring, place, now, at, threads);
    };
    let mut slot = ring.begin();
    let mut findings = Findings::default();
    if !slot.extend(fixed_words(now, near.program, Some(&near.thread))) {
        findings.truncated();
    }
    let stack = near.write(&mut slot, &mut findings, place.machine);
    let context = if at.interrupts_off() {
        flags::INTERRUPTS_OFF
    } else {
        0
    };
    if let Some(server) = current
        && threads.served(server).is_some()
    {
        let own = Own {
            used: slot.used(),
            findings,
            context,
            stack,
        };
        return write_clients(ring, own, place, threads, server);
    }
    publish(slot, place.cpu, findings.flags | context, stack);
    findings
}

/// What a record has of the interrupted thread itself.
struct Own {
    used: usize,
    findings: Findings,
    context: u16,
    stack: u8,
}

/// The rest of the record of a thread that serves. The slot is not handed over: it would have to be in memory for all others, too.
#[inline(never)]
fn write_clients<M: Machine, T: Threads>(
    ring: &Writer<'_>,
    own: Own,
    place: &Place<'_, M>,
    threads: &T,
    server: T::Thread,
) -> Findings {
    let mut slot = ring.resume(own.used);
    let mut findings = own.findings;
    client_parts(&mut slot, &mut findings, place.machine, threads, server);
    publish(slot, place.cpu, findings.flags | own.context, own.stack);
    findings
}

/// A thread that was interrupted in its program, with all words that are kept of the top of its stack in one page: nearly always it
/// is so, and most of its frames are there, too.
struct Near<'a, W> {
    thread: ThreadView<'a>,
    program: Program,
    page: Window<W>,
    top: Run<STACK_WORDS>,
}

impl<'a, W: Words> Near<'a, W> {
    #[inline(always)]
    fn of<M: Machine<Words<'a> = W>>(
        machine: &'a M,
        thread: ThreadView<'a>,
        program: Program,
    ) -> Option<Self> {
        let page = Window::of(machine, thread.root, program.rsp)?;
        Some(Self {
            thread,
            program,
            page,
            top: page.run(program.rsp)?,
        })
    }

    /// Puts the top of the stack and the frames into the slot. Says how many words of the stack there are.
    #[inline(always)]
    fn write<M: Machine<Words<'a> = W>>(
        &self,
        slot: &mut Slot<'_>,
        findings: &mut Findings,
        machine: &'a M,
    ) -> u8 {
        let mut stack = 0;
        if let Some(places) = slot.free(STACK_WORDS).first_chunk() {
            self.page.copy(self.top, places);
            slot.fill(STACK_WORDS);
            stack = STACK_WORDS as u8;
        }
        let root = self.thread.root;
        self.program
            .part_near(slot, findings, machine, root, self.page);
        stack
    }
}

/// The record of what is not [`Near`]: of the kernel, of a program that is at the end of a page or has jumped anywhere, of user code and
/// no thread.
#[inline(never)]
fn write_any<M: Machine, T: Threads>(
    ring: &Writer<'_>,
    place: &Place<'_, M>,
    now: Tsc,
    at: impl Context,
    threads: &T,
) -> Findings {
    let at = &at.whole();
    let mut slot = ring.begin();
    let mut findings = Findings::default();
    let current = threads.current();
    let thread = current.and_then(|current| threads.view(current));
    if !slot.extend(fixed_words(now, Program::interrupted(at), thread.as_ref())) {
        findings.truncated();
    }
    let mut program = thread.map(|thread| UserStack::new(place.machine, thread.root));
    let stack;
    if at.user {
        stack = program
            .as_mut()
            .map_or(0, |program| top(&mut slot, program, at.rsp));
        program_part(&mut slot, &mut findings, at, program.as_mut());
    } else {
        let kernel = place.machine.kernel_stack(place.cpu, at.rsp);
        let mut kernel = kernel.map(|words| KernelStack {
            words,
            map: place.map,
        });
        stack = kernel
            .as_mut()
            .map_or(0, |kernel| top(&mut slot, kernel, at.rsp));
        let (kernel, program) = (kernel.as_mut(), thread.as_ref().zip(program.as_mut()));
        kernel_part(&mut slot, &mut findings, at, place.map, kernel, program);
    }
    if let Some(server) = current
        && threads.served(server).is_some()
    {
        client_parts(&mut slot, &mut findings, place.machine, threads, server);
    }
    publish(slot, place.cpu, findings.flags | context_flags(at), stack);
    findings
}

#[inline(always)]
fn fixed_words(now: Tsc, at: Program, thread: Option<&ThreadView<'_>>) -> [u64; 5] {
    let (pid, tid, image) = thread.map_or((0, 0, 0), |t| (t.pid, t.tid, t.image));
    [
        now.0,
        u64::from(pid) | u64::from(tid) << 32,
        u64::from(image) | WEIGHT << 32,
        at.rsp,
        at.rbp,
    ]
}

#[inline(always)]
fn publish(slot: Slot<'_>, cpu: CpuId, flags: u16, stack: u8) {
    let header = Header {
        version: LAYOUT_VERSION,
        kind: KIND_SAMPLE,
        cpu: cpu.0,
        event: EVENT,
        flags,
        stack,
        counters: 0,
        tagged: (slot.used() - FIXED_WORDS) as u8 - stack,
    };
    slot.publish(header.pack());
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

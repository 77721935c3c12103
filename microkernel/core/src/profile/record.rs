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
use ipc::abi::layout::USER_END;
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
    match usual(place.machine, at, threads) {
        Some(usual) => usual.write(ring.begin(), place, now, at),
        None => write_any(ring, place, now, at, threads),
    }
}

/// What nearly always is interrupted: a thread in its program, that serves nobody, and all words that are kept of the top of its stack are
/// in one page.
struct Usual<'a, W> {
    thread: ThreadView<'a>,
    program: Program,
    page: Window<W>,
    top: Run<STACK_WORDS>,
}

#[inline(always)]
fn usual<'a, M: Machine, T: Threads>(
    machine: &'a M,
    at: impl Context,
    threads: &'a T,
) -> Option<Usual<'a, M::Words<'a>>> {
    let program = Program {
        rip: at.rip(),
        rsp: at.rsp(),
        rbp: at.rbp(),
    };
    if !at.is_user() || program.rip >= USER_END {
        return None;
    }
    let thread = threads.alone()?;
    let page = Window::of(machine, thread.root, program.rsp)?;
    Some(Usual {
        thread,
        program,
        page,
        top: page.run(program.rsp)?,
    })
}

impl<'a, W: Words> Usual<'a, W> {
    #[inline(always)]
    fn write<M: Machine<Words<'a> = W>>(
        self,
        mut slot: Slot<'_>,
        place: &Place<'a, M>,
        now: Tsc,
        at: impl Context,
    ) -> Findings {
        let mut findings = Findings::default();
        if !slot.extend(fixed_words(now, self.program, Some(&self.thread))) {
            findings.truncated();
        }
        let mut stack = 0;
        if let Some(places) = slot.free(STACK_WORDS).first_chunk() {
            self.page.copy(self.top, places);
            slot.fill(STACK_WORDS);
            stack = STACK_WORDS as u8;
        }
        self.program.part_near(
            &mut slot,
            &mut findings,
            place.machine,
            self.thread.root,
            self.page,
        );
        let context = if at.interrupts_off() {
            flags::INTERRUPTS_OFF
        } else {
            0
        };
        publish(slot, place.cpu, findings.flags | context, stack);
        findings
    }
}

/// The record of anything.
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

//! One record: what was interrupted, the top of its stack, and its call chain.
//!
//! Part of the sampling path; its rules are in [`super`]. The layout is [`ipc::abi::profile`]'s.

use super::chain::{Findings, client_parts, kernel_part, program_part};
use super::interrupted::Interrupted;
use super::layout::KernelMap;
use super::machine::Machine;
use super::stack::{KernelStack, UserStack};
use super::threads::Threads;
use super::walk::Stack;
use crate::base::addr::Tsc;
use crate::base::cpu::CpuId;
use ipc::abi::profile::{
    FIXED_WORDS, Header, KIND_SAMPLE, LAYOUT_VERSION, SLOT_WORDS, STACK_WORDS, flags,
};
use sample_ring::Slot;

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

/// Fills a slot with a record of what was interrupted at `now`, and publishes it.
#[inline]
pub(super) fn write<M: Machine, T: Threads>(
    mut slot: Slot<'_>,
    place: &Place<'_, M>,
    now: Tsc,
    at: &Interrupted,
    threads: &T,
) -> Findings {
    let mut findings = Findings::default();
    let current = threads.current();
    let thread = current.and_then(|current| threads.view(current));
    let (pid, tid, image) = thread.map_or((0, 0, 0), |t| (t.pid, t.tid, t.image));
    let fixed = [
        now.0,
        u64::from(pid) | u64::from(tid) << 32,
        u64::from(image) | WEIGHT << 32,
        at.rsp,
        at.rbp,
    ];
    if !slot.extend(fixed) {
        findings.truncated();
    }
    let mut program = thread.map(|thread| UserStack::new(place.machine, thread.root));
    let (stack, tagged);
    if at.user {
        stack = program
            .as_mut()
            .map_or(0, |program| top(&mut slot, program, at.rsp));
        tagged = slot.used();
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
        tagged = slot.used();
        let (kernel, program) = (kernel.as_mut(), thread.as_ref().zip(program.as_mut()));
        kernel_part(&mut slot, &mut findings, at, place.map, kernel, program);
    }
    if let Some(server) = current
        && threads.served(server).is_some()
    {
        client_parts(&mut slot, &mut findings, place.machine, threads, server);
    }
    let header = Header {
        version: LAYOUT_VERSION,
        kind: KIND_SAMPLE,
        cpu: place.cpu.0,
        event: EVENT,
        flags: findings.flags | context_flags(at),
        stack,
        counters: 0,
        tagged: (slot.used() - tagged) as u8,
    };
    slot.publish(header.pack());
    findings
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
#[inline]
fn top<S: Stack>(slot: &mut Slot<'_>, stack: &mut S, rsp: u64) -> u8 {
    // The first brings the others to hand.
    let Some(first) = stack.word(rsp) else {
        return 0;
    };
    if let Some(words) = S::words::<STACK_WORDS>(stack.near(), rsp) {
        return if slot.extend(words) {
            STACK_WORDS as u8
        } else {
            0
        };
    }
    top_of_two(slot, stack, rsp, first)
}

/// The same where the stack, or the page that its top is in, ends.
#[inline(never)]
fn top_of_two<S: Stack>(slot: &mut Slot<'_>, stack: &mut S, rsp: u64, first: u64) -> u8 {
    let (mut copied, mut next) = (0, Some(first));
    while let Some(word) = next
        && usize::from(copied) < STACK_WORDS
        && slot.push(word)
    {
        copied += 1;
        let at = rsp.checked_add(u64::from(copied) * 8);
        next = at.and_then(|at| stack.word(at));
    }
    copied
}

//! Whole records: kernel frames, the thread's own, then its clients', as a reader gets them.

use super::fake::{Fake, FakeThread, FakeThreads, STACK};
use crate::base::addr::Tsc;
use crate::base::cpu::CpuId;
use crate::base::regs::Reg;
use crate::profile::Interrupted;
use crate::profile::cpu::CpuState;
use crate::profile::findings::Findings;
use crate::profile::layout::{KernelMap, Span};
use crate::profile::record::{Place, write};
use crate::profile::threads::Threads as _;
use ipc::abi::layout::USER_END;
use ipc::abi::profile::{CLIENT_FRAMES, FIRST_FRAMES, SLOT_WORDS, flags};
use proptest::prelude::*;
use sample_ring::{AtomicU64, Geometry, Reader, Sample, Writer};

const TEXT: u64 = 0xffff_ffff_8000_0000;
const STUB: u64 = TEXT + 0x800;
const MAP: KernelMap = KernelMap {
    text: Span {
        start: TEXT,
        end: TEXT + 0x1000,
    },
    stubs: &[Span {
        start: STUB,
        end: STUB + 0x40,
    }],
    syscall: Span {
        start: STUB,
        end: STUB + 0x10,
    },
    syscall_switched: STUB + 8,
    interrupts: Span {
        start: STUB + 0x10,
        end: STUB + 0x20,
    },
};
/// RFLAGS with interrupts on, and off.
const ON: u64 = 0x202;
const OFF: u64 = 0x2;

/// The record of one sample, and what was found. The kernel was entered by the thread that runs.
fn take(fake: &Fake, at: &Interrupted, threads: &FakeThreads) -> (Sample, Findings) {
    let current = threads.current().and_then(|current| threads.view(current));
    let entered = current.map_or(0, |current| current.regs.end());
    take_entered(fake, &Interrupted { entered, ..*at }, threads)
}

/// The same, entered by whoever it says.
fn take_entered(fake: &Fake, at: &Interrupted, threads: &FakeThreads) -> (Sample, Findings) {
    let geometry = Geometry::new(16, 1).unwrap();
    let words: Vec<_> = (0..geometry.words()).map(|_| AtomicU64::new(0)).collect();
    let words: &'static [AtomicU64] = Box::leak(words.into());
    let ring = Writer::format(words, geometry).unwrap();
    let mut reader = Reader::open(words.into(), geometry).unwrap();
    let cpu = CpuState::new(CpuId(3), ring);
    let place = Place {
        cpu: &cpu,
        machine: fake,
        map: &MAP,
    };
    write(place, Tsc(77), at, threads);
    let sample = reader.drain().unwrap().next().unwrap().unwrap();
    let counters = cpu.counters.read();
    let flags = sample.header().flags & !CONTEXT;
    let named = |flag| u64::from(flags & flag != 0);
    assert_eq!(counters.truncated, named(flags::TRUNCATED));
    assert_eq!(counters.changed, named(flags::CHANGED));
    let findings = Findings {
        cut: counters.cut == 1,
        unmapped: counters.unmapped == 1,
        ..Findings::of(flags)
    };
    (sample, findings)
}
/// The flags of incomplete parts.
const PARTS: u16 = 0xffc0;
const CONTEXT: u16 = flags::KERNEL | flags::INTERRUPTS_OFF | flags::IDLE;

fn user_at(rip: u64, rsp: u64, rbp: u64) -> Interrupted {
    Interrupted {
        rip,
        rsp,
        rbp,
        rflags: ON,
        rcx: 0,
        scratch: 0,
        entered: 0,
        user: true,
        idle: false,
    }
}

fn kernel_at(rip: u64, rsp: u64, rbp: u64) -> Interrupted {
    Interrupted {
        rflags: OFF,
        rcx: 0,
        scratch: 0,
        user: false,
        ..user_at(rip, rsp, rbp)
    }
}

/// A thread in a space of its own: its RIP, then `depth` callers, on a stack at 0x7000. Those with odd numbers end as programs do, with a
/// frame that returns to 0.
fn thread(fake: &mut Fake, number: u64, depth: u64) -> (FakeThread, Vec<u64>) {
    let root = fake.frame(1);
    let frames: Vec<u64> = (0..=depth)
        .map(|n| 0x40_0000 + number * 0x1000 + n * 16)
        .collect();
    let mut to = frames[1..].to_vec();
    if number % 2 == 1 {
        to.push(0);
    }
    let at: Vec<u64> = (0..to.len() as u64).map(|n| 0x7000 + n * 32).collect();
    fake.frames(root, &at, &to);
    let rbp = at.first().copied().unwrap_or(0);
    (FakeThread::new(root, [frames[0], 0x7000, rbp]), frames)
}

fn parts(sample: &Sample) -> Vec<(u32, Vec<u64>)> {
    let part = |part: sample_ring::Part| (part.owner.pid, part.frames.to_vec());
    sample.parts().map(part).collect()
}

#[test]
fn a_user_sample_says_all_that_was_interrupted() {
    let mut fake = Fake::new();
    let (it, frames) = thread(&mut fake, 0, 2);
    fake.poke(it.root, 0x6ff8, 0xabcd);
    let threads = FakeThreads::new(&fake, vec![it]);
    let (sample, findings) = take(&fake, &user_at(0x40_0000, 0x6ff8, 0x7000), &threads);
    assert_eq!(findings, Findings::of(0));
    let header = sample.header();
    assert_eq!((header.cpu, header.event, header.flags), (3, 0, 0));
    assert_eq!((sample.tsc(), sample.weight()), (77, 1));
    assert_eq!((sample.rsp(), sample.rbp()), (0x6ff8, 0x7000));
    assert_eq!(sample.stack()[..4], [0xabcd, 0x7020, frames[1], 0]);
    assert_eq!(sample.stack().len(), 8);
    let part = sample.parts().next().unwrap();
    assert_eq!(
        (part.owner.pid, part.owner.tid, part.owner.image),
        (10, 20, 30)
    );
    assert_eq!(part.frames, frames);
}

#[test]
fn stack_words_stop_where_the_stack_does() {
    let mut fake = Fake::new();
    let (it, _) = thread(&mut fake, 0, 0);
    fake.poke(it.root, 0x7ff0, 1);
    let threads = FakeThreads::new(&fake, vec![it]);
    for (rsp, words) in [(0x7ff0, 2), (0x7ff4, 0), (0x9000, 0), (u64::MAX - 7, 0)] {
        let (sample, _) = take(&fake, &user_at(0x40_0000, rsp, 0), &threads);
        assert_eq!(sample.stack().len(), words, "{rsp:#x}");
    }
    let at = kernel_at(TEXT + 5, STACK.end - 24, 0);
    assert_eq!(take(&fake, &at, &threads).0.stack().len(), 3);
}

#[test]
fn an_idle_cpu_has_kernel_frames_and_no_owner() {
    let mut fake = Fake::new();
    fake.kernel_frames(&[STACK.start + 0x80], &[TEXT + 9], 0);
    let at = Interrupted {
        rflags: ON,
        rcx: 0,
        scratch: 0,
        idle: true,
        ..kernel_at(TEXT + 5, STACK.start + 0x80, STACK.start + 0x80)
    };
    let threads = FakeThreads::new(&fake, vec![]);
    let (sample, findings) = take(&fake, &at, &threads);
    assert_eq!(sample.header().flags, flags::KERNEL | flags::IDLE);
    assert_eq!(findings, Findings::of(0));
    assert_eq!(parts(&sample), [(0, vec![TEXT + 5, TEXT + 9])]);
}

#[test]
fn kernel_frames_come_before_the_threads_own() {
    let mut fake = Fake::new();
    let (it, frames) = thread(&mut fake, 0, 3);
    let at = [STACK.start + 0x80, STACK.start + 0xc0];
    fake.kernel_frames(&at, &[TEXT + 9, STUB + 8], 0x7000);
    let threads = FakeThreads::new(&fake, vec![it]);
    let (sample, findings) = take(&fake, &kernel_at(TEXT + 5, at[0], at[0]), &threads);
    let expected = [&[TEXT + 5, TEXT + 9, STUB + 8][..], &frames].concat();
    assert_eq!(parts(&sample), [(10, expected)]);
    assert_eq!(sample.header().flags, flags::KERNEL | flags::INTERRUPTS_OFF);
    assert_eq!(findings, Findings::of(0));
}

#[test]
fn below_the_frames_of_anothers_entry_is_a_gap() {
    let mut fake = Fake::new();
    let (it, frames) = thread(&mut fake, 0, 3);
    let (other, _) = thread(&mut fake, 1, 3);
    let at = STACK.start + 0x80;
    fake.kernel_frames(&[at], &[STUB + 8], 0x7000);
    let entered_by = [other.regs.end(), 0];
    let threads = FakeThreads::new(&fake, vec![it]);
    for entered in entered_by {
        let at = Interrupted {
            entered,
            ..kernel_at(TEXT + 5, at, at)
        };
        let (sample, findings) = take_entered(&fake, &at, &threads);
        let expected = [&[TEXT + 5, STUB + 8][..], &frames].concat();
        assert_eq!(parts(&sample), [(10, expected)]);
        assert_eq!(findings.flags, flags::incomplete(0));
        assert!(!findings.cut && !findings.unmapped);
        // In a stub there are none.
        let at = Interrupted {
            rip: STUB + 0x24,
            ..at
        };
        let (_, findings) = take_entered(&fake, &at, &threads);
        assert_eq!(findings, Findings::of(0));
    }
}

#[test]
fn in_a_stub_the_programs_frame_pointer_is_not_walked_as_the_kernels() {
    let mut fake = Fake::new();
    let (it, frames) = thread(&mut fake, 0, 2);
    // The program points its RBP at the kernel stack, where something looks like a frame.
    let trap = STACK.start + 0x80;
    fake.kernel_frames(&[trap], &[TEXT + 9], 0);
    let threads = FakeThreads::new(&fake, vec![it]);
    let (sample, findings) = take(&fake, &kernel_at(STUB + 0x24, trap, trap), &threads);
    let expected = [&[STUB + 0x24][..], &frames].concat();
    assert_eq!(parts(&sample), [(10, expected)]);
    assert_eq!(findings, Findings::of(0));
}

#[test]
fn on_the_way_in_the_programs_registers_are_where_the_stub_has_them() {
    let mut fake = Fake::new();
    let (it, frames) = thread(&mut fake, 0, 2);
    let [rip, rsp, rbp] = [Reg::Rip, Reg::Rsp, Reg::Rbp].map(|reg| it.regs.get(reg));
    let wrong = 0x66_6000;
    let kernel = STACK.start + 0x80;
    // RIP, and which of RSP, RBP, RCX, the scratch word and the thread's three registers hold what is the program's there.
    for (at, rsp_now, saved) in [
        // SYSCALL, before and after the change of stacks: the thread's registers are those of the entry before.
        (STUB, rsp, [wrong; 3]),
        (STUB + 7, rsp, [wrong; 3]),
        (STUB + 8, kernel, [wrong; 3]),
        (STUB + 0xf, kernel, [wrong; 3]),
        // An interrupt: the hardware has saved RIP and RSP.
        (STUB + 0x10, kernel, [rip, rsp, wrong]),
        (STUB + 0x1f, kernel, [rip, rsp, wrong]),
        // Behind both, and on the way out.
        (STUB + 0x20, kernel, [rip, rsp, rbp]),
        (TEXT + 4, kernel, [rip, rsp, rbp]),
    ] {
        let entering = MAP.syscall.contains(at);
        let interrupted = Interrupted {
            rcx: if entering { rip } else { wrong },
            scratch: if entering && rsp_now == kernel {
                rsp
            } else {
                wrong
            },
            ..kernel_at(at, rsp_now, if at == TEXT + 4 { 0 } else { rbp })
        };
        let threads = FakeThreads::new(&fake, vec![FakeThread::new(it.root, saved)]);
        let (sample, findings) = take(&fake, &interrupted, &threads);
        let expected = [&[at][..], &frames].concat();
        assert_eq!(parts(&sample), [(10, expected)], "{:#x}", at - STUB);
        assert_eq!(findings, Findings::of(0));
    }
}

#[test]
fn a_kernel_stack_pointer_out_of_place_costs_the_kernel_frames_only() {
    let mut fake = Fake::new();
    let (it, frames) = thread(&mut fake, 0, 1);
    let threads = FakeThreads::new(&fake, vec![it]);
    let (sample, findings) = take(&fake, &kernel_at(TEXT + 5, 0x7000, 0x7000), &threads);
    assert_eq!(parts(&sample), [(10, [&[TEXT + 5][..], &frames].concat())]);
    assert!(findings.cut && sample.stack().is_empty());
    assert_eq!(findings.flags & PARTS, flags::incomplete(0));
}

#[test]
fn user_code_without_a_thread_is_an_address_and_no_more() {
    let fake = Fake::new();
    let threads = FakeThreads::new(&fake, vec![]);
    let (sample, findings) = take(&fake, &user_at(0x40_0000, 0x7000, 0x7000), &threads);
    assert_eq!(parts(&sample), [(0, vec![0x40_0000])]);
    assert!(findings.cut);
    assert_eq!(findings.flags & PARTS, flags::incomplete(1));
}

/// A client wakes at any point of a sample, and serves another from then on: that one is in no chain, since nobody in it waits for it.
#[test]
fn a_link_is_one_of_while_its_thread_waited() {
    let mut whole = 0;
    for when in 0..200 {
        let mut fake = Fake::new();
        let all: Vec<_> = (0..4).map(|n| thread(&mut fake, n, 1).0).collect();
        let rbp = all[0].regs.get(Reg::Rbp);
        let mut threads = FakeThreads::new(&fake, all).chained();
        threads.all[2].serves = None;
        threads.wakes = Some((1, when));
        threads.then_serves = Some(3);
        let (sample, _) = take(&fake, &user_at(0x40_0000, 0x7000, rbp), &threads);
        let pids: Vec<_> = parts(&sample).iter().map(|part| part.0).collect();
        assert!([10, 11, 12].starts_with(&pids), "woken at {when}: {pids:?}");
        whole += usize::from(pids.len() == 3);
    }
    assert!(0 < whole && whole < 200, "it wakes at any point: {whole}");
}

#[test]
fn a_client_whose_registers_make_no_sense_ends_the_chain() {
    let mut fake = Fake::new();
    let all: Vec<_> = (0..3).map(|n| thread(&mut fake, n, 1).0).collect();
    all[1].regs.set(Reg::Rip, 0x4d41 << 48);
    let threads = FakeThreads::new(&fake, all).chained();
    let (sample, findings) = take(&fake, &user_at(0x40_0000, 0x7000, 0x7000), &threads);
    assert_eq!(parts(&sample), [(10, vec![0x40_0000, 0x40_0010])]);
    assert!(findings.cut && findings.flags & flags::CHANGED == 0);
    assert_eq!(findings.flags & PARTS, flags::incomplete(2));
}

#[test]
fn the_parts_that_break_off_are_named() {
    for broken in 0..3 {
        let mut fake = Fake::new();
        let (all, truth): (Vec<_>, Vec<_>) = (0..3).map(|n| thread(&mut fake, n, 2)).unzip();
        // The second frame of one of them leads nowhere.
        fake.poke(all[broken].root, 0x7000, 0x7001);
        let threads = FakeThreads::new(&fake, all).chained();
        let (sample, findings) = take(&fake, &user_at(truth[0][0], 0x7000, 0x7000), &threads);
        let lengths: Vec<_> = parts(&sample)
            .iter()
            .map(|(_, frames)| frames.len())
            .collect();
        let expected: Vec<_> = (0..3).map(|n| if n == broken { 2 } else { 3 }).collect();
        assert_eq!(lengths, expected);
        assert!(findings.cut && findings.flags & flags::TRUNCATED == 0);
        assert_eq!(findings.flags & PARTS, flags::incomplete(1 + broken));
    }
}

#[test]
fn clients_in_a_circle_end() {
    let mut fake = Fake::new();
    let (mut it, _) = thread(&mut fake, 0, 1);
    it.serves = Some(0);
    let threads = FakeThreads::new(&fake, vec![it]);
    let (sample, findings) = take(&fake, &user_at(0x40_0000, 0x7000, 0x7000), &threads);
    assert!(findings.flags & flags::TRUNCATED != 0 && sample.parts().count() > 4);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any depths on any number of clients: every part is a prefix of the truth, long enough, and what is missing is said.
    #[test]
    fn every_part_is_true_and_has_its_share(depths in prop::collection::vec(0u64..60, 1..12), kernel in any::<bool>()) {
        let mut fake = Fake::new();
        let (all, mut truth): (Vec<_>, Vec<_>) =
            depths.iter().enumerate().map(|(n, &depth)| thread(&mut fake, n as u64, depth)).unzip();
        let rbp = all[0].regs.get(Reg::Rbp);
        let threads = FakeThreads::new(&fake, all).chained();
        let at = if kernel { kernel_at(STUB + 0x24, STACK.end, 0) } else { user_at(truth[0][0], 0x7000, rbp) };
        if kernel {
            truth[0].insert(0, STUB + 0x24);
        }
        let (sample, findings) = take(&fake, &at, &threads);
        let parts = parts(&sample);
        prop_assert!(sample.header().words() <= SLOT_WORDS);
        let mut whole = parts.len() == truth.len();
        let mut incomplete = if whole { 0 } else { flags::incomplete(1 + parts.len()) };
        for (index, (pid, frames)) in parts.iter().enumerate() {
            prop_assert_eq!(*pid, 10 + index as u32);
            prop_assert_eq!(frames, &truth[index][..frames.len()]);
            let least = if index == 0 { FIRST_FRAMES } else { CLIENT_FRAMES };
            prop_assert!(frames.len() >= least.min(truth[index].len()));
            if frames.len() < truth[index].len() {
                whole = false;
                incomplete |= flags::incomplete(1 + index);
            }
        }
        prop_assert!(parts[0].1.len() <= FIRST_FRAMES);
        // A client is left out only where it would not have had its share.
        let left = SLOT_WORDS - sample.header().words();
        prop_assert!(parts.len() >= truth.len().min(6) || left < 2 + CLIENT_FRAMES);
        prop_assert_eq!(findings, Findings { flags: incomplete | if whole { 0 } else { flags::TRUNCATED }, ..Findings::of(0) });
        prop_assert!(fake.count() < 1000, "bounded");
    }

    /// A client wakes at some point of the walk, and from there on its memory is another: its part is true or not there,
    /// nothing follows one that is not there, and it is counted.
    #[test]
    fn a_client_that_changes_under_the_walk_is_left_out(depths in prop::collection::vec(0u64..9, 2..5), who in 1usize..4, when in 0u64..150) {
        let mut fake = Fake::new();
        let (all, truth): (Vec<_>, Vec<_>) =
            depths.iter().enumerate().map(|(n, &depth)| thread(&mut fake, n as u64, depth)).unzip();
        let who = who.min(depths.len() - 1);
        let rbp = all[0].regs.get(Reg::Rbp);
        fake.spoilt_after = Some(when);
        let mut threads = FakeThreads::new(&fake, all).chained();
        threads.wakes = Some((who, when));
        let (sample, findings) = take(&fake, &user_at(truth[0][0], 0x7000, rbp), &threads);
        let parts = parts(&sample);
        if let Some((_, frames)) = parts.get(who) {
            prop_assert_eq!(frames, &truth[who]);
            prop_assert!(findings.flags & flags::CHANGED == 0);
        }
        prop_assert!(findings.flags & flags::CHANGED == 0 || parts.len() == who);
    }

    /// Registers, links and memory of any content: a record that a reader accepts, bounded work.
    #[test]
    fn anything_makes_a_record(
        registers in prop::collection::vec(prop::array::uniform3(any::<u64>()), 1..5),
        links in prop::collection::vec(prop::option::of(0usize..5), 5),
        words in prop::collection::vec((0u64..64, any::<u64>()), 0..60),
        [rsp, rbp] in prop::array::uniform2(prop_oneof![any::<u64>(), (0u64..4096).prop_map(|at| STACK.start + at), 0x7000u64..0x7200]),
        rip in prop_oneof![4 => 0..USER_END, 4 => TEXT..TEXT + 0x1000, 1 => any::<u64>(), 1 => (0u64..1 << 48).prop_map(|at| 0x4d41 << 48 | at)],
        [idle, strayed] in any::<[bool; 2]>(),
        wakes in prop::option::of((0usize..5, 0u64..200)),
    ) {
        let mut fake = Fake::new();
        let mut all = Vec::new();
        for (index, [rip, rsp, rbp]) in registers.into_iter().enumerate() {
            let root = fake.frame(1);
            for &(word, value) in &words {
                fake.poke(root, 0x7000 + word * 8, if value.is_multiple_of(3) { 0x7000 + value % 512 } else { value });
                fake.kernel.insert(STACK.start + word * 8, STACK.start + value % 4096);
            }
            let near = |value: u64| if value.is_multiple_of(2) { 0x7000 + value / 2 % 512 } else { value };
            let mut it = FakeThread::new(root, [rip >> (rip % 40), near(rsp), near(rbp)]);
            it.serves = links[index];
            all.push(it);
        }
        let mut threads = FakeThreads::new(&fake, all);
        threads.wakes = wakes;
        let at = Interrupted { rip, rsp, rbp, rflags: ON, rcx: 0, scratch: 0, entered: 0, user: strayed || rip < TEXT, idle };
        let (sample, _) = take(&fake, &at, &threads);
        // A program can jump to what reads as a marker.
        let shown = if rip >> 48 == 0x4d41 { rip | 1 << 63 } else { rip };
        prop_assert_eq!(sample.parts().next().unwrap().frames[0], shown);
        prop_assert!(fake.count() < 1000);
    }
}

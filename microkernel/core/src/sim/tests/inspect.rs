//! What `system_info` says about single objects is what there is.

use super::{Pair, raw};
use crate::base::cpu::CpuId;
use crate::hardware::PhysMemory;
use crate::object::process::COUNTED;
use crate::object::thread::State;
use crate::sim::Sim;
use crate::sim::machine::STACK;
use crate::sim::run::{Entry, Outcome, User};
use ipc::abi::info::{CpuInfo, InfoKind, MemoryInfo, ThreadState};
use ipc::abi::inspect::{
    InterruptInfo, LineInfo, MappingInfo, MappingSource, PageInfo, ProcessInfo, StackInfo,
    StackKind, ThreadInfo, mapping_index, page_index, stack_index,
};
use ipc::abi::layout::INTERRUPTS;
use ipc::abi::{Error, Rights, Syscall};
use std::sync::atomic::Ordering::Relaxed;
use zerocopy::{FromBytes, IntoBytes};

impl Sim {
    /// The record at an index; `None` for a slot that is not in use.
    #[track_caller]
    pub(super) fn info<T: FromBytes + IntoBytes>(
        &mut self,
        kind: InfoKind,
        index: u64,
    ) -> Option<T> {
        let (root, asked) = (self.root, [raw(self.system), kind as u64, index]);
        let [len, ..] = self.issue(root, Syscall::system_info, &asked).results();
        if len == 0 {
            return None;
        }
        assert_eq!(len as usize, size_of::<T>());
        let mut record = T::new_zeroed();
        for (word, to) in record.as_mut_bytes().chunks_mut(8).enumerate() {
            to.copy_from_slice(&self.read(root, word * 8).to_le_bytes());
        }
        Some(record)
    }

    fn all<T: FromBytes + IntoBytes>(&mut self, kind: InfoKind, slots: u32) -> Vec<T> {
        (0..slots.into())
            .filter_map(|slot| self.info(kind, slot))
            .collect()
    }

    fn processes(&mut self) -> Vec<ProcessInfo> {
        let slots = self.kernel.pools.processes.len();
        self.all(InfoKind::Process, slots)
    }

    fn threads(&mut self) -> Vec<ThreadInfo> {
        let slots = self.kernel.pools.threads.len();
        self.all(InfoKind::Thread, slots)
    }

    fn cpus(&mut self) -> Vec<CpuInfo> {
        let cpus = self.kernel.cpus.len() as u32;
        self.all(InfoKind::Cpu, cpus)
    }

    /// The thread that a test plays.
    fn thread_of(&mut self, user: User) -> ThreadInfo {
        self.info(InfoKind::Thread, user.0.0.into()).unwrap()
    }
}

#[test]
fn an_index_past_the_last_slot_is_not_found() {
    let mut sim = Sim::new(2);
    let (root, pools) = (sim.root, &sim.kernel.pools);
    let (processes, threads) = (pools.processes.len().into(), pools.threads.len().into());
    let mappings = mapping_index(processes, 0);
    for (kind, end) in [
        (InfoKind::Memory, 1),
        (InfoKind::Cpu, 2),
        (InfoKind::CommandLine, 1),
        (InfoKind::Version, 1),
        (InfoKind::Process, processes),
        (InfoKind::Thread, threads),
        (InfoKind::Mapping, mappings),
        (InfoKind::Page, page_index(mappings, 0)),
        (InfoKind::Stack, stack_index(2, StackKind::Kernel)),
        (InfoKind::Interrupts, 2),
        (InfoKind::Line, INTERRUPTS.into()),
        (InfoKind::Trace, 1),
    ] {
        for past in [end, u64::MAX] {
            let asked = [raw(sim.system), kind as u64, past];
            let error = sim.issue(root, Syscall::system_info, &asked).error();
            assert_eq!(error, Error::NotFound, "{kind:?} {past}");
        }
        let asked = [raw(sim.system), kind as u64, end - 1];
        sim.issue(root, Syscall::system_info, &asked).results();
    }
    let asked = [raw(sim.system), InfoKind::ALL.len() as u64, 0];
    let error = sim.issue(root, Syscall::system_info, &asked).error();
    assert_eq!(error, Error::BadArgument);
    sim.tear_down();
}

#[test]
fn objects_by_owner_are_what_the_pools_have_in_use() {
    let mut pair = Pair::new(2);
    pair.serving();
    let (program, ended) = (pair.serves, pair.calls);
    pair.kill(ended);
    let sim = &mut pair.sim;
    sim.ticks(20);
    let memory: MemoryInfo = sim.info(InfoKind::Memory, 0).unwrap();
    let processes = sim.processes();
    assert_eq!(memory.pools[0][0], processes.len() as u64);
    for kind in 0..COUNTED {
        let sum: u64 = processes.iter().map(|process| process.objects[kind]).sum();
        assert_eq!(memory.pools[kind + 1][0], sum, "kind {kind}");
    }
    let charged: u64 = processes.iter().map(|process| process.pages).sum();
    let lent: u64 = (processes.iter().skip(1))
        .map(|process| process.quota_pages)
        .sum();
    assert_eq!(memory.processes, charged - lent);
    // The one that ended is still there: the first program has a handle to it.
    let reasons: Vec<_> = processes.iter().map(|process| process.reason).collect();
    assert_eq!(reasons, [0, 0, 2]);
    assert_eq!(processes[1].parent, processes[0].pid);
    assert_eq!((processes[0].parent, processes[1].image), (0, 7));
    let handles = sim
        .kernel
        .process(program.slot)
        .handles
        .lock(&sim.cpu(0).token);
    let held = handles.grants(&sim.kernel.pools.chunks).len();
    drop(handles);
    assert_eq!(processes[1].handles, held as u64);
    pair.end();
}

#[test]
fn a_thread_is_shown_as_it_is() {
    let mut pair = Pair::new(2);
    pair.serving();
    let (server, client, slot) = (pair.server, pair.client, pair.serves.slot);
    let sim = &mut pair.sim;
    let waits = sim.thread_of(client);
    assert_eq!(waits.state, ThreadState::Calling as u64);
    let serves = sim.thread_of(server);
    assert_eq!(serves.process, slot.into());
    let process: ProcessInfo = sim.info(InfoKind::Process, slot.into()).unwrap();
    assert_eq!(serves.pid, process.pid);
    assert_eq!((serves.stack, serves.pinned), (0x7000_0000, u64::MAX));
    assert_eq!(
        serves.buffer,
        sim.thread(server).buffer_object.load(Relaxed)
    );
    let set = [0, 3, 1];
    sim.issue(server, Syscall::thread_set, &set).results();
    let serves = sim.thread_of(server);
    assert_eq!((serves.base_priority, serves.pinned), (3, 1));
    assert!(
        serves.priority >= waits.priority,
        "it has what its client lends"
    );
    let gone = pair.client;
    pair.kill(pair.calls);
    pair.sim.ticks(20);
    let info: Option<ThreadInfo> = pair.sim.info(InfoKind::Thread, gone.0.0.into());
    assert_eq!(info, None, "a thread that has ended");
    pair.end();
}

/// The law of time: a CPU's idle and busy time are all of it, and all busy time is some thread's, that runs, has ended, or is gone.
#[test]
fn all_time_is_somebodys() {
    for cpus in [1, 2, 4] {
        let mut sim = Sim::new(cpus);
        let before = sim.cpus();
        let (spinner, other) = (sim.alone(60), sim.alone(60));
        for _ in 0..7 {
            sim.ticks(1);
            sim.machine.advance(777_777);
        }
        sim.issue(other.1, Syscall::thread_exit, &[]);
        sim.ticks(3);
        let ran = sim.thread_of(spinner.1).cpu_ns;
        sim.machine.advance(1234);
        let (busy, threads) = (sim.cpus(), sim.threads());
        if sim.runs_on(spinner.1).is_some() && cpus > 1 {
            let now = sim.thread_of(spinner.1);
            assert_eq!(now.cpu_ns, ran + 1234, "it runs all the while");
        }
        for (cpu, before) in busy.iter().zip(&before) {
            assert_eq!(cpu.idle_ns + cpu.busy_ns, cpu.at_ns - cpu.started_ns);
            let spent = cpu.idle_ns - before.idle_ns + cpu.busy_ns - before.busy_ns;
            assert_eq!(spent, cpu.at_ns - before.at_ns, "a window is filled");
        }
        let ended = |sim: &mut Sim| -> u64 {
            let times = |process: &ProcessInfo| process.ended_ns + process.gone_ns;
            sim.processes().iter().map(times).sum()
        };
        let all: u64 = busy.iter().map(|cpu| cpu.busy_ns).sum();
        let lived: u64 = threads.iter().map(|thread| thread.cpu_ns).sum();
        let over = ended(&mut sim);
        assert!(over > 0);
        assert_eq!(all, lived + over);
        // With its last handle the process goes, and its time to where its quota came from.
        let root = sim.root;
        sim.close(root, other.0.handle);
        sim.ticks(5);
        assert_eq!(ended(&mut sim), over);
        assert_eq!(sim.processes().len(), 2);
        assert!(sim.processes()[0].gone_ns > 0);
        sim.tear_down();
    }
}

/// The time of a thread that ends is in its process's list of threads or with those that have ended, never in both: who looks
/// at the process holds the lock of that list.
#[test]
fn time_of_a_thread_that_ends_is_counted_once() {
    let mut sim = Sim::new(2);
    let (program, user) = sim.alone(60);
    let index = sim.schedule(user);
    sim.machine.advance(5000);
    sim.prepare(user, Syscall::thread_exit, &[]);
    let process = sim.kernel.process(program.slot);
    let ended = || process.cpu_ticks.load(Relaxed);
    std::thread::scope(|scope| {
        let looking = process.life.lock(&sim.cpu(1 - index).token);
        let ending = scope.spawn(|| sim.come_in(index, Entry::Syscall));
        while sim.state(user) != State::Dead {
            assert!(!ending.is_finished(), "the thread has not ended");
            std::thread::yield_now();
        }
        assert_eq!(ended(), 0, "the thread is still in the list");
        drop(looking);
    });
    assert!(ended() >= 5000);
    sim.leave(index);
    sim.settle();
    sim.tear_down();
}

#[test]
fn mappings_and_their_pages() {
    let mut sim = Sim::new(2);
    let root = sim.root;
    let (program, _) = sim.alone(200);
    let (slot, process) = (u64::from(program.slot), raw(program.handle));
    let mapping = |sim: &mut Sim, n| -> Option<MappingInfo> {
        sim.info(InfoKind::Mapping, mapping_index(slot, n))
    };
    assert_eq!(mapping(&mut sim, 0), None);
    let memory = sim.make(root, Syscall::memory_create, &[process, 3, 0]);
    let (read, write) = (Rights::READ, Rights::READ | Rights::WRITE);
    let map = |memory, at, first, pages, rights: Rights| {
        [process, memory, at, first, pages, rights.bits().into()]
    };
    let first = map(raw(memory), 0x40_0000, 1, 2, write);
    sim.issue(root, Syscall::map, &first).results();
    let row = sim.make(root, Syscall::memory_create, &[process, 2, 1]);
    let part = sim.make(root, Syscall::memory_part, &[raw(row), 1, 1]);
    for (at, memory, first) in [(0x50_0000, row, 1), (0x60_0000, part, 0)] {
        let mapped = map(raw(memory), at, first, 1, read);
        sim.issue(root, Syscall::map, &mapped).results();
    }
    let device = [raw(sim.system), 0xf000_0000, 2];
    let device = sim.make(root, Syscall::memory_physical, &device);
    let mapped = map(raw(device), 0x70_0000, 1, 1, write);
    sim.issue(root, Syscall::map, &mapped).results();

    let seen: Vec<_> = (0..5).filter_map(|n| mapping(&mut sim, n)).collect();
    let pid = sim.processes()[1].pid;
    assert!(seen.iter().all(|mapping| mapping.pid == pid));
    let shown: Vec<_> = seen
        .iter()
        .map(|m| (m.address, m.pages, m.first, m.source, m.rights))
        .collect();
    let (read, write) = (read.bits().into(), write.bits().into());
    assert_eq!(
        shown,
        [
            (0x40_0000, 2, 1, MappingSource::Memory as u64, write),
            (0x50_0000, 1, 1, MappingSource::Contiguous as u64, read),
            (0x60_0000, 1, 0, MappingSource::Contiguous as u64, read),
            (0x70_0000, 1, 1, MappingSource::Device as u64, write),
        ]
    );
    // What the handles allowed, with which they were mapped.
    let allowed = Rights::READ | Rights::WRITE | Rights::DUPLICATE | Rights::TRANSFER;
    let allowed = u64::from(allowed.bits());
    assert!(seen.iter().all(|mapping| mapping.allowed == allowed));
    let mut objects: Vec<_> = seen.iter().map(|mapping| mapping.object).collect();
    objects.dedup();
    assert_eq!(objects.len(), 4, "each object has a number of its own");

    // A page is zero as it was made; then it is not, from a word on.
    let page = |sim: &mut Sim, n, page| -> Option<PageInfo> {
        sim.info(InfoKind::Page, page_index(mapping_index(slot, n), page))
    };
    let zero = PageInfo {
        pid,
        address: 0x40_1000,
        zeroes: 4096,
    };
    assert_eq!(page(&mut sim, 0, 1), Some(zero));
    let user = sim.started(program);
    for (offset, zeroes) in [(4088, 4088), (520, 520), (0, 0)] {
        let cpu = sim.schedule(user);
        let at = sim.machine.touch(CpuId(cpu as u8), 0x40_1000, true);
        sim.machine.write(at.unwrap().offset(offset), 1);
        assert_eq!(page(&mut sim, 0, 1), Some(PageInfo { zeroes, ..zero }));
    }
    assert_eq!(page(&mut sim, 0, 0).unwrap().zeroes, 4096);
    assert_eq!(page(&mut sim, 0, 2), None, "it has two pages");
    assert_eq!(page(&mut sim, 3, 0), None, "registers are not looked at");
    assert_eq!(page(&mut sim, 4, 0), None, "no such mapping");
    for memory in [memory, row, part, device] {
        sim.close(root, memory);
    }
    sim.tear_down();
}

#[test]
fn interrupts_add_up_and_lines_say_who_has_them() {
    let mut sim = Sim::new(2);
    let root = sim.root;
    let bits = sim.make(root, Syscall::notification_create, &[]);
    let taken = [raw(sim.system), 5, raw(bits), 1];
    let line = |sim: &mut Sim, n| -> Option<LineInfo> { sim.info(InfoKind::Line, n) };
    assert_eq!(line(&mut sim, 5), None);
    let interrupt = sim.make(root, Syscall::interrupt_create, &taken);
    let pid = sim.processes()[0].pid;
    let free = LineInfo {
        taken_by: pid,
        driver: 0,
        count: 0,
        by_message: 0,
    };
    assert_eq!(line(&mut sim, 5), Some(free));
    sim.enter(1, Entry::Line(5));
    sim.enter(1, Entry::Spurious);
    sim.ticks(4);
    let acknowledged = [raw(interrupt)];
    sim.issue(root, Syscall::interrupt_ack, &acknowledged)
        .results();
    let used = LineInfo {
        driver: pid,
        count: 1,
        ..free
    };
    assert_eq!(line(&mut sim, 5), Some(used));
    let (cpus, kinds) = (
        sim.cpus(),
        sim.all::<InterruptInfo>(InfoKind::Interrupts, 2),
    );
    for (cpu, kinds) in cpus.iter().zip(&kinds) {
        assert!(kinds.timer >= cpu.ticks && cpu.ticks == 4);
        assert_eq!(cpu.interrupts, kinds.interrupts());
    }
    assert_eq!((kinds[1].lines, kinds[1].spurious), (1, 1));
    let last = [raw(sim.system), u64::MAX, raw(bits), 2];
    let message = sim.make(root, Syscall::interrupt_create, &last);
    let by_message: Vec<_> = (0..INTERRUPTS.into())
        .filter_map(|n| line(&mut sim, n))
        .map(|line| line.by_message)
        .collect();
    assert_eq!(by_message, [0, 1]);
    for handle in [interrupt, message, bits] {
        sim.close(root, handle);
    }
    let left = LineInfo {
        taken_by: 0,
        driver: 0,
        ..used
    };
    assert_eq!(line(&mut sim, 5), Some(left), "it was signalled once");
    sim.tear_down();
}

#[test]
fn a_fault_is_counted_apart_from_interrupts() {
    let mut sim = Sim::new(1);
    let (_, user) = sim.alone(60);
    let root = sim.root;
    sim.issue(root, Syscall::sleep, &[1 << 40]);
    let cpu = sim.schedule(user);
    sim.enter(cpu, Entry::Fault(6));
    assert_eq!(sim.outcome(user), Outcome::Ended);
    sim.machine.advance(1 << 40);
    sim.settle();
    let kinds: InterruptInfo = sim.info(InfoKind::Interrupts, 0).unwrap();
    let cpu: CpuInfo = sim.info(InfoKind::Cpu, 0).unwrap();
    assert_eq!((kinds.exceptions, cpu.interrupts), (1, kinds.interrupts()));
    sim.tear_down();
}

#[test]
fn each_stack_of_each_cpu() {
    let mut sim = Sim::new(2);
    for cpu in 0..2 {
        for which in StackKind::ALL {
            let index = stack_index(cpu, which);
            let stack: StackInfo = sim.info(InfoKind::Stack, index).unwrap();
            let used = cpu * 16 + which as u64;
            assert_eq!((stack.bytes, stack.used), (STACK, used));
        }
    }
    sim.tear_down();
}

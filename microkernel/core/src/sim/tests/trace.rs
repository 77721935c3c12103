//! The trace tells what happened, in order, while it is on.

use super::{Pair, raw, tag};
use crate::base::cpu::CpuId;
use crate::object::Object;
use crate::sim::Sim;
use crate::sim::build::TRACE;
use crate::sim::run::{Entry, User};
use ipc::abi::info::{InfoKind, ThreadState};
use ipc::abi::message::PAYLOAD_MAX;
use ipc::abi::trace::{
    InterruptKind, TRACE_NEWEST, TRACE_READ_MAX, TraceInfo, TraceKind, TraceRecord,
};
use ipc::abi::{Error, NEVER, Syscall};
use std::sync::atomic::Ordering::Relaxed;
use zerocopy::{FromBytes, IntoBytes};

impl Sim {
    fn trace(&mut self, on: u64) {
        let (root, control) = (self.root, [raw(self.system), on]);
        self.issue(root, Syscall::trace_control, &control).results();
    }

    /// What `trace_read` gives: the next position, the records, and how many were lost.
    fn traced(&mut self, cpu: u64, position: u64) -> (u64, Vec<TraceRecord>, u64) {
        let (root, read) = (self.root, [raw(self.system), cpu, position]);
        let [next, len, lost] = self.issue(root, Syscall::trace_read, &read).results();
        let words: Vec<u64> = (0..len as usize)
            .step_by(8)
            .map(|at| self.read(root, at))
            .collect();
        let records = <[TraceRecord]>::ref_from_bytes(words.as_bytes()).unwrap();
        (next, records.to_vec(), lost)
    }

    fn ids(&self, user: User) -> (u32, u32) {
        let thread = self.thread(user);
        let pid = self.kernel.process_of(thread).pid.load(Relaxed);
        (pid, thread.tid())
    }
}

/// What a record says, for one to compare.
fn said(record: &TraceRecord) -> (TraceKind, (u32, u32), u32, [u64; 2]) {
    let who = (record.pid(), record.tid());
    (record.kind().unwrap(), who, record.detail(), record.words)
}

#[test]
fn it_is_off_until_it_is_turned_on() {
    let mut pair = Pair::new(1);
    pair.serving();
    pair.reply(0);
    assert_eq!(pair.sim.traced(0, 0), (0, vec![], 0));
    let sim = &mut pair.sim;
    let on = |sim: &mut Sim| sim.info(InfoKind::Trace, 0).map(|info: TraceInfo| info.on);
    assert_eq!(on(sim), Some(0));
    sim.trace(1);
    assert_eq!(on(sim), Some(1));
    sim.ticks(1);
    sim.trace(0);
    assert_eq!(on(sim), Some(0));
    let (next, records, lost) = sim.traced(0, 0);
    assert!(next > 0 && lost == 0 && records.len() as u64 == next);
    assert_eq!(records[0].kind(), Some(TraceKind::Interrupt));
    sim.ticks(1);
    assert_eq!(sim.traced(0, next), (next, vec![], 0), "off again");
    assert_eq!(sim.traced(0, TRACE_NEWEST), (next, vec![], 0));
    let root = sim.root;
    let system = raw(sim.system);
    for (what, arguments, error) in [
        (Syscall::trace_control, [system, 2, 0], Error::BadArgument),
        (Syscall::trace_read, [system, 1, 0], Error::NotFound),
        (Syscall::trace_read, [system, u64::MAX, 0], Error::NotFound),
    ] {
        assert_eq!(sim.issue(root, what, &arguments).error(), error, "{what:?}");
    }
    pair.end();
}

/// A call with handles and a payload, from the call to the reply, on one CPU.
#[test]
fn a_call_and_its_reply() {
    let mut pair = Pair::new(1);
    pair.receive(NEVER);
    pair.sim.schedule(pair.client);
    let (client, server) = (pair.sim.ids(pair.client), pair.sim.ids(pair.server));
    pair.sim.kernel.tracing.store(true, Relaxed);
    let message = ipc::abi::Tag::new(7, 16, 0).raw();
    let call = [raw(pair.mouth), message, NEVER];
    pair.sim.prepare(pair.client, Syscall::call, &call);
    pair.sim.enter(0, Entry::Syscall);
    pair.sim.prepare(
        pair.server,
        Syscall::reply_receive,
        &[raw(pair.ear), tag(3), NEVER],
    );
    pair.sim.enter(0, Entry::Syscall);
    pair.sim.kernel.tracing.store(false, Relaxed);
    let endpoint = match pair.sim.object(pair.server, pair.ear) {
        Object::Endpoint(endpoint, _) => endpoint.pack(),
        other => panic!("{other:?}"),
    };
    let (_, records, lost) = pair.sim.traced(0, 0);
    let priority = |user: User| -> u32 { pair.sim.thread(user).priority.load(Relaxed).into() };
    let (calling, receiving) = (ThreadState::Calling as u32, ThreadState::Receiving as u32);
    let [to_server, to_client] = [server.1, client.1].map(u64::from);
    let expected = [
        (TraceKind::Call, client, 0, [endpoint, message]),
        (TraceKind::Transfer, client, 0, [to_server, message]),
        (TraceKind::Receive, server, 0, [to_client, message]),
        (TraceKind::Block, client, calling, [NEVER, 0]),
        (TraceKind::Switch, server, priority(pair.server), [0, 0]),
        (TraceKind::Reply, server, 0, [to_client, tag(3)]),
        (TraceKind::Block, server, receiving, [NEVER, endpoint]),
        (TraceKind::Switch, client, priority(pair.client), [0, 0]),
    ];
    assert_eq!(records.iter().map(said).collect::<Vec<_>>(), expected);
    assert_eq!(lost, 0);
    pair.end();
}

/// A program's life, from its making to its end by a fault.
#[test]
fn a_life() {
    let mut sim = Sim::new(1);
    let root = sim.ids(sim.root);
    sim.trace(1);
    let (program, user) = sim.alone(60);
    let it = sim.ids(user);
    let (start, mut records, lost) = sim.traced(0, 0);
    assert_eq!((start, lost), (records.len() as u64, 0));
    let (root_user, far) = (sim.root, [1 << 40]);
    sim.issue(root_user, Syscall::sleep, &far);
    assert_eq!(sim.runs_on(user), Some(0));
    sim.enter(0, Entry::Fault(6));
    sim.settle();
    sim.kernel.tracing.store(false, Relaxed);
    sim.machine.advance(1 << 40);
    sim.settle();
    let (next, rest, lost) = sim.traced(0, start);
    assert_eq!((next - start, lost), (rest.len() as u64, 0));
    records.extend(rest);
    let mut told: Vec<_> = records.iter().map(said).collect();
    told.retain(|event| !matches!(event.0, TraceKind::Interrupt | TraceKind::Idle));
    let (rip, far) = (super::super::build::CODE, far[0]);
    let running = u32::from(sim.thread(user).base_priority.load(Relaxed));
    let expected = [
        (
            TraceKind::ProcessStart,
            (it.0, 0),
            0,
            [u64::from(root.0), 0],
        ),
        (TraceKind::ThreadStart, it, 0, [rip, 0x7000_0000]),
        (TraceKind::Wake, it, 0, [root.1.into(), 0]),
        (
            TraceKind::Block,
            root,
            ThreadState::Sleeping as u32,
            [far, 0],
        ),
        (TraceKind::Switch, it, running, [0, 0]),
        (TraceKind::Fault, it, 6 | 6 << 8, [0xdead, rip]),
        (TraceKind::ProcessEnd, (it.0, 0), 3, [0, 0]),
        (TraceKind::ThreadEnd, it, 0, [0, 0]),
    ];
    assert_eq!(told, expected);
    assert!(sim.kernel.process(program.slot).is_dead());
    sim.tear_down();
}

#[test]
fn interrupts_say_what_they_are_and_whom_they_interrupt() {
    let mut sim = Sim::new(2);
    let root = sim.ids(sim.root);
    sim.trace(1);
    for (cpu, entry, kind, line) in [
        (0, Entry::Kick, InterruptKind::Kick, 0),
        (1, Entry::Line(9), InterruptKind::Line, 9),
        (1, Entry::Spurious, InterruptKind::Spurious, 0),
        (0, Entry::Tick, InterruptKind::Timer, 0),
    ] {
        let (from, ..) = sim.traced(cpu, TRACE_NEWEST);
        sim.enter(cpu as usize, entry);
        let (_, records, _) = sim.traced(cpu, from);
        let who = if cpu == 0 { root } else { (0, 0) };
        let words = [line, 0];
        assert_eq!(
            said(&records[0]),
            (TraceKind::Interrupt, who, kind as u32, words)
        );
    }
    sim.tear_down();
}

/// The newest records overwrite the oldest; what cannot be had is counted, and what is had is at most what a call copies.
#[test]
fn what_is_overwritten_is_counted() {
    let mut sim = Sim::new(1);
    sim.kernel.tracing.store(true, Relaxed);
    let id = CpuId(0);
    for _ in 0..3 * TRACE {
        sim.enter(usize::from(id.0), Entry::Spurious);
    }
    sim.kernel.tracing.store(false, Relaxed);
    let written = sim.cpu(0).trace.written();
    let (next, records, lost) = sim.traced(0, 1);
    assert_eq!((next, records.len()), (written, TRACE));
    assert_eq!(lost, written - 1 - TRACE as u64);
    let numbers: Vec<_> = records.iter().map(|record| record.sequence).collect();
    assert_eq!(
        numbers,
        Vec::from_iter(written - TRACE as u64 + 1..=written)
    );
    assert!(records.is_sorted_by_key(|record| record.tsc));
    const {
        assert!(TRACE <= TRACE_READ_MAX && size_of::<TraceRecord>() * TRACE_READ_MAX <= PAYLOAD_MAX)
    };
    sim.tear_down();
}

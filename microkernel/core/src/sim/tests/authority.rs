//! Authority is a handle: no call does anything without the right one.

use super::*;
use crate::base::pool::Ref;
use crate::handles::Chunk;
use crate::object::process::Counted;
use crate::sim::build::CODE;
use crate::sim::machine::LINES;
use crate::sim::run::Entry;
use ipc::abi::layout::INTERRUPTS;
use ipc::abi::{BY_MESSAGE, ObjectType};

/// What the handle arguments of a call must be, by their names in the table.
fn kind(name: &str, what: Syscall) -> Option<ObjectType> {
    Some(match name {
        "endpoint" => ObjectType::Endpoint,
        "reply" => ObjectType::Reply,
        "notification" => ObjectType::Notification,
        "thread" => ObjectType::Thread,
        "process" => ObjectType::Process,
        "memory" | "buffer" => ObjectType::Memory,
        "system" => ObjectType::System,
        "interrupt" => ObjectType::Interrupt,
        "ports" => ObjectType::Ports,
        "profiler" => ObjectType::Profiler,
        "handle" if what != Syscall::handle_info => return None,
        _ => return None,
    })
}

/// A thread with one handle of each kind that it can have, all without any right, and a place for what is made.
fn powerless(sim: &mut Sim) -> (User, Vec<(ObjectType, Handle)>) {
    let (program, user) = sim.alone(60);
    let root = sim.root;
    let endpoint = sim.make(root, Syscall::endpoint_create, &[]);
    let notification = sim.make(root, Syscall::notification_create, &[]);
    let memory = sim.make(root, Syscall::memory_create, &[0, 1, 0]);
    let system = sim.system;
    let ports = sim.make(root, Syscall::ports_create, &[raw(system), 0x60, 8]);
    let line = [raw(system), 3, raw(notification), 1];
    let line = sim.make(root, Syscall::interrupt_create, &line);
    let (_, thread) = sim.held(program);
    let mut given = Vec::new();
    for (kind, named) in [
        (ObjectType::Endpoint, endpoint),
        (ObjectType::Notification, notification),
        (ObjectType::Memory, memory),
        (ObjectType::System, system),
        (ObjectType::Ports, ports),
        (ObjectType::Interrupt, line),
        (ObjectType::Thread, thread),
        (ObjectType::Process, program.handle),
    ] {
        let there = sim.give(program, named, Rights::empty());
        given.push((kind, there));
    }
    (user, given)
}

/// Each call, with each of its handles in turn naming nothing, something of every other type, or the right thing without a
/// right: it fails, and says why.
#[test]
fn no_call_works_without_its_handle() {
    let mut sim = Sim::new(2);
    let (user, given) = powerless(&mut sim);
    let junk = Handle::new(900, 5);
    let mut looked = 0;
    for &what in Syscall::ALL {
        let Some(needs) = what.arguments().first().and_then(|name| kind(name, what)) else {
            continue;
        };
        let mut tries = vec![(junk, Error::BadHandle)];
        for &(other, named) in &given {
            if other != needs {
                tries.push((named, Error::WrongType));
            } else if !matches!(what, Syscall::memory_info) {
                tries.push((named, Error::MissingRight));
            }
        }
        for (named, error) in tries {
            // The other arguments are of no kind that could be wrong before the handle is.
            let arguments: Vec<u64> = what
                .arguments()
                .iter()
                .enumerate()
                .map(|(place, name)| match (place, *name) {
                    (0, _) => raw(named),
                    (_, "address") => 0x40_0000,
                    (_, "pages" | "bytes" | "count") => 1,
                    (_, "rights") => u64::from(Rights::READ.bits()),
                    (_, "bits" | "badge") => 1,
                    (_, other) => given
                        .iter()
                        .find(|(kind_of, _)| kind(other, what) == Some(*kind_of))
                        .map_or(0, |(_, named)| raw(*named)),
                })
                .collect();
            let refused = sim.issue(user, what, &arguments);
            let Outcome::Returned(Err(got)) = refused else {
                panic!("{what:?} with {named:?}: {refused:?}");
            };
            assert_eq!(got, error, "{what:?} with {named:?}");
            looked += 1;
        }
    }
    assert!(looked > 250, "{looked}");
    sim.issue(user, Syscall::null, &[]).results();
    sim.tear_down();
}

#[test]
fn numbers_without_a_meaning_are_refused() {
    let mut sim = Sim::new(2);
    let root = sim.root;
    for number in [Syscall::ALL.len() as u64, 99, u64::MAX] {
        let cpu = sim.schedule(root);
        sim.prepare(root, Syscall::null, &[]);
        sim.thread(root)
            .regs
            .set(crate::base::regs::Reg::Rax, number);
        sim.enter(cpu, Entry::Syscall);
        assert_eq!(sim.outcome(root).error(), Error::BadSyscall);
    }
    // A handle of more than 32 bits, rights that do not exist.
    let wide = sim.issue(root, Syscall::handle_close, &[1 << 32]);
    assert_eq!(wide.error(), Error::BadArgument);
    let strange = sim.issue(root, Syscall::handle_duplicate, &[0, 1 << 31]);
    assert_eq!(strange.error(), Error::BadArgument);
    sim.tear_down();
}

#[test]
fn a_handle_that_was_closed_names_nothing_ever_after() {
    let mut sim = Sim::new(2);
    let root = sim.root;
    let first = sim.make(root, Syscall::notification_create, &[]);
    sim.close(root, first);
    let second = sim.make(root, Syscall::notification_create, &[]);
    assert_eq!(first.index(), second.index());
    let old = sim.issue(root, Syscall::signal, &[raw(first), 1]);
    assert_eq!(old.error(), Error::BadHandle);
    sim.issue(root, Syscall::signal, &[raw(second), 1])
        .results();
    sim.tear_down();
}

#[test]
fn rights_only_shrink() {
    let mut sim = Sim::new(2);
    let root = sim.root;
    let whole = sim.make(root, Syscall::notification_create, &[]);
    let signal = u64::from((Rights::SIGNAL | Rights::DUPLICATE).bits());
    let less = sim.make(root, Syscall::handle_duplicate, &[raw(whole), signal]);
    let more = u64::from((Rights::SIGNAL | Rights::WAIT).bits());
    let refused = sim.issue(root, Syscall::handle_duplicate, &[raw(less), more]);
    assert_eq!(refused.error(), Error::MissingRight);
    let refused = sim.issue(root, Syscall::wait, &[raw(less), 0]);
    assert_eq!(refused.error(), Error::MissingRight);
    sim.tear_down();
}

/// A line is taken once, masked by each interrupt, and free when its last handle is closed.
#[test]
fn an_interrupt_line_belongs_to_its_handles() {
    let mut sim = Sim::new(2);
    let root = sim.root;
    let bits = sim.make(root, Syscall::notification_create, &[]);
    let create = [raw(sim.system), 4, raw(bits), 16];
    let line = sim.make(root, Syscall::interrupt_create, &create);
    assert!(sim.machine.is_unmasked(4));
    let twice = sim.issue(root, Syscall::interrupt_create, &create);
    assert_eq!(twice.error(), Error::Busy);
    sim.enter(1, Entry::Line(4));
    assert!(!sim.machine.is_unmasked(4));
    let wait = [raw(bits), 0];
    assert_eq!(sim.issue(root, Syscall::wait, &wait).results()[0], 16);
    sim.issue(root, Syscall::interrupt_ack, &[raw(line)])
        .results();
    assert!(sim.machine.is_unmasked(4));
    // A call that it does not fit leaves it alone.
    let mistake = sim.issue(root, Syscall::memory_info, &[raw(line)]);
    assert_eq!(mistake.error(), Error::WrongType);
    let copy = [raw(line), u64::from(Rights::MANAGE.bits())];
    let copy = sim.make(root, Syscall::handle_duplicate, &copy);
    sim.close(root, line);
    assert!(sim.machine.is_unmasked(4), "the copy is still there");
    sim.issue(root, Syscall::interrupt_ack, &[raw(copy)])
        .results();
    sim.close(root, copy);
    assert!(!sim.machine.is_unmasked(4));
    let again = sim.make(root, Syscall::interrupt_create, &create);
    sim.close(root, again);
    let beyond = [raw(sim.system), 24, raw(bits), 1];
    let beyond = sim.issue(root, Syscall::interrupt_create, &beyond);
    assert_eq!(beyond.error(), Error::BadArgument);
    sim.tear_down();
}

/// A line that is signalled by messages is a free one that no device is wired to, and is held like any other.
#[test]
fn an_interrupt_by_message_has_a_line_of_its_own() {
    let mut sim = Sim::new(2);
    let root = sim.root;
    let bits = sim.make(root, Syscall::notification_create, &[]);
    let create = [raw(sim.system), BY_MESSAGE, raw(bits), 2];
    let mut taken = Vec::new();
    for line in LINES..INTERRUPTS {
        let made = sim.issue(root, Syscall::interrupt_create, &create);
        let [handle, address, data] = made.results();
        assert_eq!((address, data), (0xfee0_0000, line.into()));
        taken.push(handle);
    }
    let more = sim.issue(root, Syscall::interrupt_create, &create);
    assert_eq!(more.error(), Error::LimitReached);
    sim.enter(1, Entry::Line(LINES + 3));
    assert!(!sim.machine.is_unmasked(LINES + 3) && sim.machine.is_unmasked(LINES + 2));
    assert_eq!(
        sim.issue(root, Syscall::wait, &[raw(bits), 0]).results()[0],
        2
    );
    sim.issue(root, Syscall::interrupt_ack, &[taken[3]])
        .results();
    assert!(sim.machine.is_unmasked(LINES + 3));
    sim.issue(root, Syscall::handle_close, &[taken[5]])
        .results();
    let again = sim
        .issue(root, Syscall::interrupt_create, &create)
        .results();
    assert_eq!(again[2], u64::from(LINES) + 5);
    sim.tear_down();
}

#[test]
fn ports_are_those_of_the_handle() {
    let mut sim = Sim::new(2);
    let root = sim.root;
    let create = [raw(sim.system), 0x3f8, 8];
    let ports = raw(sim.make(root, Syscall::ports_create, &create));
    sim.issue(root, Syscall::port_write, &[ports, 1, 1, 0x5a])
        .results();
    assert_eq!(
        sim.issue(root, Syscall::port_read, &[ports, 1, 1])
            .results()[0],
        0x5a
    );
    for (offset, bytes) in [(8, 1), (7, 2), (5, 4), (0, 3), (0, 0), (u64::MAX, 1)] {
        let refused = sim.issue(root, Syscall::port_read, &[ports, offset, bytes]);
        assert_eq!(refused.error(), Error::BadArgument, "{offset} {bytes}");
    }
    let reads = [ports, u64::from(Rights::READ.bits())];
    let reads = raw(sim.make(root, Syscall::handle_duplicate, &reads));
    let refused = sim.issue(root, Syscall::port_write, &[reads, 0, 1, 1]);
    assert_eq!(refused.error(), Error::MissingRight);
    for (first, count) in [(0xffff, 2), (0x1_0000, 1), (0, 0)] {
        let create = [raw(sim.system), first, count];
        let refused = sim.issue(root, Syscall::ports_create, &create);
        assert_eq!(refused.error(), Error::BadArgument);
    }
    sim.tear_down();
}

/// Pieces of handle table that another program has: all but those that are in use.
struct Taken {
    taker: Program,
    chunks: Vec<Ref<Chunk>>,
}

impl Taken {
    /// Takes them all, so that there is no place for one more handle of `user`, whose table copies of `named` fill first.
    fn all(sim: &mut Sim, user: User, named: Handle) -> Self {
        let taker = sim.program(20);
        let process = sim.kernel.process_of(sim.thread(user));
        while process.handles.lock(&sim.cpu(0).token).room() > 0 {
            sim.make(user, Syscall::handle_duplicate, &[raw(named), 0]);
        }
        let token = &sim.cpu(0).token;
        let chunks = std::iter::from_fn(|| {
            let taken = sim.kernel.pools.chunks.take(token)?.0;
            let process = sim.kernel.process(taker.slot);
            process.count(Counted::Chunks, u32::MAX).then_some(taken)
        });
        let chunks = chunks.collect();
        Self { taker, chunks }
    }

    fn give_back(self, sim: &Sim) {
        for chunk in self.chunks {
            sim.kernel.pools.chunks.give(&sim.cpu(0).token, chunk);
            let process = sim.kernel.process(self.taker.slot);
            process.uncount(Counted::Chunks);
        }
    }
}

/// What has no place in the caller's table is not made: to unmake it would be work, for which the call would be made again, for ever
/// if it is its own.
#[test]
fn nothing_is_made_that_has_no_place() {
    let mut sim = Sim::new(2);
    let root = sim.root;
    let thing = sim.make(root, Syscall::notification_create, &[]);
    let endpoint = sim.make(root, Syscall::endpoint_create, &[]);
    let memory = sim.make(root, Syscall::memory_create, &[0, 1, 0]);
    let part = sim.make(root, Syscall::memory_create, &[0, 1, 1]);
    let mint = u64::from(Rights::CALL.bits());
    let creations = [
        (Syscall::thread_create, vec![0, CODE, 0, 0, 0, raw(memory)]),
        (
            Syscall::process_create,
            vec![raw(sim.system), 20, 0, raw(thing), 1],
        ),
        (Syscall::memory_create, vec![0, 20, 0]),
        (Syscall::memory_part, vec![raw(part), 0, 1]),
        (Syscall::memory_physical, vec![raw(sim.system), 1 << 40, 1]),
        (Syscall::endpoint_create, vec![]),
        (Syscall::notification_create, vec![]),
        (Syscall::handle_mint, vec![raw(endpoint), 7, mint]),
        (Syscall::handle_duplicate, vec![raw(thing), 0]),
        (
            Syscall::interrupt_create,
            vec![raw(sim.system), 4, raw(thing), 1],
        ),
        (Syscall::ports_create, vec![raw(sim.system), 0x3f8, 8]),
    ];
    let taken = Taken::all(&mut sim, root, thing);
    for (what, arguments) in &creations {
        for _ in 0..3 {
            sim.step(root, *what, arguments);
            assert!(!sim.restarts(root), "{what:?} waits for its own work");
            assert_eq!(sim.outcome(root).error(), Error::OutOfMemory, "{what:?}");
            assert!(!sim.kernel.work.is_busy(), "{what:?} was undone");
        }
    }
    taken.give_back(&sim);
    sim.tear_down();
}

/// A piece of handle table that is on its way back is waited for, with the call that is served still in hand.
#[test]
fn parking_waits_for_a_piece_of_table() {
    let mut pair = Pair::new(2);
    let ending = pair.sim.program(20);
    let root = pair.sim.root;
    let thing = pair.sim.make(root, Syscall::notification_create, &[]);
    pair.sim.give(ending, thing, Rights::SIGNAL);
    let thing = pair.sim.give(pair.serves, thing, Rights::DUPLICATE);
    pair.serving();
    let server = pair.server;
    let taken = Taken::all(&mut pair.sim, server, thing);
    let park = pair.sim.step(server, Syscall::reply_park, &[]);
    assert_eq!(park.error(), Error::OutOfMemory);
    let kill = [raw(ending.handle), 0];
    pair.sim.step(root, Syscall::process_kill, &kill).results();
    assert!(pair.sim.kernel.work.is_busy());
    let parked = pair.sim.make(server, Syscall::reply_park, &[]);
    taken.give_back(&pair.sim);
    let take = [raw(parked)];
    let take = pair.sim.issue(server, Syscall::reply_take, &take);
    take.results();
    pair.reply(2).results();
    assert_eq!(pair.sim.outcome(pair.client).results()[1], tag(2));
    pair.end();
}

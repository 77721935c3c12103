//! `demo`: it runs whole or not at all, and `demo stop` leaves nothing of it.

use ipc::abi::Error;
use ipc::proto::CallError;
use ipc::proto::init::{Ending, InitError};

use super::{Bench, run};
use crate::jobs::JOBS_MAX;

const STARTED: &str = "\
started 7 back: a server, busy with each call
started 8 relay: a server that calls back for each call
started 9 front: a client of relay
started 10 shares 60 30 10: three loops, in these shares of its time
started 11 spinlock 2: two threads that spin for one lock
started 12 syscalls: calls the kernel all the time
look with `profile`, `profile 1000 PID` or `top`; `demo stop` ends all of it
";

#[test]
fn it_starts_its_programs_and_ends_them_clients_first() {
    let mut bench = Bench::default();
    assert_eq!(bench.run("demo"), STARTED);
    assert_eq!(
        bench.system.spawned[3],
        ("shares".into(), ["60", "30", "10"].map(String::from).into())
    );
    assert_eq!(
        bench.run("demo"),
        "demo: it runs already; `demo stop` ends it\n"
    );
    bench.run("run spin &");
    assert_eq!(bench.prompt(), "");
    assert_eq!(bench.run("demo stop"), "ended 6 programs\n");
    assert_eq!(bench.system.killed, [12, 11, 10, 9, 8, 7]);
    assert_eq!(bench.prompt(), "", "their ends are no news");
    assert!(
        bench.system.processes.contains_key(&13),
        "spin is not its own"
    );
    assert_eq!(
        bench.run("demo stop"),
        "demo: it does not run; `demo` starts it\n"
    );
    assert!(bench.run("demo").starts_with("started 14 back: "));
}

#[test]
fn what_is_left_of_it_is_ended() {
    let mut bench = Bench::default();
    bench.run("demo");
    bench.run("kill 8");
    bench.system.end(9, "front", Ending::Exited, 1);
    assert_eq!(bench.prompt(), "front: exited with code 1 (pid 9)\n");
    assert_eq!(
        bench.run("demo"),
        "demo: 4 of its 6 programs still run; `demo stop` ends them\n"
    );
    // One that nobody has heard of yet.
    bench.system.end(10, "shares", Ending::Exited, 0);
    assert_eq!(bench.run("demo stop"), "ended 3 programs\n");
    assert_eq!(bench.prompt(), "");
    assert_eq!(bench.system.processes.len(), 0);
}

#[test]
fn what_cannot_be_started_whole_is_not_started() {
    for (spare, name) in [(0, "back"), (3, "shares"), (5, "syscalls")] {
        let mut bench = Bench::default();
        bench.system.spare = spare;
        bench.system.refuse = Some(CallError::Service(InitError::QuotaExceeded));
        let text = bench.run("demo");
        let last = text.lines().last().unwrap();
        assert_eq!(
            last,
            format!("demo: `{name}`: memory quota used up; nothing of it is left")
        );
        assert_eq!(text.lines().count(), spare + 1);
        assert_eq!(bench.system.processes.len(), 0);
        assert_eq!(bench.prompt(), "");
        assert!(bench.run("demo").ends_with(" all of it\n"));
    }
}

#[test]
fn ctrl_c_while_it_starts_leaves_nothing() {
    let mut bench = Bench::default();
    bench.session.interrupt_after = Some(3);
    let text = bench.run("demo");
    assert!(
        text.ends_with("demo: interrupted; nothing of it is left\n"),
        "{text}"
    );
    assert_eq!(bench.system.processes.len(), 0);
    assert_eq!(bench.prompt(), "");
}

#[test]
fn it_needs_room_for_all_of_its_programs() {
    let mut bench = Bench::default();
    for _ in 0..JOBS_MAX - 5 {
        bench.run("run spin &");
    }
    assert_eq!(
        bench.run("demo"),
        "demo: too many programs of this session are in the background for 6 more\n"
    );
    bench.run("kill 7");
    assert!(bench.run("demo").starts_with("started "));
}

#[test]
fn while_init_does_not_answer_it_is_not_forgotten() {
    let mut bench = Bench::default();
    bench.run("demo");
    bench.system.refuse = Some(CallError::Transport(Error::PeerDied));
    assert_eq!(
        bench.run("demo stop"),
        "demo: it cannot be ended: the other side is gone\n"
    );
    assert_eq!(bench.run("demo stop"), "ended 6 programs\n");
}

#[test]
fn a_wrong_word_is_named() {
    assert_eq!(
        run("demo start"),
        "demo: `start`: it is `stop`, or nothing\n"
    );
    assert_eq!(
        run("demo stop 7"),
        "demo: `7` is too much; usage: demo [stop]\n"
    );
}

//! `ps`, `run`, `kill`, and the ends of background programs.

use ipc::proto::CallError;
use ipc::proto::init::{Ending, InitError};

use super::{Bench, run};
use crate::jobs::JOBS_MAX;
use crate::protocol::Stop;

#[test]
fn ps_prints_a_line_for_each_process() {
    let mut bench = Bench::default();
    bench.system.add(1, "init");
    let shares = bench.system.add(12_345, "shares");
    (shares.state, shares.cpu, shares.cpu_ns, shares.pages) = (2, Some(3), 61_234_567_890, 300);
    assert_eq!(
        bench.run("ps"),
        "\
PID   NAME             STATE CPU        TIME      MEM
1     init             recv    -      0.000s      84K
12345 shares           run     3     61.234s    1200K
"
    );
    assert_eq!(run("ps x"), "ps: `x` is too much; usage: ps\n");
}

#[test]
fn ps_ends_at_the_last_pid_and_at_ctrl_c() {
    let mut bench = Bench::default();
    bench.system.add(u32::MAX, "last");
    assert_eq!(bench.run("ps").lines().count(), 2);
    bench.system.add(1, "init");
    bench.session.calls = 0;
    bench.session.interrupt_after = Some(1);
    assert!(!bench.run("ps").contains("last"));
}

#[test]
fn a_foreground_program_is_waited_for_and_guarded() {
    let mut bench = Bench::default();
    bench.system.end(7, "shares", Ending::Exited, 0);
    assert_eq!(bench.run("run shares 60 \"a b\""), "");
    assert_eq!(
        bench.system.spawned,
        [("shares".into(), vec!["60".into(), "a b".into()])]
    );
    assert_eq!(bench.session.guards, [Stop::Process(7), Stop::Nothing]);
    bench.system.end(8, "sleep", Ending::Exited, 3);
    assert_eq!(
        bench.run("run sleep 1"),
        "sleep: exited with code 3 (pid 8)\n"
    );
}

#[test]
fn ctrl_c_before_there_was_something_to_kill_kills_it() {
    let mut bench = Bench::default();
    bench.session.interrupt_after = Some(0);
    assert_eq!(bench.run("run spin"), "spin: killed (pid 7)\n");
    assert_eq!(bench.system.killed, [7]);
}

#[test]
fn a_background_program_is_started_and_an_abnormal_end_told_once() {
    let mut bench = Bench::default();
    assert_eq!(bench.run("run shares 60 30 10 &"), "started 7 shares\n");
    assert_eq!(bench.system.spawned[0].1, ["60", "30", "10"]);
    assert_eq!(bench.run("run sleep 1 &"), "started 8 sleep\n");
    bench.system.add(50, "later");
    assert_eq!(bench.prompt(), "");
    bench.system.end(7, "shares", Ending::Killed, 0);
    bench.system.end(8, "sleep", Ending::Exited, 0);
    assert_eq!(bench.prompt(), "shares: killed (pid 7)\n");
    assert_eq!(bench.prompt(), "");
}

#[test]
fn ctrl_c_while_a_background_program_starts_ends_it() {
    let mut bench = Bench::default();
    bench.session.interrupt_after = Some(0);
    assert_eq!(bench.run("run spin &"), "");
    assert_eq!(bench.system.killed, [7]);
    bench.session = Default::default();
    assert_eq!(bench.prompt(), "");
}

#[test]
fn an_end_that_init_has_forgotten_is_told_as_such() {
    let mut bench = Bench::default();
    bench.run("run spin &");
    bench.system.processes.clear();
    assert_eq!(
        bench.prompt(),
        "spin: ended; how is no longer known (pid 7)\n"
    );
    assert_eq!(bench.prompt(), "");
}

#[test]
fn the_number_of_background_programs_is_bounded() {
    let mut bench = Bench::default();
    for _ in 0..JOBS_MAX {
        assert!(bench.run("run spin &").starts_with("started "));
    }
    let refused = bench.run("run spin &");
    assert_eq!(
        refused,
        "run: too many programs of this session are in the background\n"
    );
    assert_eq!(bench.system.spawned.len(), JOBS_MAX);
}

#[test]
fn what_cannot_be_run_is_named() {
    let mut bench = Bench::default();
    bench.system.programs = vec!["chain", "spin"];
    bench.system.refuse = Some(CallError::Service(InitError::NoSuchProgram));
    assert_eq!(
        bench.run("run nosuch"),
        "run: `nosuch`: no such program; there are: chain, spin\n"
    );
    assert_eq!(
        bench.run("run averyveryverylongname"),
        "run: `averyveryverylongnam..`: no such program; there are: chain, spin\n"
    );
    for line in ["run", "run &"] {
        assert_eq!(
            bench.run(line),
            "run: a program's name is missing; there are: chain, spin\n"
        );
    }
    let long = format!("run echo {}", "x".repeat(2000));
    assert_eq!(bench.run(&long), "run: too many or too long arguments\n");
    assert!(bench.system.spawned.is_empty());
}

#[test]
fn kill_ends_a_process_and_its_end_is_no_news() {
    let mut bench = Bench::default();
    bench.run("run spin &");
    assert_eq!(bench.run("kill 7"), "killed 7\n");
    assert_eq!(bench.system.killed, [7]);
    assert_eq!(bench.prompt(), "");
    assert_eq!(
        bench.run("kill 7"),
        "kill: pid 7: no such process; `ps` shows those that run\n"
    );
    for word in ["x", "-1", "0", "+7", "99999999999", "7x"] {
        let text = bench.run(&format!("kill {word}"));
        assert_eq!(text, format!("kill: `{word}`: not a pid that `ps` shows\n"));
    }
    assert_eq!(
        bench.run("kill"),
        "kill: a pid is missing; usage: kill PID\n"
    );
    assert_eq!(
        bench.run("kill 1 2"),
        "kill: `2` is too much; usage: kill PID\n"
    );
}

#[test]
fn what_the_session_lives_on_is_not_killed() {
    let mut bench = Bench::default();
    bench.system.add(4, "shell");
    bench.system.own_pid = 4;
    assert_eq!(
        bench.run("kill 4"),
        "kill: pid 4 is this shell: the session would end with it\n"
    );
    assert_eq!(bench.system.killed, []);
    bench.system.refuse = Some(CallError::Service(InitError::Refused));
    assert_eq!(
        bench.run("kill 1"),
        "kill: pid 1 is init: nothing works without it\n"
    );
}

#[test]
fn a_process_that_does_not_go_is_not_waited_for_without_end() {
    let mut bench = Bench::default();
    bench.run("run spin &");
    bench.system.lingering = true;
    assert_eq!(
        bench.run("kill 7"),
        "kill: pid 7 has been told to end, and is not gone yet\n"
    );
    assert_eq!(bench.system.killed, [7]);
}

#[test]
fn ctrl_c_while_ends_are_told_loses_none() {
    let mut bench = Bench::default();
    for pid in [7, 8] {
        bench.run("run spin &");
        bench.system.end(pid, "spin", Ending::Killed, 0);
    }
    bench.session.calls = 0;
    bench.session.interrupt_after = Some(0);
    let told = bench.jobs.report(&mut bench.system, &mut bench.session);
    assert!(told.is_err());
    bench.session = Default::default();
    assert_eq!(
        bench.prompt(),
        "spin: killed (pid 7)\nspin: killed (pid 8)\n"
    );
}

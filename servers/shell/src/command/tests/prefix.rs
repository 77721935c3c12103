//! `repeat`, `time` and `more`.

use ipc::proto::init::Ending;

use super::{Bench, run};
use crate::protocol::Stop;

#[test]
fn repeat_runs_a_command_as_often_as_it_says() {
    let mut bench = Bench::default();
    assert_eq!(bench.run("repeat 3 echo x"), "x\nx\nx\n");
    // Ctrl-C is looked for after each round, for commands that write nothing.
    assert_eq!(bench.session.guards, [Stop::Nothing; 3]);
    for pid in [7, 8] {
        bench.system.end(pid, "sleep", Ending::Exited, 0);
    }
    bench.run("repeat 2 run sleep 10");
    assert_eq!(bench.system.spawned.len(), 2);
}

#[test]
fn a_command_that_cannot_be_done_is_not_repeated_or_timed() {
    assert_eq!(
        run("repeat 3 time kill 9"),
        "kill: pid 9: no such process; `ps` shows those that run\n"
    );
}

#[test]
fn ctrl_c_ends_all_rounds() {
    // While something is written, between two rounds, and where the command itself goes on.
    for after in [4, 5] {
        let mut bench = Bench::default();
        bench.session.interrupt_after = Some(after);
        let text = bench.run("repeat 9 echo x");
        assert!(text.lines().count() <= 2, "{text}");
    }
    let mut bench = Bench::default();
    bench.session.interrupt_after = Some(0);
    assert_eq!(bench.run("repeat 9 run spin"), "spin: killed (pid 7)\n");
    assert_eq!(bench.system.spawned.len(), 1);
    let mut bench = Bench::default();
    bench.session.interrupt_after = Some(1);
    bench.system.profile = Some(Ok("profiled\n".into()));
    assert_eq!(bench.run("repeat 9 profile"), "profiled\n");
}

#[test]
fn time_tells_the_time_and_what_programs_used() {
    let mut bench = Bench::default();
    assert_eq!(bench.run("time echo x"), "x\n0.000s elapsed\n");
    for pid in [7, 8] {
        bench.system.end(pid, "sleep", Ending::Exited, 0);
        let report = bench.system.ended.get_mut(&pid).expect("it ended");
        report.cpu_ns = 1_500_000;
    }
    bench.system.per_wait = 10_000_000;
    assert_eq!(
        bench.run("time repeat 2 run sleep 10"),
        "0.020s elapsed, 0.003s of CPU time in 2 programs\n"
    );
}

#[test]
fn more_has_pages_around_its_command() {
    let mut bench = Bench::default();
    assert_eq!(bench.run("more repeat 2 echo x"), "x\nx\n");
    assert_eq!(bench.session.pages, [true, false]);
}

#[test]
fn prefixes_nest_each_once() {
    assert_eq!(run("time more repeat 2 echo x"), "x\nx\n0.000s elapsed\n");
    for (line, refused) in [
        (
            "time time ps",
            "time: `time` can stand before a command once\n",
        ),
        (
            "repeat 2 more repeat 3 ps",
            "more: `repeat` can stand before a command once\n",
        ),
        (
            "more more ps",
            "more: `more` can stand before a command once\n",
        ),
    ] {
        assert!(run(line).starts_with(refused), "{}", run(line));
    }
    for prefix in ["time", "more"] {
        assert_eq!(
            run(&format!("{prefix} run spin &")),
            format!("run: no & with `{prefix}`: it would not wait for the end of the program\n")
        );
    }
}

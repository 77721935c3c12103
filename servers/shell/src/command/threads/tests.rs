//! `threads` against the fake system.

use ipc::abi::exit::ExitReason;
use ipc::abi::info::ThreadState;
use ipc::proto::init::Ending;

use super::super::tests::Bench;
use crate::fake::FakeKernel;

fn bench() -> Bench {
    let mut bench = Bench::default();
    let kernel = &mut bench.system.kernel;
    kernel.process(1, "init");
    kernel.thread(1);
    kernel.process(4, "shell");
    let thread = kernel.thread(7);
    (thread.state, thread.cpu) = (ThreadState::Calling as u64, 1);
    (thread.priority, thread.base_priority) = (28, 20);
    thread.cpu_ns = 1_234_567_890;
    kernel.threads.push(None);
    let thread = kernel.thread(6);
    (thread.state, thread.pinned, thread.cpu) = (ThreadState::Receiving as u64, 3, 3);
    bench
}

#[test]
fn each_thread_of_the_process_has_a_row() {
    assert_eq!(
        bench().run("threads 4"),
        "  \
  TID STATE CPU PIN PRI BASE        TIME IT
    6 recv    3   3   0    0      0.000s waits for calls
    7 call    1   -  28   20      1.234s waits for an answer
"
    );
}

#[test]
fn every_state_is_explained() {
    for state in ThreadState::ALL {
        let mut bench = bench();
        bench.system.kernel.threads[0].as_mut().unwrap().state = state as u64;
        let text = bench.run("threads 1");
        let name = state.name();
        assert!(
            text.contains(&format!(" {name:<5} ")) && !text.contains('?'),
            "{text}"
        );
    }
}

#[test]
fn a_process_that_has_ended_is_said_to_have() {
    let mut bench = bench();
    bench.system.end(12, "sleep", Ending::Exited, 0);
    assert_eq!(
        bench.run("threads 12"),
        "threads: pid 12 (sleep) has ended\n"
    );
    // Something still names it.
    let shell = bench.system.kernel.processes[1].as_mut().unwrap();
    shell.reason = ExitReason::Killed as u64;
    assert_eq!(bench.run("threads 4"), "threads: pid 4 (shell) has ended\n");
}

/// At any moment, in any way: the rows are all of the process that was asked for, or there are none.
#[test]
fn a_process_that_ends_while_it_is_listed_has_no_rows() {
    for reads in 0..9 {
        for reused in [false, true] {
            let mut bench = bench();
            let mut after = FakeKernel::default();
            after.process(1, "init");
            after.thread(1);
            if reused {
                after.process(5, "other");
                after.thread(8);
            }
            // Pools keep their size.
            after.processes.resize(2, None);
            after.threads.resize(4, None);
            bench.system.end(4, "shell", Ending::Killed, 0);
            bench.system.kernel.change = Some((reads, Box::new(after)));
            let text = bench.run("threads 4");
            let whole = self::bench().run("threads 4");
            let ended = "threads: pid 4 (shell) has ended\n";
            assert!(text == ended || text == whole, "after {reads}: {text}");
        }
    }
}

#[test]
fn bad_input_is_told_what_is_allowed() {
    for (line, said) in [
        ("threads", "threads: a pid is missing; usage: threads PID\n"),
        ("threads x", "threads: `x`: not a pid that `ps` shows\n"),
        ("threads 0", "threads: `0`: not a pid that `ps` shows\n"),
        ("threads -1", "threads: `-1`: not a pid that `ps` shows\n"),
        (
            "threads 4 5",
            "threads: `5` is too much; usage: threads PID\n",
        ),
        (
            "threads 99",
            "threads: pid 99: no such process; `ps` shows those that run\n",
        ),
    ] {
        assert_eq!(bench().run(line), said, "{line}");
    }
}

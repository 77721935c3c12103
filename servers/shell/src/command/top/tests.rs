//! `top` against the fake system: what is shown of a window.

use ipc::abi::info::CpuInfo;

use super::super::tests::Bench;
use crate::fake::FakeKernel;
use crate::protocol::Stop;

const MS: u64 = 1_000_000;

fn cpu(at_ns: u64, busy_ns: u64) -> CpuInfo {
    CpuInfo {
        busy_ns,
        idle_ns: at_ns - busy_ns,
        at_ns,
        ..CpuInfo::default()
    }
}

/// One CPU is idle but for the shell, a thread that began and one that ended; one spins.
fn bench() -> Bench {
    let mut bench = Bench::default();
    bench.system.cpus = vec![cpu(0, 0); 2];
    let kernel = &mut bench.system.kernel;
    kernel.process(4, "shell").ended_ns = 7 * MS;
    *kernel.thread(6) = thread(4, 6, 0, 0);
    *kernel.thread(8) = thread(4, 8, 0, 0);
    kernel.threads.push(None);
    kernel.process(9, "spin");
    *kernel.thread(14) = thread(9, 14, 0, 0);
    let mut later = FakeKernel::default();
    later.process(4, "shell").ended_ns = 37 * MS;
    *later.thread(6) = thread(4, 6, 50 * MS, 1000 * MS);
    later.threads[0].as_mut().unwrap().priority = 20;
    later.process(9, "spin");
    let spin = later.thread(14);
    *spin = thread(9, 14, 1000 * MS, 1000 * MS);
    (spin.cpu, spin.priority) = (1, 10);
    *later.thread(15) = thread(9, 15, 20 * MS, 1000 * MS);
    *later.thread(16) = thread(9, 16, 0, 1000 * MS);
    let cpus = vec![cpu(1000 * MS, 100 * MS), cpu(1000 * MS, 1000 * MS)];
    bench.system.later = Some((cpus, later));
    bench
}

fn thread(pid: u64, tid: u64, cpu_ns: u64, at_ns: u64) -> ipc::abi::inspect::ThreadInfo {
    ipc::abi::inspect::ThreadInfo {
        pid,
        tid,
        cpu_ns,
        at_ns,
        ..Default::default()
    }
}

#[test]
fn every_part_of_the_time_is_somebodys() {
    let text = bench().run("top");
    assert_eq!(
        text,
        "\
1000 ms on 2 cpus, read in 0 us
  CPU%   PID   TID NAME             CPU PRI
 100.0     9    14 spin               1  10
   5.0     4     6 shell              0  20
   2.0     9    15 spin               0   0
   3.0 threads that have ended
cpu busy/idle
 0  10.0/90.0   1 100.0/0.0
total 200.0: threads 107.0, ended 3.0, idle 90.0, off 0.0
"
    );
}

#[test]
fn ctrl_c_ends_the_window_early() {
    let mut bench = bench();
    bench.session.interrupt_after = Some(0);
    let text = bench.run("top 60000");
    assert!(text.starts_with("0 ms on 2 cpus"), "{text}");
    assert_eq!(bench.system.now, 0);
    assert_eq!(bench.session.guards, [Stop::Wait, Stop::Nothing]);
}

#[test]
fn a_late_wake_does_not_end_the_wait() {
    let mut bench = bench();
    bench.run("top 60000");
    assert_eq!(bench.system.now, 60_000 * MS);
}

#[test]
fn it_fits_a_screen_unless_told_otherwise() {
    for cpus in [1, 4, 5, 64] {
        let mut bench = Bench::default();
        bench.system.cpus = vec![cpu(0, 0); cpus];
        let mut later = FakeKernel::default();
        later.process(4_294_967_295, "sixteencharacter");
        for tid in 0..100 {
            *later.thread(tid) = thread(4_294_967_295, tid, MS, 1000 * MS);
        }
        let after = vec![cpu(1000 * MS, 1000 * MS); cpus];
        bench.system.later = Some((after.clone(), later.clone()));
        let text = bench.run("top");
        assert!(text.lines().count() < 24, "{cpus} cpus: {text}");
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert!(text.contains(" more\n"), "{text}");

        bench.system.cpus = vec![cpu(0, 0); cpus];
        bench.system.kernel = FakeKernel::default();
        bench.system.later = Some((after, later));
        let all = bench.run("top 1000 all");
        assert_eq!(all.matches("sixteencharacter").count(), 100, "{all}");
        let total = |text: &str| text.lines().last().map(String::from);
        assert_eq!(total(&all), total(&text));
    }
}

#[test]
fn bad_input_is_told_what_is_allowed() {
    for (line, said) in [
        ("top 0", "top: window `0`: 1 to 60000 milliseconds\n"),
        (
            "top 60001",
            "top: window `60001`: 1 to 60000 milliseconds\n",
        ),
        ("top +5", "top: window `+5`: 1 to 60000 milliseconds\n"),
        ("top 1s", "top: window `1s`: 1 to 60000 milliseconds\n"),
        ("top 1 2", "top: `2` is too much; usage: top [ms] [all]\n"),
        (
            "top 1 all 3",
            "top: `3` is too much; usage: top [ms] [all]\n",
        ),
        ("top all 3", "top: `3` is too much; usage: top [ms] [all]\n"),
    ] {
        assert_eq!(bench().run(line), said, "{line}");
    }
}

//! `objects` against the fake system.

use ipc::abi::exit::ExitReason;

use super::super::tests::Bench;
use crate::fake::FakeKernel;

fn bench() -> Bench {
    let mut bench = Bench::default();
    let kernel = &mut bench.system.kernel;
    let init = kernel.process(1, "init");
    (init.objects, init.handles) = ([1, 4, 2, 30, 5, 3], 60);
    let sleep = kernel.process(12, "sleep");
    (sleep.objects, sleep.handles) = ([0, 0, 0, 2, 0, 0], 0);
    sleep.reason = ExitReason::Exited as u64;
    kernel.processes.insert(1, None);
    let pools = [2, 1, 4, 2, 32, 5, 3];
    bench.system.memory.pools = pools.map(|used| [used, 1000]);
    bench
}

#[test]
fn rows_add_up_to_the_pools() {
    assert_eq!(
        bench().run("objects"),
        "\
PID   NAME              PROC THREAD  ENDPT  NOTIF MEMORY  CHUNK  BADGE HANDLES
1     init                 1      1      4      2     30      5      3      60
12    sleep*               1      0      0      0      2      0      0       0
-     total                2      1      4      2     32      5      3      60
"
    );
}

#[test]
fn what_is_on_no_account_has_a_row_of_its_own() {
    let mut bench = bench();
    bench.system.memory.pools[0][0] += 1;
    bench.system.memory.pools[4][0] -= 2;
    let text = bench.run("objects");
    let rest = "-     changing             1      0      0      0     -2      0      0       -\n";
    assert!(text.contains(rest), "{text}");
}

#[test]
fn a_change_while_it_is_read_makes_it_read_again() {
    let mut bench = bench();
    let settled = FakeKernel {
        change: None,
        ..bench.system.kernel.clone()
    };
    // What is seen first does not add up.
    bench.system.kernel.processes[0].as_mut().unwrap().objects[0] = 7;
    bench.system.kernel.change = Some((4, Box::new(settled)));
    assert_eq!(bench.run("objects"), self::bench().run("objects"));
}

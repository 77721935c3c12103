//! What is done about a server that died, or cannot be started.

use super::*;

#[test]
fn a_server_is_started_again_later_each_time_until_init_gives_up() {
    booted(|bench, ledger| {
        let mut pid = 2;
        for attempt in 0..restart::ATTEMPTS {
            ledger.borrow_mut().end(pid, ExitReason::Faulted, 0);
            bench.poll();
            let told = ledger.borrow().log.last().cloned().unwrap();
            assert!(told.starts_with(&format!("console (pid {pid}): page fault: ")));
            assert_eq!(bench.names(), ["init", "shell"]);
            assert_eq!(
                ledger.borrow().flushed as u32,
                attempt + 1,
                "callers fail at once"
            );
            let at = bench.init.deadline();
            assert_eq!(at - ledger.borrow().now, restart::FIRST_DELAY << attempt);
            ledger.borrow_mut().now = at;
            bench.poll();
            assert_eq!(bench.names(), ["init", "shell", "console"]);
            pid = ledger.borrow().processes.len() as u32;
        }
        let open = ledger.borrow().open;
        ledger.borrow_mut().end(pid, ExitReason::Faulted, 0);
        bench.poll();
        assert_eq!(bench.init.deadline(), ipc::abi::NEVER);
        assert!(
            bench.init.endpoint("console").is_none(),
            "its callers fail from now on"
        );
        assert_eq!(
            ledger.borrow().open,
            open - 2,
            "process and endpoint are closed"
        );
        assert_eq!(bench.spawn("console", false), Ok(pid + 1));
        assert!(bench.init.endpoint("console").is_some());
    });
}

#[test]
fn a_death_that_is_heard_of_in_passing_is_not_lost() {
    booted(|bench, ledger| {
        let spin = bench.spawn("spin", false).unwrap();
        // A console that was started again is looked at after the others.
        ledger.borrow_mut().end(2, ExitReason::Exited, 0);
        bench.poll();
        ledger.borrow_mut().now = bench.init.deadline();
        bench.poll();
        let console = ledger.borrow().processes.len() as u32;
        ledger.borrow_mut().end(console, ExitReason::Exited, 0);
        ledger.borrow_mut().ends_at_flush = Some(spin);
        bench.poll();
        assert_eq!(bench.names(), ["init", "shell"]);
    });
}

#[test]
fn the_death_of_a_program_without_which_nothing_works_ends_the_system() {
    booted(|bench, ledger| {
        ledger.borrow_mut().end(3, ExitReason::Exited, 0);
        bench.poll();
        assert!(ledger.borrow().halted);
        let log = ledger.borrow().log.clone();
        assert_eq!(
            log,
            [
                "shell (pid 3) ended with code 0",
                "nothing works without shell"
            ]
        );
    });
}

#[test]
fn a_program_without_which_nothing_works_may_be_started_again_before_that() {
    let bytes = archive(&["bin/init", "bin/console", "bin/shell"].map(|name| (name, image())));
    let mut config = config();
    config.programs[2].on_death = OnDeath::RestartOrHalt;
    configured(&bytes, config, |bench, ledger| {
        for _ in 0..restart::ATTEMPTS {
            let pid = ledger.borrow().processes.len() as u32;
            ledger.borrow_mut().end(pid, ExitReason::Faulted, 0);
            bench.poll();
            assert!(!ledger.borrow().halted);
            ledger.borrow_mut().now = bench.init.deadline();
            bench.poll();
            assert_eq!(bench.names(), ["init", "console", "shell"]);
        }
        let pid = ledger.borrow().processes.len() as u32;
        ledger.borrow_mut().end(pid, ExitReason::Faulted, 0);
        bench.poll();
        assert!(ledger.borrow().halted);
    });
}

#[test]
fn a_server_that_cannot_be_started_at_boot_is_tried_again() {
    let bytes = archive(&["bin/init", "bin/console", "bin/shell"].map(|name| (name, image())));
    let mut machine = FakeMachine::new();
    let ledger = Rc::clone(&machine.0);
    machine.0.borrow_mut().fail_at = Some(5);
    assert!(machine.own_status().is_ok());
    let archive = Bootfs::parse(&bytes).unwrap();
    let init = Supervisor::new(machine, archive, config()).unwrap();
    let mut bench = Bench {
        init,
        desk: Desk::default(),
        badge: 3,
    };
    bench.init.boot();
    assert_eq!(bench.names(), ["init", "shell"]);
    assert!(ledger.borrow().log[0].contains("console cannot be started"));
    // It did nothing wrong, so it is not given up.
    for _ in 0..2 * restart::ATTEMPTS {
        let mut now = ledger.borrow_mut();
        now.now = bench.init.deadline();
        now.fail_at = Some(now.operations + 5);
        drop(now);
        bench.poll();
        assert_eq!(bench.names(), ["init", "shell"]);
    }
    let mut now = ledger.borrow_mut();
    now.now = bench.init.deadline();
    now.fail_at = None;
    drop(now);
    bench.poll();
    assert_eq!(bench.names(), ["init", "shell", "console"]);
    assert!(!ledger.borrow().halted);
}

#[test]
fn a_server_that_may_not_run_is_treated_as_one_that_died() {
    booted(|bench, ledger| {
        let restart = |bench: &mut Bench<'_>, steps: Option<usize>| {
            let before = ledger.borrow().operations;
            let mut now = ledger.borrow_mut();
            now.now = bench.init.deadline();
            // The last of the steps lets the thread run.
            now.fail_at = steps.map(|steps| before + steps - 1);
            drop(now);
            bench.poll();
            ledger.borrow().operations - before
        };
        ledger.borrow_mut().end(2, ExitReason::Faulted, 0);
        bench.poll();
        let steps = restart(bench, None);
        let open = ledger.borrow().open;
        let console = ledger.borrow().processes.len() as u32;
        ledger.borrow_mut().end(console, ExitReason::Faulted, 0);
        bench.poll();
        restart(bench, Some(steps));
        let told = ledger.borrow().log.last().cloned().unwrap();
        assert_eq!(
            told,
            "console cannot be started: its start: out of memory or kernel objects"
        );
        bench.poll();
        assert_eq!(bench.names(), ["init", "shell"]);
        restart(bench, None);
        assert_eq!(bench.names(), ["init", "shell", "console"]);
        assert_eq!(ledger.borrow().open, open);
    });
}

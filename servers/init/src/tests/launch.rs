//! What can be started, and what a program has then.

use super::*;

#[test]
fn servers_start_with_the_system_and_are_told_of() {
    booted(|bench, ledger| {
        assert_eq!(bench.names(), ["init", "console", "shell"]);
        assert!(ledger.borrow_mut().process(2).started);
        let started: Vec<_> = bench
            .events()
            .into_iter()
            .map(|event| match event.what {
                Happening::Started {
                    name,
                    file,
                    image,
                    build_id,
                    ..
                } => {
                    assert_eq!(build_id[..2], [0xb1, 0xb2]);
                    (
                        event.pid,
                        name.as_str().to_owned(),
                        file.as_str().to_owned(),
                        image,
                    )
                }
                Happening::Ended { .. } => panic!("nothing ended"),
            })
            .collect();
        let expected = [("init", 1), ("console", 2), ("shell", 3)]
            .map(|(name, pid)| (pid, name.to_owned(), format!("bin/{name}"), pid));
        assert_eq!(started, expected);
    });
}

#[test]
fn a_program_gets_its_startup_page_and_nothing_more() {
    booted(|bench, ledger| {
        let stdout = FakeHandle::new(ledger, Rights::CALL | Rights::TRANSFER);
        let mut args = Args::new();
        args.push("a b").unwrap();
        let program = Name::try_from("spin").unwrap();
        let spawn = Spawn {
            program,
            args,
            held: false,
        };
        let pid = bench.client().spawn(&spawn, Some(stdout)).unwrap();
        let mut ledger = ledger.borrow_mut();
        let process = ledger.process(pid);
        let page = StartupPage::read(&process.startup).unwrap();
        assert_eq!(page.name, "spin");
        assert!(page.args().eq(["a b"]));
        let names: Vec<_> = page.handles().map(|(name, _)| name).collect();
        assert_eq!(names, ["stdout", "thread"]);
        assert_eq!((page.heap_base, page.heap_bytes), (0x40_5000, 512 * 1024));
        assert_eq!(process.priority, 3);
        let writable = |&&(_, _, rights): &&(u64, u64, Rights)| rights.contains(Rights::WRITE);
        // Data, stack and IPC buffer; the startup page is not.
        assert_eq!(process.maps.iter().filter(writable).count(), 3);

        let page = StartupPage::read(&ledger.process(2).startup).unwrap();
        let names: Vec<_> = page.handles().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            ["serve:console", "log", "notification", "irq:4", "thread"]
        );
    });
}

#[test]
fn what_cannot_be_started_is_refused_by_name() {
    booted(|bench, _| {
        let refused = |error| Err(CallError::Service(error));
        assert_eq!(
            bench.spawn("nothing", false),
            refused(InitError::NoSuchProgram)
        );
        assert_eq!(
            bench.spawn("default", false),
            refused(InitError::NoSuchProgram)
        );
        assert_eq!(bench.spawn("broken", false), refused(InitError::BadImage));
        assert_eq!(bench.spawn("init", false), refused(InitError::AlreadyRuns));
        assert_eq!(
            bench.spawn("console", false),
            refused(InitError::AlreadyRuns)
        );
        assert_eq!(bench.names().len(), 3);
    });
}

#[test]
fn the_programs_that_can_be_started_are_listed() {
    let files = [
        "init",
        "console",
        "shell",
        "spin",
        "default",
        "chain",
        "a-name-of-17-byte",
    ];
    let files = files.map(|name| (format!("bin/{name}"), image()));
    let mut files: Vec<_> = files
        .iter()
        .map(|(name, data)| (name.as_str(), data.clone()))
        .collect();
    files.push(("kernel.sym", vec![1; 8]));
    let bytes = archive(&files);
    let mut config = config();
    config.programs.push(program("netload"));
    let archive = Bootfs::parse(&bytes).unwrap();
    let init = Supervisor::new(FakeMachine::new(), archive, config).unwrap();
    let mut bench = Bench {
        init,
        desk: Desk::default(),
        badge: 3,
    };
    let mut programs = vec![Name::new()];
    while let Ok(Some(next)) = bench.client().next_program(programs.last().unwrap()) {
        programs.push(next);
    }
    let programs: Vec<&str> = programs.iter().map(Name::as_str).collect();
    assert_eq!(programs, ["", "chain", "netload", "spin"]);
}

#[test]
fn a_held_program_runs_when_released_and_once() {
    booted(|bench, ledger| {
        let pid = bench.spawn("spin", true).unwrap();
        assert!(!ledger.borrow_mut().process(pid).started);
        assert_eq!(bench.client().release(&pid), Ok(()));
        assert!(ledger.borrow_mut().process(pid).started);
        let refused = |error| Err(CallError::Service(error));
        assert_eq!(bench.client().release(&pid), refused(InitError::NotHeld));
        assert_eq!(
            bench.client().release(&99),
            refused(InitError::NoSuchProcess)
        );
    });
}

#[test]
fn a_held_program_ends_with_its_starter() {
    booted(|bench, _| {
        let held = bench.spawn("spin", true).unwrap();
        let running = bench.spawn("spin", false).unwrap();
        bench.badge = 2;
        let others = bench.spawn("spin", true).unwrap();
        bench.init.closed(3);
        bench.poll();
        let mut left = Vec::new();
        let mut from = 4;
        while let Ok(Some(info)) = bench.client().next(&from) {
            from = info.pid + 1;
            left.push(info.pid);
        }
        assert_eq!(left, [running, others]);
        assert!(!left.contains(&held));
    });
}

/// Whatever operation fails, a launch that fails leaves nothing behind.
#[test]
fn a_launch_that_fails_at_any_step_leaves_nothing() {
    booted(|bench, ledger| {
        let open = ledger.borrow().open;
        let mut failures = 0;
        loop {
            let next = ledger.borrow().operations + failures;
            ledger.borrow_mut().fail_at = Some(next);
            let result = bench.spawn("spin", false);
            ledger.borrow_mut().fail_at = None;
            let Err(error) = result else { break };
            assert_eq!(error, CallError::Service(InitError::OutOfMemory));
            bench.poll();
            assert_eq!(ledger.borrow().open, open, "failure {failures} leaks");
            let pid = ledger.borrow().processes.len() as u32;
            if pid > 3 {
                let reason = ledger.borrow_mut().process(pid).status.reason;
                assert_eq!(reason, ExitReason::Killed as u64, "failure {failures}");
            }
            failures += 1;
        }
        assert!(failures > 10, "only {failures} steps can fail");
        assert_eq!(bench.names().len(), 4);
    });
}

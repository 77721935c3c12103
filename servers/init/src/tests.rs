//! init as its callers and the kernel see it.

use std::cell::RefCell;
use std::rc::Rc;

use ipc::abi::exit::ExitReason;
use ipc::abi::startup::StartupPage;
use ipc::abi::{Error, Rights};
use ipc::bootfs::Bootfs;
use ipc::proto::init::{
    Args, Client, Ending, Event, ExitReport, Happening, InitError, Name, Spawn, dispatch,
};
use ipc::proto::system::OnDeath;
use ipc::proto::{CallError, Disposition, Message, Responder, Transport};

use crate::Supervisor;
use crate::fake::elf::{self, Load};
use crate::fake::{FakeHandle, FakeMachine, Ledger, archive, config, program};
use crate::machine::Machine;
use crate::restart;

type Shared = Rc<RefCell<Ledger>>;

/// A responder that keeps the answers to parked calls.
#[derive(Default)]
struct Desk {
    parked: u32,
    answers: Vec<(u32, ExitReport)>,
}

impl Responder for Desk {
    type Handle = FakeHandle;
    type Parked = u32;

    fn park(&mut self) -> Result<u32, Error> {
        self.parked += 1;
        Ok(self.parked)
    }
    fn answer(&mut self, parked: u32, message: &mut Message<FakeHandle>) -> Result<(), Error> {
        self.answers.push((parked, message.get().unwrap()));
        Ok(())
    }
}

/// init and its callers, without a kernel between them.
struct Bench<'a> {
    init: Supervisor<'a, FakeMachine, Desk>,
    desk: Desk,
    badge: u64,
}

impl Transport for &mut Bench<'_> {
    type Handle = FakeHandle;

    fn call(&mut self, message: &mut Message<FakeHandle>) -> Result<(), Error> {
        match dispatch(&mut self.init, &mut self.desk, self.badge, message) {
            Disposition::Reply => Ok(()),
            Disposition::Parked => Err(Error::TimedOut),
        }
    }
}

impl Bench<'_> {
    fn client(&mut self) -> Client<&mut Self> {
        Client::new(self)
    }
    fn spawn(&mut self, program: &str, held: bool) -> Result<u32, CallError<InitError>> {
        let mut args = Args::new();
        args.push("60").unwrap();
        let program = Name::try_from(program).unwrap();
        self.client().spawn(
            &Spawn {
                program,
                args,
                held,
            },
            None,
        )
    }
    fn poll(&mut self) {
        self.init.poll(&mut self.desk);
    }
    fn events(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        let mut position = 0;
        while let Ok(Some(event)) = self.client().next_event(&position) {
            position = event.position + 1;
            events.push(event);
        }
        events
    }
    fn names(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        let mut from = 0;
        while let Ok(Some(info)) = self.client().next(&from) {
            from = info.pid + 1;
            names.push(info.name.as_str().to_owned());
        }
        names
    }
}

fn image() -> Vec<u8> {
    let text = Load {
        address: 0x40_0000,
        flags: 5,
        in_file: 0x1800,
        in_memory: 0x1800,
    };
    let data = Load {
        address: 0x40_2000,
        flags: 6,
        in_file: 0x10,
        in_memory: 0x2000,
    };
    elf::file(0x40_0000, &[text, data])
}

/// Runs a test on a system that has booted: init is 1, console 2, shell 3.
fn booted(test: impl FnOnce(&mut Bench<'_>, &Shared)) {
    let files = ["bin/init", "bin/console", "bin/shell", "bin/spin"].map(|name| (name, image()));
    let bytes = archive(&[files.as_slice(), &[("bin/broken", vec![1; 64])]].concat());
    on(&bytes, test);
}

/// Runs a test on a system that has booted from this archive.
fn on(bytes: &[u8], test: impl FnOnce(&mut Bench<'_>, &Shared)) {
    let machine = FakeMachine::new();
    let ledger = Rc::clone(&machine.0);
    let archive = Bootfs::parse(bytes).unwrap();
    let init = Supervisor::new(machine, archive, config()).unwrap();
    let mut bench = Bench {
        init,
        desk: Desk::default(),
        badge: 3,
    };
    bench.init.boot();
    test(&mut bench, &ledger);
    drop(bench);
    assert_eq!(ledger.borrow().open, 0, "a handle was never closed");
}

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

#[test]
fn waiting_is_answered_at_the_end_and_after_it() {
    booted(|bench, ledger| {
        let pid = bench.spawn("spin", false).unwrap();
        assert_eq!(
            bench.client().wait(&pid),
            Err(CallError::Transport(Error::TimedOut))
        );
        ledger.borrow_mut().end(pid, ExitReason::Faulted, 0);
        ledger.borrow_mut().process(pid).status.reclaimed = 0;
        bench.poll();
        assert!(bench.desk.answers.is_empty(), "its memory is not back yet");
        ledger.borrow_mut().process(pid).status.reclaimed = 1;
        bench.poll();
        let (_, report) = bench.desk.answers.pop().unwrap();
        assert_eq!((report.pid, report.ending), (pid, Ending::Faulted));
        assert_eq!(report.crash.as_ref().unwrap().kind, 1);
        assert_eq!(bench.client().wait(&pid), Ok(report));
        let refused = |error| Err(CallError::Service(error));
        assert_eq!(bench.client().wait(&99), refused(InitError::NoSuchProcess));
        let ended = Err(CallError::Service(InitError::Ended));
        assert_eq!(bench.client().kill(&pid), ended);
    });
}

#[test]
fn the_quotas_of_others_are_not_inits_own_use() {
    booted(|bench, ledger| {
        let given: u64 = [2, 3]
            .map(|pid| ledger.borrow_mut().process(pid).status.quota_pages)
            .iter()
            .sum();
        assert!(given > 0);
        ledger.borrow_mut().process(1).status.pages = given + 42;
        let init = bench.client().next(&1).unwrap().unwrap();
        assert_eq!((init.pid, init.pages), (1, 42));
    });
}

#[test]
fn a_program_that_faults_is_logged_and_one_that_ends_otherwise_is_not() {
    booted(|bench, ledger| {
        for reason in [ExitReason::Exited, ExitReason::Killed, ExitReason::Faulted] {
            let pid = bench.spawn("spin", false).unwrap();
            ledger.borrow_mut().end(pid, reason, 3);
            bench.poll();
        }
        let log = ledger.borrow().log.clone();
        assert_eq!(log.len(), 1, "{log:?}");
        assert!(log[0].starts_with("spin (pid 6): page fault: "), "{log:?}");
    });
}

#[test]
fn init_itself_is_not_killed_and_others_are() {
    booted(|bench, _| {
        assert_eq!(
            bench.client().kill(&1),
            Err(CallError::Service(InitError::Refused))
        );
        let pid = bench.spawn("spin", false).unwrap();
        assert_eq!(bench.client().kill(&pid), Ok(()));
        bench.poll();
        let last = bench.events().pop().unwrap();
        let killed = Happening::Ended {
            ending: Ending::Killed,
            code: 137,
        };
        assert_eq!((last.pid, last.what), (pid, killed));
    });
}

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

/// An archive of these programs, with a bit of the last byte of one of them changed.
fn damaged(names: &[&str], name: &str) -> Vec<u8> {
    let files: Vec<_> = names.iter().map(|&name| (name, image())).collect();
    let mut bytes = archive(&files);
    let file = Bootfs::parse(&bytes).unwrap().find(name).unwrap();
    let last = file.offset + file.data.len() - 1;
    bytes[last] ^= 1;
    bytes
}

#[test]
fn a_damaged_program_is_refused() {
    let names = ["bin/init", "bin/console", "bin/shell", "bin/spin"];
    on(&damaged(&names, "bin/spin"), |bench, ledger| {
        let refused = Err(CallError::Service(InitError::Damaged));
        assert_eq!(bench.spawn("spin", false), refused);
        assert_eq!(bench.spawn("spin", false), refused);
        assert_eq!(bench.names(), ["init", "console", "shell"]);
        assert!(!ledger.borrow().halted);
    });
}

#[test]
fn a_server_whose_file_is_damaged_is_not_tried_again() {
    let names = ["bin/init", "bin/console", "bin/shell"];
    on(&damaged(&names, "bin/console"), |bench, ledger| {
        let log = ledger.borrow().log.clone();
        assert_eq!(
            log,
            ["console cannot be started: its file in bootfs is damaged"]
        );
        assert_eq!(bench.init.deadline(), ipc::abi::NEVER);
        assert!(
            bench.init.endpoint("console").is_none(),
            "its callers fail at once"
        );
        assert_eq!(bench.names(), ["init", "shell"]);
        let mut ledger = ledger.borrow_mut();
        let page = StartupPage::read(&ledger.process(2).startup).unwrap();
        assert!(
            page.handle("console").is_some(),
            "and have something to call"
        );
    });
}

#[test]
fn a_program_without_which_nothing_works_ends_the_system_if_its_file_is_damaged_or_missing() {
    let names = ["bin/init", "bin/console", "bin/shell"];
    for (bytes, why) in [
        (damaged(&names, "bin/shell"), "in bootfs is damaged"),
        (damaged(&names[..2], "bin/init"), "is not in bootfs"),
    ] {
        on(&bytes, |_, ledger| {
            let told = [
                format!("shell cannot be started: its file {why}"),
                "nothing works without shell".into(),
            ];
            assert_eq!(ledger.borrow().log, told);
            assert!(ledger.borrow().halted);
        });
    }
}

#[test]
fn a_program_without_which_nothing_works_may_be_started_again_before_that() {
    let bytes = archive(&["bin/init", "bin/console", "bin/shell"].map(|name| (name, image())));
    let machine = FakeMachine::new();
    let ledger = Rc::clone(&machine.0);
    let mut config = config();
    config.programs[2].on_death = OnDeath::RestartOrHalt;
    let archive = Bootfs::parse(&bytes).unwrap();
    let init = Supervisor::new(machine, archive, config).unwrap();
    let mut bench = Bench {
        init,
        desk: Desk::default(),
        badge: 3,
    };
    bench.init.boot();
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
}

#[test]
fn subscribers_are_signalled_until_they_are_gone() {
    booted(|bench, ledger| {
        let notification = FakeHandle::new(ledger, Rights::SIGNAL);
        assert_eq!(bench.client().subscribe(&(), [notification]), Ok(()));
        let again = FakeHandle::new(ledger, Rights::SIGNAL);
        assert_eq!(bench.client().subscribe(&(), [again]), Ok(()));
        bench.spawn("spin", false).unwrap();
        assert_eq!(
            ledger.borrow().signals,
            1,
            "one subscription for each caller"
        );
        bench.init.closed(3);
        bench.spawn("spin", false).unwrap();
        assert_eq!(ledger.borrow().signals, 1);
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

//! Servers that start on demand: who calls them reaches them, or fails at once.

use super::*;

/// The usual configuration, and a client that calls a relay that calls a server at the back, all on demand.
fn chain() -> SystemConfig {
    let on_demand = |name: &str, serves: &[&str], calls: &[&str]| Program {
        image: "bin/spin".into(),
        serves: serves.iter().map(|&name| name.into()).collect(),
        calls: calls.iter().map(|&name| name.into()).collect(),
        ..program(name)
    };
    let mut config = config();
    config.programs.extend([
        on_demand("front", &[], &["relay"]),
        on_demand("relay", &["relay"], &["back"]),
        on_demand("back", &["back"], &[]),
    ]);
    config
}

fn with_chain(test: impl FnOnce(&mut Bench<'_>, &Shared)) {
    let files = ["bin/init", "bin/console", "bin/shell", "bin/spin"].map(|name| (name, image()));
    configured(&archive(&files), chain(), test);
}

/// The endpoint that a process knows by this name.
fn endpoint(ledger: &Shared, pid: u32, name: &str) -> usize {
    let mut ledger = ledger.borrow_mut();
    let process = ledger.process(pid);
    let page = StartupPage::read(&process.startup).unwrap();
    let handle = page.handle(name).unwrap();
    process.given[handle.index() - 1].endpoint
}

fn is_dead(ledger: &Shared, endpoint: usize) -> bool {
    ledger.borrow().is_dead(endpoint)
}

#[test]
fn a_client_reaches_the_server_that_runs_when_it_starts() {
    with_chain(|bench, ledger| {
        for _ in 0..3 {
            let relay = bench.spawn("relay", false).unwrap();
            let front = bench.spawn("front", false).unwrap();
            let served = endpoint(ledger, relay, "serve:relay");
            assert_eq!(endpoint(ledger, front, "relay"), served);
            assert!(!is_dead(ledger, served));
            let again = bench.spawn("relay", false);
            assert_eq!(again, Err(CallError::Service(InitError::AlreadyRuns)));
            ledger.borrow_mut().end(relay, ExitReason::Killed, 0);
            bench.poll();
            assert!(is_dead(ledger, served), "the client's calls fail at once");
        }
    });
}

#[test]
fn a_client_that_starts_before_its_server_fails_at_once_for_good() {
    with_chain(|bench, ledger| {
        let front = bench.spawn("front", false).unwrap();
        let early = endpoint(ledger, front, "relay");
        assert!(is_dead(ledger, early));
        let relay = bench.spawn("relay", false).unwrap();
        let back = bench.spawn("back", false).unwrap();
        assert!(is_dead(ledger, early));
        assert!(is_dead(ledger, endpoint(ledger, relay, "back")));
        assert!(!is_dead(ledger, endpoint(ledger, back, "serve:back")));
    });
}

#[test]
fn a_server_that_cannot_be_started_leaves_no_endpoint_open() {
    with_chain(|bench, ledger| {
        let open = ledger.borrow().open;
        let mut failures = 0;
        loop {
            let next = ledger.borrow().operations + failures;
            ledger.borrow_mut().fail_at = Some(next);
            let result = bench.spawn("relay", false);
            ledger.borrow_mut().fail_at = None;
            if result.is_ok() {
                break;
            }
            bench.poll();
            assert!(bench.init.endpoint("relay").is_none(), "{failures}");
            assert_eq!(ledger.borrow().open, open, "failure {failures} leaks");
            failures += 1;
        }
        assert!(failures > 10, "only {failures} steps can fail");
    });
}

#[test]
fn a_server_that_init_starts_again_is_not_forgotten_when_somebody_else_fails_to() {
    with_chain(|bench, ledger| {
        let served = endpoint(ledger, 2, "serve:console");
        ledger.borrow_mut().end(2, ExitReason::Faulted, 0);
        bench.poll();
        let due = bench.init.deadline();
        let next = ledger.borrow().operations;
        ledger.borrow_mut().fail_at = Some(next);
        assert!(bench.spawn("console", false).is_err());
        ledger.borrow_mut().fail_at = None;
        assert!(!is_dead(ledger, served), "its callers wait for it");
        assert_eq!(bench.init.deadline(), due);
        ledger.borrow_mut().now = due;
        bench.poll();
        let console = ledger.borrow().processes.len() as u32;
        assert_eq!(endpoint(ledger, console, "serve:console"), served);
    });
}

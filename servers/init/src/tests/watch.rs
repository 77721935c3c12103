//! What callers hear of programs that run and end, and what they can do to them.

use super::*;

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

#[test]
fn anybody_may_read_the_command_line() {
    booted(|bench, _| {
        let line = bench.client().command_line(&()).unwrap();
        assert_eq!(line.as_str(), "verbose ip=10.0.2.15/24");
    });
}

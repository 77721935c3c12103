//! Programs whose file in the boot archive is damaged or missing.

use super::*;

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

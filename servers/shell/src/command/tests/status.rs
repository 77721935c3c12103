//! What came of a line, as who asked from elsewhere is told.

use ipc::proto::init::Ending;
use ipc::proto::remote::Status;

use super::Bench;

#[test]
fn what_cannot_be_done_has_failed() {
    for line in [
        "nosuch",
        "ps x",
        "\"",
        "ps \"",
        "kill 99",
        "ps\nkill 1",
        "echo \u{1b}[2J",
        "repeat 2 nosuch",
        "repeat 2 ps x",
        "time kill",
        "dmesg nowhere",
        "poweroff",
        "exit",
    ] {
        assert_eq!(Bench::default().status(line), Status::Failed, "{line}");
    }
    let mut bench = Bench::default();
    bench.session.observes = true;
    assert_eq!(bench.status("kill 1"), Status::Failed);
}

#[test]
fn what_was_done_is_a_success() {
    for line in ["ps", "echo x", "help", "", "  # nothing", "time ps", "mem"] {
        assert_eq!(Bench::default().status(line), Status::Success, "{line}");
    }
}

#[test]
fn a_program_s_end_is_its_command_s() {
    for (ending, code, status) in [
        (Ending::Exited, 0, Status::Success),
        (Ending::Exited, 3, Status::Failed),
        (Ending::Killed, 0, Status::Failed),
        (Ending::Faulted, 0, Status::Failed),
    ] {
        for line in ["run spin", "time run spin"] {
            let mut bench = Bench::default();
            bench.system.end(7, "spin", ending, code);
            assert_eq!(bench.status(line), status, "{line} {ending:?} {code}");
        }
    }
    // It is repeated all the same: the command did what was asked for.
    let mut bench = Bench::default();
    bench.system.end(7, "spin", Ending::Exited, 3);
    bench.system.end(8, "spin", Ending::Exited, 0);
    assert_eq!(bench.status("repeat 2 run spin"), Status::Failed);
    assert_eq!(bench.system.spawned.len(), 2);
    // In the background it has not ended yet.
    assert_eq!(Bench::default().status("run spin &"), Status::Success);
}

#[test]
fn ctrl_c_is_neither() {
    for (line, after) in [("ps", 0), ("run spin", 0), ("top", 0), ("repeat 9 mem", 3)] {
        let mut bench = Bench::default();
        bench.session.interrupt_after = Some(after);
        assert_eq!(bench.status(line), Status::Interrupted, "{line}");
    }
}

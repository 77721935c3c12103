//! `profile`.

use ipc::proto::CallError;
use ipc::proto::init::Name;
use ipc::proto::profd::{Holder, Refusal, SessionName};

use super::Bench;
use crate::protocol::Stop;

#[test]
fn profile_shows_the_report_of_what_was_asked_for() {
    let mut bench = Bench::default();
    bench.system.profile = Some(Ok("profiled 500 ms\n".into()));
    assert_eq!(bench.run("profile 500 12"), "profiled 500 ms\n");
    let (number, request) = bench.system.requests[0];
    assert_eq!(
        (request.window_ms, request.pid, request.chains),
        (500, Some(12), 8)
    );
    let guards = [Stop::Profile(number), Stop::Nothing];
    assert_eq!(bench.session.guards, guards);
}

#[test]
fn a_profile_that_cannot_be_is_refused_in_one_line_and_nothing_is_asked() {
    let mut bench = Bench::default();
    for line in ["0", "2001", "x", "100 all 8 source foo", "1 all 2 3"] {
        let text = bench.run(&format!("profile {line}"));
        assert!(
            text.starts_with("profile: ") && text.lines().count() == 1,
            "{text}"
        );
    }
    bench.session.interrupt_after = Some(0);
    assert_eq!(bench.run("profile"), "");
    assert!(bench.system.requests.is_empty());
}

#[test]
fn a_second_profile_names_the_holder() {
    let mut bench = Bench::default();
    let holder = Holder {
        pid: 4,
        program: Name::cut("shell"),
        session: SessionName::cut("net 1"),
    };
    bench.system.profile = Some(Err(CallError::Service(Refusal::Busy { holder })));
    assert_eq!(
        bench.run("profile"),
        "profile: session net 1 of shell (pid 4) runs a profile\n"
    );
    assert_eq!(bench.session.guards.last(), Some(&Stop::Nothing));
}

#[test]
fn ctrl_c_names_the_profile_that_it_ends() {
    let mut bench = Bench::default();
    for _ in 0..2 {
        bench.system.profile = Some(Ok(String::new()));
        bench.run("profile");
    }
    let [(first, _), (second, _)] = bench.system.requests[..] else {
        panic!("{:?}", bench.system.requests);
    };
    assert_ne!(first, second);
    let profiles: Vec<_> = bench.session.guards.iter().step_by(2).collect();
    assert_eq!(profiles, [&Stop::Profile(first), &Stop::Profile(second)]);
}

#[test]
fn ctrl_c_ends_the_report() {
    let mut bench = Bench::default();
    // After the two guards: the second one takes notice of what ended the window.
    bench.session.interrupt_after = Some(2);
    bench.system.profile = Some(Ok("profiled 500 ms\n".into()));
    assert_eq!(bench.run("repeat 3 profile"), "");
    assert_eq!(bench.system.requests.len(), 1);
}

//! What `netload` starts, ends and shows.

use ipc::proto::init::Ending;
use ipc::proto::remote::Status;

use super::super::tests::Bench;
use super::*;

fn socket(owner: u32, packets: u64) -> SocketInfo {
    SocketInfo {
        index: 0,
        owner,
        port: Some(7),
        statistics: SocketStatistics {
            received: packets,
            received_bytes: packets * 64,
            sent: packets / 2,
            sent_bytes: packets * 32,
            queue_full: 3,
            unanswered: 1,
            refused: 2,
            failed: 3,
            dropped: 1,
        },
    }
}

#[test]
fn it_starts_the_program_with_the_words_as_they_are() {
    let mut bench = Bench::default();
    assert_eq!(
        bench.run("netload send 10.0.2.2 9 pps=5"),
        "started 7; `netload` says what it does, `netload stop` ends it\n"
    );
    let words = ["send", "10.0.2.2", "9", "pps=5"].map(String::from);
    assert_eq!(bench.system.spawned, [("netload".into(), words.to_vec())]);
    bench.run("netload start");
    assert_eq!(bench.run("netload stop"), "ended 7\nended 8\n");
    assert_eq!(bench.system.killed, [7, 8]);
    let none = "netload: none runs; `netload start` or `netload send` begins one\n";
    assert_eq!(bench.run("netload stop"), none);
    assert_eq!(bench.run("netload"), none);
}

#[test]
fn what_keeps_a_load_from_its_port_is_its_end() {
    let mut bench = Bench::default();
    bench.system.end(7, "netload", Ending::Exited, 2);
    let text = "netload: exited with code 2 (pid 7)\n";
    assert_eq!(bench.status("netload start x"), Status::Failed);
    assert_eq!(std::mem::take(&mut bench.session.text), text);
    // One that sent what it was to send has told so itself.
    bench.system.end(8, "netload", Ending::Exited, 0);
    let line = "netload send 10.0.2.2 9 count=1";
    assert_eq!(bench.status(line), Status::Success);
    assert_eq!(bench.session.text, "");
}

#[test]
fn a_load_has_begun_when_it_has_its_port_or_after_a_while() {
    let mut bench = Bench::default();
    bench.system.lingering = true;
    let begins = [vec![socket(5, 1)], vec![socket(5, 1), socket(7, 0)], vec![]];
    bench.system.sockets = begins.into();
    assert!(bench.run("netload start").starts_with("started 7; "));
    assert_eq!(bench.system.sockets.len(), 1, "it was looked at twice");
    assert!(bench.run("netload start").starts_with("started 8; "));
}

#[test]
fn it_shows_totals_and_rates() {
    let mut bench = Bench::default();
    bench.system.add(9, "netload");
    let cpu = CpuInfo {
        busy_ns: 500,
        at_ns: 1000,
        interrupts: 10,
        syscalls: 20,
        ..CpuInfo::default()
    };
    let later = CpuInfo {
        busy_ns: 500 + 250_000_000,
        at_ns: 1000 + SECOND,
        interrupts: 1010,
        syscalls: 4020,
        ..cpu
    };
    bench.system.cpus = vec![cpu];
    bench.system.later = Some((vec![later], Default::default()));
    // The sockets of others are not its own.
    bench.system.sockets = [
        vec![socket(5, 1), socket(9, 1000)],
        vec![socket(5, 9), socket(9, 3000)],
    ]
    .into();
    assert_eq!(
        bench.run("netload"),
        "\
pid 9, port 7, 1000 ms
received          3000 packets      2000 /s          192000 bytes      128000 /s
sent              1500 packets      1000 /s           96000 bytes       64000 /s
lost                 3
failed               5
refused              2
cpu 0            25.0% busy         1000 interrupts /s      4000 calls /s
"
    );
    bench.system.sockets.clear();
    let text = bench.run("netload");
    assert!(text.starts_with("it has no socket yet\n"), "{text}");
}

#[test]
fn who_may_only_look_starts_and_ends_nothing() {
    for line in ["netload start", "netload send 10.0.2.2 9", "netload stop"] {
        let mut bench = Bench::default();
        bench.session.observes = true;
        bench.system.add(9, "netload");
        let text = bench.run(line);
        assert!(text.starts_with("netload: refused: "), "{text}");
        assert!(bench.system.spawned.is_empty() && bench.system.killed.is_empty());
    }
}

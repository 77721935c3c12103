//! What `net` and `ping` show.

use super::super::tests::Bench;
use super::*;
use ipc::abi::Error;
use ipc::proto::net::{Address, Configured, Counters, Drops, Interface, Link, Pong};
use ipc::proto::remote;

#[test]
fn net_shows_what_the_server_knows() {
    let mut bench = Bench::default();
    assert_eq!(bench.run("net"), "net: no network device\n");
    let interface = Interface {
        mac: [0x52, 0x54, 0, 0x12, 0x34, 0x56],
        link: Link::Up,
        address: Some((Address([10, 0, 2, 15]), 24)),
        gateway: Some(Address([10, 0, 2, 2])),
        configured: Configured::Dhcp,
        sockets: 3,
    };
    let counters = Counters {
        received: 12,
        received_bytes: 3456,
        sent: 7,
        sent_bytes: 890,
        interrupts: 5,
        device_errors: 1,
        drops: Drops {
            checksum: 2,
            queue_full: 40,
            ..Drops::default()
        },
    };
    let statistics = remote::Statistics {
        opened: 3,
        other_version: 1,
        ..remote::Statistics::default()
    };
    bench.system.network = Some(Network {
        interface,
        counters,
        remote: Some(statistics),
    });
    assert_eq!(
        bench.run("net"),
        "\
address     10.0.2.15/24 by DHCP
gateway     10.0.2.2
mac         52:54:00:12:34:56
link        up
sockets     3
received    12 packets, 3456 bytes
sent        7 packets, 890 bytes
interrupts  5
errors      1
dropped     42
           2 wrong checksum
          40 socket full
remote      on
           3 sessions opened
           1 of another version
"
    );
    let interface = Interface {
        address: None,
        gateway: None,
        configured: Configured::Asking,
        ..interface
    };
    bench.system.network = Some(Network {
        interface,
        counters: Counters::default(),
        remote: None,
    });
    let text = bench.run("net");
    let begin = "address     none: no DHCP server has lent one\ngateway     none\n";
    assert!(text.starts_with(begin), "{text}");
    assert!(text.ends_with("dropped     0\nremote      off\n"), "{text}");
}

#[test]
fn ping_says_what_each_answer_took() {
    let mut bench = Bench::default();
    let refused = |error| Err(CallError::Service(error));
    bench.system.pongs = [
        Ok(Pong { ns: 1_234_567 }),
        refused(NetError::Timeout),
        Ok(Pong { ns: 234_567 }),
    ]
    .into();
    assert_eq!(
        bench.run("ping 10.0.2.2 3"),
        "\
10.0.2.2: 1: 1.234 ms
10.0.2.2: 2: no answer
10.0.2.2: 3: 0.234 ms
2 of 3 answered; least 0.234, mean 0.734, most 1.234 ms
"
    );
    assert_eq!(bench.system.now, 2 * SECOND, "a request each second");
    bench.system.pongs = [refused(NetError::Unreachable)].into();
    assert_eq!(
        bench.run("ping 10.0.2.9 1"),
        "10.0.2.9: 1: unreachable\n0 of 1 answered\n"
    );
    bench.system.pongs = [Err(CallError::Transport(Error::PeerDied))].into();
    assert_eq!(bench.run("ping 10.0.2.9"), "ping: the other side is gone\n");
    assert_eq!(bench.run("ping 10.0.2.9"), "ping: no network device\n");
    let no_host = CallError::Service(NetError::BadArgument);
    bench.system.pongs.push_back(Err(no_host));
    assert_eq!(
        bench.run("ping 0.0.0.0"),
        "ping: HOST `0.0.0.0`: 1.0.0.0 to 223.255.255.255, but for 127.0.0.0/8\n"
    );
}

#[test]
fn ping_ends_at_ctrl_c() {
    let mut bench = Bench::default();
    bench.system.pongs = [Ok(Pong { ns: 1000 }), Ok(Pong { ns: 1000 })].into();
    bench.session.interrupt_after = Some(2);
    bench.run("ping 10.0.2.2 1000");
    assert_eq!(bench.system.pongs.len(), 1, "the second was not asked for");
}

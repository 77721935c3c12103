//! The bytes of the network's messages, which programs that were built earlier still send.

use core::net::SocketAddrV4;

use super::*;

fn bytes<T: Serialize>(value: &T) -> Vec<u8> {
    let mut buffer = [0; 256];
    postcard::to_slice(value, &mut buffer).unwrap().to_vec()
}

#[test]
fn wire_bytes_are_pinned() {
    let host = Address([10, 0, 2, 2]);
    let interface = Interface {
        mac: [0x52, 0x54, 0, 0x12, 0x34, 0x56],
        link: Link::Down,
        address: Some((host, 24)),
        gateway: None,
        configured: Configured::Dhcp,
        sockets: 3,
    };
    assert_eq!(
        bytes(&interface),
        [
            0x52, 0x54, 0, 0x12, 0x34, 0x56, 1, 1, 10, 0, 2, 2, 24, 0, 1, 3
        ]
    );
    let counters = Counters {
        received: 1,
        received_bytes: 300,
        drops: Drops {
            malformed: 7,
            waiting_full: 9,
            source: 5,
            ..Drops::default()
        },
        ..Counters::default()
    };
    assert_eq!(
        bytes(&counters),
        [1, 0xac, 2, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 5]
    );
    let ping = Ping {
        host,
        timeout_ms: 300,
        bytes: 56,
    };
    assert_eq!(bytes(&ping), [10, 0, 2, 2, 0xac, 2, 56]);
    assert_eq!(bytes(&Pong { ns: 5 }), [5]);
    let (send, receive) = (Slots { first: 1, count: 2 }, Slots { first: 3, count: 4 });
    assert_eq!(bytes(&Exchange { send, receive }), [1, 2, 3, 4]);
    let (sent, received) = (2, 1);
    assert_eq!(bytes(&Exchanged { sent, received }), [2, 1]);
    let socket = SocketInfo {
        index: 1,
        owner: 300,
        port: Some(7),
        statistics: SocketStatistics {
            received: 2,
            failed: 9,
            ..SocketStatistics::default()
        },
    };
    assert_eq!(
        bytes(&socket),
        [1, 0xac, 2, 1, 7, 2, 0, 0, 0, 0, 0, 0, 9, 0]
    );
    let errors = [
        NetError::NoDevice,
        NetError::PortTaken,
        NetError::TooLarge,
        NetError::Unreachable,
        NetError::Timeout,
        NetError::NotBound,
        NetError::Bound,
        NetError::Quota,
        NetError::Busy,
        NetError::BadArgument,
        NetError::NotASocket,
        NetError::DeviceFailed,
        NetError::DeviceStalled,
    ];
    for (number, error) in errors.iter().enumerate() {
        assert_eq!(bytes(error), [number as u8]);
    }
    assert_eq!(
        OPERATIONS,
        [
            (1, "status"),
            (2, "count"),
            (3, "ping"),
            (4, "socket"),
            (5, "next_socket"),
            (6, "remote"),
            (8, "bind"),
            (9, "send"),
            (10, "receive"),
            (11, "exchange"),
            (12, "statistics"),
        ]
    );
}

#[test]
fn a_slot_s_word_is_pinned() {
    let header = Header {
        peer: SocketAddrV4::new([10, 0, 2, 15].into(), 0x1234),
        len: 64,
    };
    assert_eq!(header.to_word(), 0x0a00_020f_1234_0040);
    assert_eq!(Header::from_word(header.to_word()), header);
    assert_eq!(Header::from_word(u64::MAX).len, u16::MAX);
    assert_eq!(Slots::place(3), (3 * 2048, 3 * 2048 + 8));
    assert_eq!((Slots::pages(1), Slots::pages(128)), (1, 64));
}

#[test]
fn slots_stay_within_those_that_there_are() {
    let fits = |first, count| Slots { first, count }.fits(8);
    assert!(fits(0, 8) && fits(7, 1));
    assert!(!fits(0, 9) && !fits(8, 1) && !fits(0, 0) && !fits(u16::MAX, u16::MAX));
}

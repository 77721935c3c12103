//! Loads of peers on the loopback interface: one that echoes, one that loses and doubles, one that only takes, and none.

use super::*;

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::Ordering;

/// What a load that is over says, and how many datagrams its peer got. What is missing is waited for so long.
fn loaded(
    options: &LoadOptions,
    linger: Duration,
    answers: impl Fn(u64) -> usize + Send,
) -> (Summary, u64) {
    let peer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    peer.set_read_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    let address = peer.local_addr().unwrap();
    let (stop, done) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let (peer, done) = (&peer, &done);
        let taken = scope.spawn(move || {
            let (mut buffer, mut taken) = (vec![0; SIZE_MAX], 0);
            // What is sent is there at once: when the load is over, nothing comes behind what is waiting.
            loop {
                let is_over = done.load(Ordering::Relaxed);
                let Ok((length, from)) = peer.recv_from(&mut buffer) else {
                    if is_over {
                        break;
                    }
                    continue;
                };
                for _ in 0..answers(taken) {
                    peer.send_to(&buffer[..length], from).unwrap();
                }
                taken += 1;
            }
            taken
        });
        let summary = load(address, options, linger, &stop, |_| {}).unwrap();
        done.store(true, Ordering::Relaxed);
        (summary, taken.join().unwrap())
    })
}

/// Longer than any host takes to hand over a datagram.
const PATIENCE: Duration = Duration::from_secs(60);

/// A second of so few datagrams that no host drops any.
fn options() -> LoadOptions {
    LoadOptions {
        peer: String::new(),
        size: 64,
        pps: 200,
        secs: 1,
        threads: 2,
    }
}

#[test]
fn a_peer_that_echoes_loses_nothing() {
    let (summary, taken) = loaded(&options(), PATIENCE, |_| 1);
    let counts = summary.counts();
    assert_eq!((counts.sent, counts.back), (taken, taken), "{summary:?}");
    assert_eq!((counts.again, counts.foreign, counts.refused), (0, 0, 0));
    assert!((1..=200).contains(&taken), "{summary:?}");
}

#[test]
fn what_is_lost_and_what_comes_again_is_counted() {
    // Of each ten one is lost, and one comes three times.
    let (summary, taken) = loaded(&options(), LINGER, |number| match number % 10 {
        0 => 0,
        1 => 3,
        _ => 1,
    });
    let counts = summary.counts();
    let (lost, tripled) = (taken.div_ceil(10), (taken + 8) / 10);
    assert_eq!(counts.sent, taken, "{summary:?}");
    // A host may be so slow that some are not there in time.
    assert!((1..=taken - lost).contains(&counts.back), "{summary:?}");
    assert!(
        counts.again <= 2 * tripled && counts.again > 0,
        "{summary:?}"
    );
}

#[test]
fn a_peer_that_only_takes_is_no_failure() {
    let (summary, taken) = loaded(&options(), PATIENCE, |_| 0);
    assert_eq!(summary.counts().sent, taken);
    assert!(!summary.is_refused());
}

#[test]
fn that_nobody_listens_is_told() {
    let closed = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let summary = load(address, &options(), LINGER, &AtomicBool::new(false), |_| {}).unwrap();
    assert!(summary.is_refused(), "{summary:?}");
}

#[test]
fn a_load_without_end_is_stopped() {
    let endless = LoadOptions {
        secs: 0,
        ..options()
    };
    let stop = AtomicBool::new(true);
    let summary = load(
        "127.0.0.1:9".parse().unwrap(),
        &endless,
        LINGER,
        &stop,
        |_| {},
    )
    .unwrap();
    assert_eq!(summary.counts().sent, 0);
}

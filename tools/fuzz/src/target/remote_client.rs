//! The client of the remote shell against a server that says anything. In the open mode what it says has the right hash, so that
//! everything behind that is reached.

use std::time::Duration;

use arbitrary::{Arbitrary, Unstructured};
use remote_shell::{Client, ClientEvent, Command, DATAGRAM_MAX, Instant, Key, Mode, Purpose};

use super::acts;
use crate::wire::{FROM_SERVER, HELLO, frame, open_packet, packet_header};

/// After so long without a good word from the server each client has given up.
const GONE: Duration = Duration::from_secs(40);
/// Datagrams that may be due at one moment: more, and it turns round and round.
const DUE_MAX: usize = 1000;

#[derive(Arbitrary, Debug)]
enum Act<'a> {
    Raw(&'a [u8]),
    Challenge([u8; 16]),
    Welcome {
        result: u8,
        role: u8,
        version: u8,
        session: u64,
    },
    /// A frame of the session that it was last let into.
    Frame {
        next: u8,
        behind: u32,
        window: u8,
        stream: u8,
        sequence: u8,
        index: u8,
        count: u8,
        bytes: &'a [u8],
    },
    Sealed {
        kind: u8,
        version: u8,
        is_other: bool,
        body: &'a [u8],
    },
    Wait(u16),
    Send(u16),
    Close,
}

struct World {
    now: Instant,
    client: Client,
    session: u64,
    number: u64,
    /// Bytes of chunks that came, and of output that it told of.
    given: usize,
    told: usize,
    ends: usize,
}

impl World {
    fn take(&mut self, datagram: &[u8]) {
        self.client.receive(self.now, datagram);
    }

    fn send(&mut self) {
        let mut datagram = [0; DATAGRAM_MAX];
        let due =
            (0..DUE_MAX).take_while(|_| self.client.transmit(self.now, &mut datagram).is_some());
        assert!(due.count() < DUE_MAX, "the client turns round and round");
        while let Some(event) = self.client.event() {
            match event {
                ClientEvent::Connected { .. } => {}
                ClientEvent::Output(_, bytes) => self.told += bytes.len(),
                _ => self.ends += 1,
            }
        }
        assert!(self.told <= self.given, "output that nobody sent");
        assert!(self.ends <= 1, "it ended twice");
    }

    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            let due = self.client.deadline().unwrap_or(end);
            self.now = due.clamp(
                self.now + Duration::from_micros(1),
                end.max(self.now + Duration::from_micros(1)),
            );
            self.send();
        }
    }

    fn act(&mut self, act: &Act<'_>) {
        // The token of its hellos is of the random bytes, which are zeros.
        let answer = |kind, version, body: &[u8]| {
            open_packet(HELLO, &packet_header(version, kind, 0, 0, 0), body)
        };
        match *act {
            Act::Raw(bytes) => self.take(bytes),
            Act::Challenge(cookie) => self.take(&answer(2, 1, &cookie)),
            Act::Welcome {
                result,
                role,
                version,
                session,
            } => {
                self.session = session;
                let body = [&[result % 6, role % 3, version][..], &session.to_le_bytes()].concat();
                self.take(&answer(3, 1, &body));
            }
            Act::Frame {
                next,
                behind,
                window,
                stream,
                sequence,
                index,
                count,
                bytes,
            } => {
                let chunk = (
                    stream % 5,
                    u64::from(sequence),
                    index.into(),
                    count.into(),
                    bytes,
                );
                let body = frame(next.into(), behind, window, Some(chunk));
                self.given += bytes.len();
                self.frame(1, &body);
            }
            Act::Sealed {
                kind,
                version,
                is_other,
                body,
            } => {
                if is_other {
                    self.take(&answer(kind % 6, version, body));
                } else {
                    self.given += body.len();
                    self.frame(version, body);
                }
            }
            Act::Wait(ms) => self.wait(Duration::from_millis(ms.into())),
            Act::Send(bytes) => {
                let taken = self.client.send(&vec![b'x'; bytes.into()]);
                assert!(taken <= usize::from(bytes));
            }
            Act::Close => self.client.close(self.now),
        }
        self.send();
    }

    fn frame(&mut self, version: u8, body: &[u8]) {
        let header = packet_header(version, 4, 0, self.session, self.number);
        self.number += 1;
        self.take(&open_packet(FROM_SERVER, &header, body));
    }
}

/// The first byte says which client, the rest what it hears.
pub fn run(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let kind: u8 = input.arbitrary().unwrap_or(0);
    let mode = if kind & 1 == 0 {
        Mode::Open
    } else {
        Mode::Keyed(Key::new([1; 32]))
    };
    let now = Instant::from_nanos(1_000_000_000);
    let random = Box::new(|bytes: &mut [u8]| bytes.fill(0));
    let client = match kind >> 1 & 3 {
        0 => Client::ping(mode, random, now),
        1 => Client::new(mode, Purpose::Shell, random, now),
        _ => match Command::new("ps") {
            Ok(command) => Client::new(mode, Purpose::Exec(command), random, now),
            Err(_) => unreachable!("it is a command"),
        },
    };
    let mut world = World {
        now,
        client,
        session: 0,
        number: 0,
        given: 0,
        told: 0,
        ends: 0,
    };
    world.send();
    for act in acts(&mut input) {
        world.act(&act);
    }
    world.wait(GONE);
    assert!(world.client.is_over(), "it waits for ever");
}

//! What `netload` is to do: its command line.
//!
//! `start [PORT] [sink]`: answers each datagram with itself, or takes it and does nothing. `send IP PORT [size=N] [pps=N] [secs=N]
//! [count=N]`: sends; 0 is as fast, as long, or as many as it goes.

use core::net::{Ipv4Addr, SocketAddrV4};
use core::ops::RangeInclusive;

use heapless::Vec;

use crate::ArgumentError;
use crate::arguments::Allowed;

/// How it is written.
pub const USAGE: &str =
    "netload start [PORT] [sink] | send IP PORT [size=64] [pps=0] [secs=0] [count=0]";
/// The port if it is not said: that of the echo service.
pub const PORT: u16 = 7;

const PORTS: RangeInclusive<u64> = 1..=65535;
const SIZE: RangeInclusive<u64> = 0..=1472;
const PPS: RangeInclusive<u64> = 0..=10_000_000;
const SECONDS: RangeInclusive<u64> = 0..=86_400;
const COUNT: RangeInclusive<u64> = 0..=1_000_000_000_000;

/// Ports below this are services', some of which answer whatever comes.
const SERVICES: u16 = 1024;

/// Whether what came from a port is answered at port `own`. Another `netload` at that port, or an echo service, would answer the answer, and
/// so on for ever; one datagram with a forged source is enough to begin it.
#[must_use]
pub const fn may_answer(own: u16, from: u16) -> bool {
    from >= SERVICES && from != own
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Answer each datagram with itself.
    Echo {
        /// At this port.
        port: u16,
    },
    /// Take each datagram.
    Sink {
        /// At this port.
        port: u16,
    },
    /// Send.
    Send(Stream),
}

/// A stream of datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Where to.
    pub to: SocketAddrV4,
    /// Bytes of each.
    pub size: u16,
    /// How many in a second; 0: as many as it goes.
    pub pps: u64,
    /// For how many seconds; 0: without end.
    pub seconds: u64,
    /// How many in all; 0: without end.
    pub count: u64,
}

impl Stream {
    /// How many may have been sent after so many nanoseconds.
    #[must_use]
    pub fn allowed(&self, ns: u64) -> u64 {
        let end = match self.count {
            0 => u64::MAX,
            count => count,
        };
        let paced = match self.pps {
            0 => u64::MAX,
            pps => {
                let whole = u128::from(pps) * u128::from(ns) / 1_000_000_000;
                u64::try_from(whole).unwrap_or(u64::MAX).saturating_add(1)
            }
        };
        paced.min(end)
    }

    /// Nanoseconds from the begin to when one more than `sent` may be sent.
    #[must_use]
    pub fn due(&self, sent: u64) -> u64 {
        let ns = u128::from(sent) * 1_000_000_000;
        let ns = ns.div_ceil(u128::from(self.pps.max(1)));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// Whether that is all, after so many nanoseconds.
    #[must_use]
    pub const fn is_over(&self, sent: u64, ns: u64) -> bool {
        let out_of_time = self.seconds > 0 && ns >= self.seconds * 1_000_000_000;
        out_of_time || (self.count > 0 && sent >= self.count)
    }
}

fn number<'a>(
    name: &'static str,
    word: &'a str,
    range: &RangeInclusive<u64>,
) -> Result<u64, ArgumentError<'a>> {
    let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let number = word.parse().ok().filter(|number| range.contains(number));
    number.filter(|_| digits).ok_or(ArgumentError::Wrong {
        name,
        word,
        allowed: range.into(),
    })
}

/// Reads a command line.
///
/// # Errors
/// The first word that is wrong, or what is missing.
pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Load, ArgumentError<'a>> {
    let mut words = words.into_iter();
    let (name, allowed) = ("WHAT", Allowed::OneOf(&["start", "send"]));
    match words.next() {
        None => Err(ArgumentError::Missing { name, allowed }),
        Some("start") => start(words),
        Some("send") => send(words),
        Some(word) => Err(ArgumentError::Wrong {
            name,
            word,
            allowed,
        }),
    }
}

fn start<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<Load, ArgumentError<'a>> {
    let mut word = words.next();
    let mut port = PORT;
    if let Some(text) = word.filter(|word| *word != "sink") {
        // In the range of ports.
        port = number("PORT", text, &PORTS)? as u16;
        word = words.next();
    }
    let load = match word {
        None => return Ok(Load::Echo { port }),
        Some("sink") => Load::Sink { port },
        Some(word) => {
            return Err(ArgumentError::Wrong {
                name: "netload start",
                word,
                allowed: Allowed::OneOf(&["sink"]),
            });
        }
    };
    match words.next() {
        None => Ok(load),
        Some(word) => Err(ArgumentError::TooMany { word, usage: USAGE }),
    }
}

fn send<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<Load, ArgumentError<'a>> {
    let (name, allowed) = ("IP", Allowed::Address);
    let host = words.next();
    let host = host.ok_or(ArgumentError::Missing { name, allowed })?;
    let address: Ipv4Addr = host.parse().map_err(|_| ArgumentError::Wrong {
        name,
        word: host,
        allowed,
    })?;
    let (name, allowed) = ("PORT", Allowed::from(&PORTS));
    let port = words.next();
    let port = port.ok_or(ArgumentError::Missing { name, allowed })?;
    let port = number(name, port, &PORTS)? as u16;
    let mut stream = Stream {
        to: SocketAddrV4::new(address, port),
        size: 64,
        pps: 0,
        seconds: 0,
        count: 0,
    };
    let mut given: Vec<&str, 4> = Vec::new();
    for word in words {
        let option = match word.split_once('=') {
            Some(("size", size)) => {
                stream.size = number("size", size, &SIZE)? as u16;
                "size"
            }
            Some(("pps", pps)) => {
                stream.pps = number("pps", pps, &PPS)?;
                "pps"
            }
            Some(("secs", seconds)) => {
                stream.seconds = number("secs", seconds, &SECONDS)?;
                "secs"
            }
            Some(("count", count)) => {
                stream.count = number("count", count, &COUNT)?;
                "count"
            }
            _ => {
                return Err(ArgumentError::Wrong {
                    name: "netload send",
                    word,
                    allowed: Allowed::OneOf(&["size=N", "pps=N", "secs=N", "count=N"]),
                });
            }
        };
        // There is room for each of them once.
        if given.contains(&option) || given.push(option).is_err() {
            return Err(ArgumentError::Twice { option });
        }
    }
    Ok(Load::Send(stream))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Load, String> {
        parse(line.split_whitespace()).map_err(|error| error.to_string())
    }

    fn stream(line: &str) -> Stream {
        match read(line) {
            Ok(Load::Send(stream)) => stream,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_would_answer_an_answer_gets_none() {
        for (own, from, may) in [
            (7, 7, false),
            (7, 19, false),
            (7, 1023, false),
            (7, 1024, true),
            (7, 51_839, true),
            (5000, 5000, false),
            (5000, 5001, true),
        ] {
            assert_eq!(may_answer(own, from), may, "{own} {from}");
        }
    }

    #[test]
    fn what_is_not_said_has_a_default() {
        assert_eq!(read("start"), Ok(Load::Echo { port: 7 }));
        assert_eq!(read("start 9000"), Ok(Load::Echo { port: 9000 }));
        assert_eq!(read("start sink"), Ok(Load::Sink { port: 7 }));
        assert_eq!(read("start 9 sink"), Ok(Load::Sink { port: 9 }));
        let plain = stream("send 10.0.2.2 9");
        assert_eq!(plain.to, "10.0.2.2:9".parse().unwrap());
        assert_eq!(
            (plain.size, plain.pps, plain.seconds, plain.count),
            (64, 0, 0, 0)
        );
        let said = stream("send 10.0.2.2 9 count=4 size=1472 secs=3 pps=2");
        assert_eq!(
            (said.size, said.pps, said.seconds, said.count),
            (1472, 2, 3, 4)
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, says) in [
            ("", "WHAT is missing: start|send"),
            ("stop", "WHAT `stop`: start|send"),
            ("start 0", "PORT `0`: 1 to 65535"),
            ("start 65536", "PORT `65536`: 1 to 65535"),
            ("start 9 9", "netload start `9`: sink"),
            ("send", "IP is missing: an IPv4 address"),
            ("send host 9", "IP `host`: an IPv4 address"),
            ("send 10.0.2.2", "PORT is missing: 1 to 65535"),
            ("send 10.0.2.2 9 size=1473", "size `1473`: 0 to 1472"),
            ("send 10.0.2.2 9 pps=+1", "pps `+1`: 0 to 10000000"),
            (
                "send 10.0.2.2 9 size=64 pps=1 size=65",
                "`size` is given twice: once is enough",
            ),
            (
                "send 10.0.2.2 9 64",
                "netload send `64`: size=N|pps=N|secs=N|count=N",
            ),
        ] {
            assert_eq!(read(line), Err(says.into()), "{line}");
        }
        let long = read("start 9 sink x").unwrap_err();
        assert_eq!(long, format!("`x` is too much; usage: {USAGE}"));
    }

    #[test]
    fn a_pace_is_kept() {
        let paced = stream("send 10.0.2.2 9 pps=1000 secs=2");
        assert_eq!(paced.allowed(0), 1);
        assert_eq!(paced.allowed(1_500_000), 2);
        assert_eq!(paced.allowed(1_000_000_000), 1001);
        for sent in [0, 1, 7, 999] {
            let due = paced.due(sent);
            assert!(paced.allowed(due) > sent);
            assert!(due == 0 || paced.allowed(due - 1) <= sent);
        }
        assert!(!paced.is_over(5000, 1_999_999_999) && paced.is_over(0, 2_000_000_000));
        let counted = stream("send 10.0.2.2 9 count=3");
        assert_eq!(counted.allowed(u64::MAX), 3);
        assert!(counted.is_over(3, 0) && !counted.is_over(2, u64::MAX));
        assert_eq!(
            stream("send 10.0.2.2 9 pps=10000000").allowed(u64::MAX),
            184_467_440_737_095_517
        );
    }
}

//! Judges samples: what is known of the storm's processes must be what a sample says of them.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ipc::abi::layout::USER_END;
use ipc::abi::profile::{Marker, flags};
use sample_ring::Sample;

use crate::code::{Code, Wrong};

/// Image of the storm's first process; each has one of its own.
const IMAGES: u32 = 0x4000_0000;
/// Where the first has its code, and how far apart they are: no two have a page table in common, were they in one space.
const CODE: u64 = 0x1000_0000_0000;
const APART: u64 = 0x20_0000;
/// Processes of which it is remembered which they were.
const REMEMBERED: usize = 4096;
/// Faults that are kept, to be shown.
const SHOWN: usize = 8;

/// One of the storm's processes: they are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number(pub u32);

impl Number {
    /// The image that the kernel knows it by.
    #[must_use]
    pub const fn image(self) -> u32 {
        IMAGES + self.0
    }
    /// Where its code is.
    #[must_use]
    pub const fn base(self) -> u64 {
        CODE + self.0 as u64 * APART
    }
    fn of(image: u32) -> Option<Self> {
        image.checked_sub(IMAGES).map(Self)
    }
}

/// Which process ids they have: the last of them.
#[derive(Debug)]
pub struct Pids([AtomicU64; REMEMBERED]);

impl Pids {
    /// None yet.
    #[expect(clippy::new_without_default, reason = "it is made in a constant")]
    #[must_use]
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; REMEMBERED])
    }
    /// Sets one, before the process has a thread.
    pub fn set(&self, number: Number, pid: u32) {
        let place = &self.0[number.0 as usize % REMEMBERED];
        place.store(u64::from(number.0) << 32 | u64::from(pid), Relaxed);
    }
    /// Whether it may be this one: it is not known to be another.
    fn may_be(&self, number: Number, pid: u32) -> bool {
        let known = self.0[number.0 as usize % REMEMBERED].load(Relaxed);
        (known >> 32) as u32 != number.0 || known as u32 == pid
    }
}

/// What is wrong with a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The chain of one process.
    Chain(Wrong),
    /// A process by the image of another.
    Pid,
    /// A client that is not in a call.
    NotCalled,
    /// A client that another function of the server would serve.
    NotServed,
    /// A program's frame in the upper half, or a kernel's behind it.
    Half,
}

/// How many samples were of what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// All.
    pub samples: u64,
    /// Of a process of the storm, and those of them that were in the kernel.
    pub storms: u64,
    /// See `storms`.
    pub in_kernel: u64,
    /// Processes on whose behalf one of them worked.
    pub clients: u64,
    /// Those of which the function that served them says that it was for them.
    pub served: u64,
    /// Of these, clients of a server that is another's client.
    pub passed: u64,
    /// Parts of chains that do not reach the end, and say so.
    pub incomplete: u64,
    /// Samples without a client, because it changed.
    pub changed: u64,
    /// Samples that are wrong.
    pub wrong: u64,
}

/// Looks at samples.
#[derive(Debug)]
pub struct Watch<'a> {
    code: Code,
    pids: &'a Pids,
    /// What was seen.
    pub seen: Seen,
    /// The first of what was wrong.
    pub faults: Vec<(Fault, Sample)>,
}

impl<'a> Watch<'a> {
    /// Nothing seen yet.
    #[must_use]
    pub fn new(pids: &'a Pids) -> Self {
        Self {
            code: Code::new(),
            pids,
            seen: Seen::default(),
            faults: Vec::new(),
        }
    }

    /// Looks at one.
    pub fn look(&mut self, sample: &Sample) {
        self.seen.samples += 1;
        self.seen.changed += u64::from(sample.header().flags & flags::CHANGED != 0);
        if let Err(fault) = self.judge(sample) {
            self.seen.wrong += 1;
            if self.faults.len() < SHOWN {
                self.faults.push((fault, *sample));
            }
        }
    }

    fn judge(&mut self, sample: &Sample) -> Result<(), Fault> {
        let bits = sample.header().flags;
        // What the process before serves its client with, if that can be told.
        let mut serves = None;
        for (index, part) in sample.parts().enumerate() {
            let in_kernel = part.frames.iter().take_while(|&&at| at >= USER_END).count();
            let frames = part.frames.get(in_kernel..).unwrap_or_default();
            if frames.iter().any(|&at| at >= USER_END) || index > 0 && in_kernel > 0 {
                return Err(Fault::Half);
            }
            let Some(number) = Number::of(part.owner.image) else {
                serves = None;
                continue;
            };
            self.seen.storms += u64::from(index == 0);
            self.seen.in_kernel += u64::from(in_kernel > 0);
            if !self.pids.may_be(number, part.owner.pid) {
                return Err(Fault::Pid);
            }
            let is_complete = bits & flags::incomplete(index + 1) == 0;
            self.seen.incomplete += u64::from(!is_complete);
            if frames.is_empty() && !is_complete {
                continue;
            }
            let judged = self.code.judge(number.base(), frames, is_complete);
            judged.map_err(Fault::Chain)?;
            let offset = frames.first().map_or(0, |at| at - number.base());
            if index > 0 {
                self.client(part.owner, offset, serves)?;
                self.seen.passed += u64::from(index > 1 && serves.is_some());
            }
            serves = self.code.serves(offset);
        }
        Ok(())
    }

    fn client(&mut self, client: Marker, offset: u64, serves: Option<u64>) -> Result<(), Fault> {
        self.seen.clients += 1;
        if !self.code.is_called(offset) {
            return Err(Fault::NotCalled);
        }
        if let Some(function) = serves {
            self.seen.served += 1;
            if u64::from(client.image - IMAGES) % 8 != function {
                return Err(Fault::NotServed);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::code;
    use ipc::abi::profile::{Header, KIND_SAMPLE, LAYOUT_VERSION, SLOT_WORDS};

    const SERVER: Number = Number(16);
    const CLIENT: Number = Number(5);

    /// A sample of a server, of which the frames are given as offsets, and of the client that it serves.
    fn sample(flags: u16, server: &[u64], client: (Number, u32, &[u64])) -> Sample {
        let (number, pid, offsets) = client;
        let marker = Marker {
            pid,
            tid: 1,
            image: number.image(),
        };
        let mut tagged: Vec<u64> = server.iter().map(|at| at + SERVER.base()).collect();
        if !offsets.is_empty() {
            tagged.extend(marker.pack());
        }
        tagged.extend(offsets.iter().map(|at| at + number.base()));
        let header = Header {
            version: LAYOUT_VERSION,
            kind: KIND_SAMPLE,
            flags,
            tagged: tagged.len() as u8,
            ..Header::default()
        };
        let mut words = [0; SLOT_WORDS];
        words[1] = header.pack();
        words[3] = 7;
        words[4] = SERVER.image().into();
        words[7..7 + tagged.len()].copy_from_slice(&tagged);
        Sample::parse(words).unwrap()
    }

    #[test]
    fn a_client_is_the_one_that_is_served_or_the_sample_is_wrong() {
        let (code, pids) = (Code::new(), Pids::new());
        pids.set(SERVER, 7);
        pids.set(CLIENT, 8);
        let serve = (0..8)
            .map(|function| {
                (0..code::bytes().len() as u64)
                    .find(|&at| code.serves(at) == Some(function))
                    .unwrap()
                    + 9
            })
            .collect::<Vec<_>>();
        let after_serve = (0..1 << 12)
            .find(|&at| {
                let frames = [SERVER.base() + serve[5], SERVER.base() + at];
                code.judge(SERVER.base(), &frames, true).is_ok()
            })
            .unwrap();
        let called = (0..).find(|&at| code.is_called(at)).unwrap();
        let chain = (0..1 << 20)
            .map(|n| [called, n >> 10, n & 0x3ff])
            .find(|offsets| {
                let frames = offsets.map(|at| CLIENT.base() + at);
                code.judge(CLIENT.base(), &frames, true).is_ok()
            })
            .unwrap();
        let verdict = |flags, server: &[u64], client| {
            let mut watch = Watch::new(&pids);
            let sample = sample(flags, server, client);
            watch.look(&sample);
            (watch.faults.first().map(|fault| fault.0), watch.seen)
        };
        let server = [serve[5], after_serve];
        let (fault, seen) = verdict(0, &server, (CLIENT, 8, &chain));
        assert_eq!((fault, seen.clients, seen.served), (None, 1, 1));
        let (fault, seen) = verdict(0, &server, (CLIENT, 8, &[]));
        assert_eq!((fault, seen.storms, seen.clients), (None, 1, 0));
        let (fault, seen) = verdict(flags::incomplete(2), &server, (CLIENT, 8, &chain[..2]));
        assert_eq!((fault, seen.incomplete), (None, 1));
        for (server, client, wrong) in [
            (&server[..], (CLIENT, 9, &chain[..]), Fault::Pid),
            (&server, (CLIENT, 8, &chain[1..]), Fault::NotCalled),
            (&server, (Number(6), 8, &chain), Fault::NotServed),
            (
                &[serve[4], after_serve],
                (CLIENT, 8, &chain),
                Fault::NotServed,
            ),
            (
                &server,
                (CLIENT, 8, &chain[..2]),
                Fault::Chain(Wrong::Short),
            ),
            (
                &server[..1],
                (CLIENT, 8, &chain),
                Fault::Chain(Wrong::Short),
            ),
            (
                &[serve[5], after_serve, u64::MAX - SERVER.base()],
                (CLIENT, 8, &chain),
                Fault::Half,
            ),
        ] {
            let (fault, seen) = verdict(0, server, client);
            assert_eq!((fault, seen.wrong), (Some(wrong), 1));
        }
        // A frame of one process in the chain of another.
        let (fault, _) = verdict(0, &server, (Number(13), 8, &chain));
        assert_eq!(fault, None);
        let stale = [chain[0], chain[1] + APART, chain[2]];
        let (fault, _) = verdict(0, &server, (CLIENT, 8, &stale));
        assert!(
            matches!(fault, Some(Fault::Chain(Wrong::Elsewhere(_)))),
            "{fault:?}"
        );
    }
}

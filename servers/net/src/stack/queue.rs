//! Datagrams that wait for their program, in a ring of fixed size.

use alloc::boxed::Box;
use alloc::vec;
use core::net::{Ipv4Addr, SocketAddrV4};

use ipc::proto::net::DATAGRAM_MAX;

/// Datagrams that a socket keeps for its program.
pub const DATAGRAMS_MAX: usize = 32;

const BYTES: usize = DATAGRAM_MAX as usize;

/// A ring of datagrams. Each has a place of its own, so that one of any length fits whenever one does.
#[derive(Debug)]
pub struct Queue {
    bytes: Box<[u8]>,
    headers: [(SocketAddrV4, u16); DATAGRAMS_MAX],
    first: usize,
    count: usize,
}

impl Queue {
    pub fn new() -> Self {
        let nobody = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
        Self {
            bytes: vec![0; DATAGRAMS_MAX * BYTES].into_boxed_slice(),
            headers: [(nobody, 0); DATAGRAMS_MAX],
            first: 0,
            count: 0,
        }
    }

    /// Adds a datagram; whether there was room for it.
    pub fn push(&mut self, from: SocketAddrV4, datagram: &[u8]) -> bool {
        if self.count == DATAGRAMS_MAX || datagram.len() > BYTES {
            return false;
        }
        let place = (self.first + self.count) % DATAGRAMS_MAX;
        let at = place * BYTES;
        self.bytes[at..at + datagram.len()].copy_from_slice(datagram);
        self.headers[place] = (from, datagram.len() as u16);
        self.count += 1;
        true
    }

    /// The datagram that is `index` behind the first.
    pub fn get(&self, index: usize) -> Option<(SocketAddrV4, &[u8])> {
        if index >= self.count {
            return None;
        }
        let place = (self.first + index) % DATAGRAMS_MAX;
        let (from, len) = self.headers[place];
        let at = place * BYTES;
        Some((from, &self.bytes[at..at + usize::from(len)]))
    }

    /// Forgets the first `count` datagrams.
    pub fn discard(&mut self, count: usize) {
        let count = count.min(self.count);
        self.first = (self.first + count) % DATAGRAMS_MAX;
        self.count -= count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn it_is_a_queue_with_an_end(steps in prop::collection::vec((any::<bool>(), 0_usize..1600), 0..400)) {
            let mut queue = Queue::new();
            let mut model = VecDeque::new();
            for (number, (push, len)) in steps.into_iter().enumerate() {
                if push {
                    let from = SocketAddrV4::new(Ipv4Addr::LOCALHOST, number as u16);
                    let datagram = vec![number as u8; len];
                    let fits = model.len() < DATAGRAMS_MAX && len <= BYTES;
                    prop_assert_eq!(queue.push(from, &datagram), fits);
                    if fits {
                        model.push_back((from, datagram));
                    }
                } else {
                    let count = len % 4;
                    queue.discard(count);
                    model.drain(..count.min(model.len()));
                }
                for (index, (from, datagram)) in model.iter().enumerate() {
                    prop_assert_eq!(queue.get(index), Some((*from, datagram.as_slice())));
                }
                prop_assert!(queue.get(model.len()).is_none());
            }
        }
    }
}

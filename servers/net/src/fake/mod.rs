//! Network devices for the tests, and the cable between them, which loses, repeats, changes and reorders what it carries, by a
//! seed.

#[cfg(test)]
mod cable;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use ipc::proto::net::Link;
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;
use smoltcp::wire::EthernetAddress;

use crate::device::{DeviceCounters, Nic};

#[cfg(test)]
pub(crate) use cable::{Cable, Faults};

/// What is in a device: frames to be taken by the stack, and frames that it sent.
#[derive(Debug, Default)]
pub struct Rings {
    /// Those that the stack will take.
    pub arrived: VecDeque<Vec<u8>>,
    /// Those that it sent.
    pub sent: VecDeque<Vec<u8>>,
    /// Frames that it has room for.
    pub room: usize,
    /// It does not work any more.
    pub has_failed: bool,
}

/// A device whose rings the test has as well.
#[derive(Clone, Debug)]
pub struct FakeNic {
    /// The rings.
    pub rings: Rc<RefCell<Rings>>,
    mac: EthernetAddress,
}

impl FakeNic {
    /// One with this number in its address, and nothing in its rings.
    pub fn new(number: u8) -> Self {
        let rings = Rings {
            room: 256,
            ..Rings::default()
        };
        Self {
            rings: Rc::new(RefCell::new(rings)),
            mac: EthernetAddress([2, 0, 0, 0, 0, number]),
        }
    }
}

/// A frame that has arrived.
pub struct Rx(Vec<u8>);
/// The right to send one.
pub struct Tx(Rc<RefCell<Rings>>);

impl RxToken for Rx {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        take(&self.0)
    }
}

impl TxToken for Tx {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, fill: F) -> R {
        let mut frame = vec![0; len];
        let result = fill(&mut frame);
        self.0.borrow_mut().sent.push_back(frame);
        result
    }
}

impl Device for FakeNic {
    type RxToken<'a> = Rx;
    type TxToken<'a> = Tx;

    fn receive(&mut self, now: Instant) -> Option<(Rx, Tx)> {
        let reply = self.transmit(now)?;
        let frame = self.rings.borrow_mut().arrived.pop_front()?;
        Some((Rx(frame), reply))
    }
    fn transmit(&mut self, _: Instant) -> Option<Tx> {
        let rings = self.rings.borrow();
        let has_room = !rings.has_failed && rings.sent.len() < rings.room;
        has_room.then(|| Tx(Rc::clone(&self.rings)))
    }
    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = 1514;
        capabilities
    }
}

impl Nic for FakeNic {
    fn mac(&self) -> EthernetAddress {
        self.mac
    }
    fn link(&self) -> Link {
        if self.has_failed() {
            Link::Failed
        } else {
            Link::Up
        }
    }
    fn has_failed(&self) -> bool {
        self.rings.borrow().has_failed
    }
    fn counters(&self) -> DeviceCounters {
        DeviceCounters::default()
    }
}

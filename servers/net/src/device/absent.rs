//! The device of a machine that has none that can be driven: there is no value of it.

use core::convert::Infallible;

use ipc::proto::net::Link;
use smoltcp::phy::{Device, DeviceCapabilities, RxToken, TxToken};
use smoltcp::time::Instant;
use smoltcp::wire::EthernetAddress;

use super::{DeviceCounters, Nic};

/// No device.
#[derive(Debug)]
pub struct Absent(Infallible);

impl RxToken for Absent {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, _: F) -> R {
        match self.0 {}
    }
}

impl TxToken for Absent {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, _: usize, _: F) -> R {
        match self.0 {}
    }
}

impl Device for Absent {
    type RxToken<'a> = Self;
    type TxToken<'a> = Self;

    fn receive(&mut self, _: Instant) -> Option<(Self, Self)> {
        match self.0 {}
    }
    fn transmit(&mut self, _: Instant) -> Option<Self> {
        match self.0 {}
    }
    fn capabilities(&self) -> DeviceCapabilities {
        match self.0 {}
    }
}

impl Nic for Absent {
    fn mac(&self) -> EthernetAddress {
        match self.0 {}
    }
    fn link(&self) -> Link {
        match self.0 {}
    }
    fn counters(&self) -> DeviceCounters {
        match self.0 {}
    }
}

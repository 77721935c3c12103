//! The network device, as the stack sees it.

pub mod virtio;

use ipc::proto::net::Link;
use smoltcp::phy;
use smoltcp::wire::EthernetAddress;

/// What the device itself has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Interrupts that were taken.
    pub interrupts: u64,
    /// Mistakes of the device: buffers that it was not given, lengths that cannot be.
    pub errors: u64,
}

/// An Ethernet device. Frames come and go by [`phy::Device`], a buffer at a time: `receive` gives the next frame that has
/// arrived, `transmit` the right to send one, or `None` while the device has no room.
pub trait Nic: phy::Device {
    /// Its own address.
    fn mac(&self) -> EthernetAddress;

    /// Whether frames pass.
    fn link(&self) -> Link;

    /// Whether it does not work any more. Then no frame comes or goes.
    fn has_failed(&self) -> bool;

    /// What it has counted.
    fn counters(&self) -> DeviceCounters;
}

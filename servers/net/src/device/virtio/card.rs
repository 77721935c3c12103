//! The network card: two queues, as smoltcp's device.
//!
//! A frame is copied out of the device's memory before anybody parses it, and into that memory once it is complete. A batch is told to the device at its
//! end, by [`Card::rest`]: one access to the device for each queue, however many frames.
//!
//! While frames are taken the device is asked not to interrupt; of frames that it has sent it tells only when there was no room for more.

use alloc::boxed::Box;
use alloc::vec::Vec;

use ipc::proto::net::Link;
use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::time::Instant;
use smoltcp::wire::EthernetAddress;
use virtio_drivers::transport::{DeviceStatus, InterruptStatus, Transport};
use virtio_drivers::{BufferDirection, Hal};
use zerocopy::IntoBytes;

use super::dma::{BUFFER_BYTES, BUFFER_WORDS};
use super::fault::Fault;
use super::queue::{Buffer, Queue};
use super::transport::{Registers, Signal, VirtioPci};
use crate::device::{DeviceCounters, Nic};

/// Numbers of the queues (virtio 1.2, 5.1.2).
const RECEIVE: u16 = 0;
const TRANSMIT: u16 = 1;
/// Offsets of the address and of the status in the device's own registers.
const MAC: usize = 0;
const LINK_STATUS: u32 = 6;
const LINK_UP: u16 = 1;
/// Bytes before each frame, all zero in what is sent: no part of the work is left to the device.
const HEADER: usize = 12;
/// Shortest and longest frame, without the check sequence.
const FRAME_MIN: usize = 14;
const FRAME_MAX: usize = 1514;
const _: () = assert!(HEADER + FRAME_MAX <= BUFFER_BYTES);

bitflags::bitflags! {
    /// What is asked of the device (virtio 1.2, 5.1.3 and 6).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Features: u64 {
        /// It has an address.
        const MAC = 1 << 5;
        /// It says whether the link is up.
        const STATUS = 1 << 16;
        /// It speaks version 1.
        const VERSION_1 = 1 << 32;
    }
}

/// Interrupts that came, by bit of the notification.
pub const QUEUES_BIT: u64 = 1;
/// See [`QUEUES_BIT`].
pub const CONFIGURATION_BIT: u64 = 2;

/// A frame and its header, in the program's own memory.
type Frame = Box<[u64; BUFFER_WORDS]>;

/// The card, with queues of `N` buffers.
pub struct Card<H: Hal, R: Registers, const N: usize> {
    device: VirtioPci<R>,
    receiver: Receiver<H, N>,
    sender: Sender<H, N>,
    mac: EthernetAddress,
    /// Whether the device says if the link is up.
    knows_link: bool,
    fault: Option<Fault>,
    counters: DeviceCounters,
}

struct Receiver<H: Hal, const N: usize> {
    queue: Queue<H, N>,
    frame: Frame,
}

struct Sender<H: Hal, const N: usize> {
    queue: Queue<H, N>,
    free: Vec<Buffer>,
    frame: Frame,
    /// Somebody wanted to send and there was no room.
    wanted: bool,
    fault: Option<Fault>,
}

impl<H: Hal, R: Registers, const N: usize> Card<H, R, N> {
    /// Sets up a device that was reset, and may master the bus.
    ///
    /// # Errors
    /// What the device does wrong.
    pub fn new(mut device: VirtioPci<R>) -> Result<Self, Fault> {
        let features: Features = device.begin_init(Features::all());
        if !features.contains(Features::VERSION_1) {
            return Err(Fault::Legacy);
        }
        let mac = if features.contains(Features::MAC) {
            let read = device.read_consistent(|| device.read_config_space::<[u8; 6]>(MAC));
            EthernetAddress(read.map_err(|_| Fault::Restless)?)
        } else {
            // Of the addresses that anybody may choose.
            EthernetAddress([2, 0, 0, 0, 0, 1])
        };
        let (mut received, buffers) =
            Queue::new(&mut device, RECEIVE, BufferDirection::DeviceToDriver)?;
        let (sent, free) = Queue::new(&mut device, TRANSMIT, BufferDirection::DriverToDevice)?;
        for buffer in buffers {
            received.lend(buffer, BUFFER_BYTES)?;
        }
        device.watch_configuration();
        device.finish_init();
        if let Some(fault) = device.fault() {
            device.set_status(DeviceStatus::FAILED);
            return Err(fault);
        }
        Ok(Self {
            device,
            receiver: Receiver {
                queue: received,
                frame: Box::new([0; BUFFER_WORDS]),
            },
            sender: Sender {
                queue: sent,
                free,
                frame: Box::new([0; BUFFER_WORDS]),
                wanted: false,
                fault: None,
            },
            mac,
            knows_link: features.contains(Features::STATUS),
            fault: None,
            counters: DeviceCounters::default(),
        })
    }

    /// Interrupts came.
    pub fn interrupted(&mut self, bits: u64) {
        self.counters.interrupts += 1;
        self.receiver.queue.disarm();
        self.sender.queue.disarm();
        let changed = match self.device.signal() {
            Signal::Line => self
                .device
                .ack_interrupt()
                .contains(InterruptStatus::DEVICE_CONFIGURATION_INTERRUPT),
            Signal::Messages { vectors } => vectors == 1 || bits & CONFIGURATION_BIT != 0,
        };
        if changed {
            let status = self.device.get_status();
            if status.contains(DeviceStatus::DEVICE_NEEDS_RESET) {
                self.fail(Fault::NeedsReset);
            }
        }
    }

    /// Ends a batch: tells the device of what is new, and lets it interrupt. `false` if there is more to do at once.
    #[must_use]
    pub fn rest(&mut self) -> bool {
        if let Some(fault) = self.sender.fault.take() {
            self.fail(fault);
        }
        if self.fault.is_some() {
            return true;
        }
        self.receiver.queue.tell(&mut self.device);
        self.sender.queue.tell(&mut self.device);
        if self.sender.wanted {
            // Nothing can be received either: an answer would have no room. So it is the sender's interrupt that is waited for.
            return self.sender.queue.arm();
        }
        self.receiver.queue.arm()
    }

    /// Why it does not work any more. Then it is still, and nothing comes or goes.
    pub const fn fault(&self) -> Option<Fault> {
        self.fault
    }

    fn fail(&mut self, fault: Fault) {
        if self.fault.is_none() {
            self.fault = Some(fault);
            self.counters.errors += 1;
            self.device.set_status(DeviceStatus::empty());
        }
    }

    /// The bytes of the next frame, which is in the receiver's.
    fn next_frame(&mut self) -> Result<Option<usize>, Fault> {
        let Receiver { queue, frame } = &mut self.receiver;
        while let Some((buffer, written)) = queue.take()? {
            let bytes = written.checked_sub(HEADER);
            let bytes = bytes.filter(|bytes| (FRAME_MIN..=FRAME_MAX).contains(bytes));
            if bytes.is_some() {
                queue.read(&buffer, written.div_ceil(8), frame);
            } else {
                self.counters.errors += 1;
            }
            queue.lend(buffer, BUFFER_BYTES)?;
            if bytes.is_some() {
                return Ok(bytes);
            }
            // A device that sends nothing but mistakes is not followed for ever.
            if self.counters.errors.is_multiple_of(N as u64) {
                return Ok(None);
            }
        }
        Ok(None)
    }
}

impl<H: Hal, const N: usize> Sender<H, N> {
    /// Takes back buffers whose frames have left; whether there is one for another frame.
    fn has_room(&mut self) -> bool {
        while self.free.is_empty() {
            match self.queue.take() {
                Ok(Some((buffer, _))) => self.free.push(buffer),
                Ok(None) => break,
                Err(fault) => {
                    self.fault = Some(fault);
                    break;
                }
            }
        }
        self.wanted = self.free.is_empty();
        !self.wanted
    }
}

/// A frame that has come.
pub struct Received<'a>(&'a [u8]);

impl phy::RxToken for Received<'_> {
    fn consume<T, F: FnOnce(&[u8]) -> T>(self, take: F) -> T {
        take(self.0)
    }
}

/// Room for a frame.
pub struct Room<'a, H: Hal, const N: usize>(&'a mut Sender<H, N>);

impl<H: Hal, const N: usize> phy::TxToken for Room<'_, H, N> {
    fn consume<T, F: FnOnce(&mut [u8]) -> T>(self, len: usize, fill: F) -> T {
        let Sender {
            queue, free, frame, ..
        } = self.0;
        // The stack keeps to the length in `capabilities`.
        let len = len.min(FRAME_MAX);
        let bytes = HEADER + len;
        let filled = fill(&mut frame.as_mut_bytes()[HEADER..bytes]);
        if let Some(buffer) = free.pop() {
            queue.write(&buffer, bytes.div_ceil(8), frame);
            if let Err(fault) = queue.lend(buffer, bytes) {
                self.0.fault = Some(fault);
            }
        }
        filled
    }
}

impl<H: Hal, R: Registers, const N: usize> phy::Device for Card<H, R, N> {
    type RxToken<'a>
        = Received<'a>
    where
        Self: 'a;
    type TxToken<'a>
        = Room<'a, H, N>
    where
        Self: 'a;

    fn receive(&mut self, _: Instant) -> Option<(Received<'_>, Room<'_, H, N>)> {
        if self.fault.is_some() || !self.sender.has_room() {
            return None;
        }
        match self.next_frame() {
            Ok(len) => {
                let frame = self.receiver.frame.as_bytes().get(HEADER..HEADER + len?)?;
                Some((Received(frame), Room(&mut self.sender)))
            }
            Err(fault) => {
                self.fail(fault);
                None
            }
        }
    }

    fn transmit(&mut self, _: Instant) -> Option<Room<'_, H, N>> {
        let works = self.fault.is_none() && self.sender.has_room();
        works.then_some(Room(&mut self.sender))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = FRAME_MAX;
        capabilities
    }
}

impl<H: Hal, R: Registers, const N: usize> Nic for Card<H, R, N> {
    fn mac(&self) -> EthernetAddress {
        self.mac
    }

    fn link(&self) -> Link {
        if self.has_failed() {
            return Link::Failed;
        }
        let down = self.knows_link && self.device.own16(LINK_STATUS) & LINK_UP == 0;
        if down { Link::Down } else { Link::Up }
    }

    fn has_failed(&self) -> bool {
        self.fault.or(self.sender.fault).is_some()
    }

    fn counters(&self) -> DeviceCounters {
        self.counters
    }
}

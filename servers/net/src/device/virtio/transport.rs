//! The transport of `virtio-drivers`, over the registers that this program was given.
//!
//! The crate has one for PCI. It measures base address registers by writing to them, which is not this program's to do; it
//! waits without limit for a device to be reset, and panics if the device moves the place where it is told of buffers. Here
//! every wait is bounded, every place is looked up and checked once, and being told is put off until a batch is complete.

use core::cell::Cell;

use virtio_drivers::transport::{DeviceStatus, DeviceType, InterruptStatus, Transport};
use virtio_drivers::{Error, PhysAddr};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::fault::Fault;
use super::layout::{Layout, Place, Window};

/// Offsets of the common registers (virtio 1.2, 4.1.4.3).
mod common {
    pub const DEVICE_FEATURE_SELECT: u32 = 0x00;
    pub const DEVICE_FEATURE: u32 = 0x04;
    pub const DRIVER_FEATURE_SELECT: u32 = 0x08;
    pub const DRIVER_FEATURE: u32 = 0x0c;
    pub const CONFIG_VECTOR: u32 = 0x10;
    pub const STATUS: u32 = 0x14;
    pub const GENERATION: u32 = 0x15;
    pub const QUEUE_SELECT: u32 = 0x16;
    pub const QUEUE_SIZE: u32 = 0x18;
    pub const QUEUE_VECTOR: u32 = 0x1a;
    pub const QUEUE_ENABLE: u32 = 0x1c;
    pub const QUEUE_NOTIFY: u32 = 0x1e;
    pub const QUEUE_DESCRIPTORS: u32 = 0x20;
    pub const QUEUE_DRIVER: u32 = 0x28;
    pub const QUEUE_DEVICE: u32 = 0x30;
}

/// How long a reset may take, in nanoseconds.
const RESET_NS: u64 = 100_000_000;
/// How often the configuration is read until nothing changed meanwhile.
const READS_MAX: usize = 16;
/// Queues that are used.
const QUEUES: usize = 2;

/// The registers behind a device's base address registers. What is not there reads as ones, and writing there is lost.
pub trait Registers {
    /// Reads a byte.
    fn read8(&self, place: Place) -> u8;
    /// Reads two bytes.
    fn read16(&self, place: Place) -> u16;
    /// Reads four bytes.
    fn read32(&self, place: Place) -> u32;
    /// Writes a byte.
    fn write8(&self, place: Place, value: u8);
    /// Writes two bytes.
    fn write16(&self, place: Place, value: u16);
    /// Writes four bytes.
    fn write32(&self, place: Place, value: u32);
    /// Nanoseconds, from any beginning.
    fn now(&self) -> u64;
}

/// How the device interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// By its wired interrupt, which falls when the reason is read.
    Line,
    /// By messages: vector 0 for the queues, and for changes of the configuration vector 1, or 0 as well if there is one.
    Messages {
        /// How many vectors there are.
        vectors: u8,
    },
}

/// A device's registers, and where they are.
pub struct VirtioPci<R> {
    registers: R,
    layout: Layout,
    signal: Signal,
    /// Where each queue is told of buffers.
    notify: [Option<Place>; QUEUES],
    /// What went wrong in a step that cannot say so.
    fault: Cell<Option<Fault>>,
}

impl<R: Registers> VirtioPci<R> {
    /// A device whose registers are there. Resets it: until it is set up anew it neither reads nor writes memory.
    ///
    /// # Errors
    /// It cannot be reset.
    pub fn new(registers: R, layout: Layout, signal: Signal) -> Result<Self, Fault> {
        let mut device = Self {
            registers,
            layout,
            signal,
            notify: [None; QUEUES],
            fault: Cell::new(None),
        };
        device.set_status(DeviceStatus::empty());
        match device.fault() {
            Some(fault) => Err(fault),
            None => Ok(device),
        }
    }

    /// What went wrong so far.
    pub fn fault(&self) -> Option<Fault> {
        self.fault.get()
    }

    /// How it interrupts.
    pub const fn signal(&self) -> Signal {
        self.signal
    }

    /// Has changes of the configuration interrupt.
    pub fn watch_configuration(&mut self) {
        if let Signal::Messages { vectors } = self.signal {
            let vector = u16::from(vectors > 1);
            self.set16(common::CONFIG_VECTOR, vector);
            self.expect(
                self.get16(common::CONFIG_VECTOR) == vector,
                Fault::Interrupt,
            );
        }
    }

    /// Two bytes of the registers that only network devices have.
    pub fn own16(&self, offset: u32) -> u16 {
        let place = self.layout.own.place(offset, 2);
        place.map_or(!0, |place| self.registers.read16(place))
    }

    /// Keeps the first fault.
    fn expect(&self, holds: bool, fault: Fault) {
        if !holds && self.fault.get().is_none() {
            self.fault.set(Some(fault));
        }
    }

    /// A common register: the layout has room for all of them.
    const fn at(&self, offset: u32) -> Place {
        let Window {
            bar, offset: first, ..
        } = self.layout.common;
        Place {
            bar,
            offset: first.saturating_add(offset),
        }
    }

    fn get16(&self, offset: u32) -> u16 {
        self.registers.read16(self.at(offset))
    }
    fn set16(&self, offset: u32, value: u16) {
        self.registers.write16(self.at(offset), value);
    }
    fn set32(&self, offset: u32, value: u32) {
        self.registers.write32(self.at(offset), value);
    }
    fn set64(&self, offset: u32, value: u64) {
        self.set32(offset, value as u32);
        self.set32(offset + 4, (value >> 32) as u32);
    }
    fn status(&self) -> u8 {
        self.registers.read8(self.at(common::STATUS))
    }

    /// Waits for the end of a reset.
    fn wait_still(&self) {
        let end = self.registers.now().saturating_add(RESET_NS);
        while self.status() != 0 {
            if self.registers.now() >= end {
                return self.expect(false, Fault::Reset);
            }
        }
    }
}

impl<R: Registers> Transport for VirtioPci<R> {
    fn device_type(&self) -> DeviceType {
        DeviceType::Network
    }

    fn read_device_features(&mut self) -> u64 {
        let half = |number: u32| {
            self.set32(common::DEVICE_FEATURE_SELECT, number);
            u64::from(self.registers.read32(self.at(common::DEVICE_FEATURE)))
        };
        half(0) | half(1) << 32
    }

    fn write_driver_features(&mut self, features: u64) {
        for (number, half) in [(0, features as u32), (1, (features >> 32) as u32)] {
            self.set32(common::DRIVER_FEATURE_SELECT, number);
            self.set32(common::DRIVER_FEATURE, half);
        }
    }

    fn max_queue_size(&mut self, queue: u16) -> u32 {
        self.set16(common::QUEUE_SELECT, queue);
        self.get16(common::QUEUE_SIZE).into()
    }

    fn notify(&mut self, queue: u16) {
        let place = self.notify.get(usize::from(queue)).copied().flatten();
        if let Some(place) = place {
            self.registers.write16(place, queue);
        }
    }

    fn get_status(&self) -> DeviceStatus {
        DeviceStatus::from_bits_retain(self.status().into())
    }

    fn set_status(&mut self, status: DeviceStatus) {
        let (place, bits) = (self.at(common::STATUS), status.bits() as u8);
        self.registers.write8(place, bits);
        if status.is_empty() {
            self.wait_still();
        }
    }

    fn set_guest_page_size(&mut self, _: u32) {}

    fn requires_legacy_layout(&self) -> bool {
        false
    }

    fn queue_set(
        &mut self,
        queue: u16,
        size: u32,
        descriptors: PhysAddr,
        driver_area: PhysAddr,
        device_area: PhysAddr,
    ) {
        self.set16(common::QUEUE_SELECT, queue);
        self.set16(common::QUEUE_SIZE, size as u16);
        self.set64(common::QUEUE_DESCRIPTORS, descriptors);
        self.set64(common::QUEUE_DRIVER, driver_area);
        self.set64(common::QUEUE_DEVICE, device_area);
        if let Signal::Messages { .. } = self.signal {
            // One that the device has no room for reads back as none.
            self.set16(common::QUEUE_VECTOR, 0);
            self.expect(self.get16(common::QUEUE_VECTOR) == 0, Fault::Interrupt);
        }
        let steps = u32::from(self.get16(common::QUEUE_NOTIFY));
        let offset = steps.checked_mul(self.layout.notify_step);
        let place = offset.and_then(|offset| self.layout.notify.place(offset, 2));
        let place = place.filter(|place| place.offset.is_multiple_of(2));
        self.expect(place.is_some(), Fault::Queue(queue));
        if let Some(slot) = self.notify.get_mut(usize::from(queue)) {
            *slot = place;
        }
        self.set16(common::QUEUE_ENABLE, 1);
    }

    fn queue_unset(&mut self, _: u16) {
        // A queue cannot be taken back alone: a reset takes all of them.
    }

    fn queue_used(&mut self, queue: u16) -> bool {
        self.set16(common::QUEUE_SELECT, queue);
        self.get16(common::QUEUE_ENABLE) != 0
    }

    fn ack_interrupt(&mut self) -> InterruptStatus {
        let place = self.layout.interrupt.place(0, 1);
        let reason = place.map_or(0, |place| self.registers.read8(place));
        InterruptStatus::from_bits_retain(reason.into())
    }

    fn finish_init(&mut self) {
        let status = self.get_status();
        self.expect(status.contains(DeviceStatus::FEATURES_OK), Fault::Features);
        if self.fault().is_none() {
            self.set_status(status | DeviceStatus::DRIVER_OK);
        }
    }

    fn read_config_generation(&self) -> u32 {
        self.registers.read8(self.at(common::GENERATION)).into()
    }

    fn read_config_space<T: FromBytes + IntoBytes>(&self, offset: usize) -> Result<T, Error> {
        let first = u32::try_from(offset).map_err(|_| Error::ConfigSpaceTooSmall)?;
        let mut value = T::new_zeroed();
        for (index, byte) in (0..).zip(value.as_mut_bytes()) {
            let place = first.checked_add(index);
            let place = place.and_then(|offset| self.layout.own.place(offset, 1));
            *byte = self
                .registers
                .read8(place.ok_or(Error::ConfigSpaceTooSmall)?);
        }
        Ok(value)
    }

    fn write_config_space<T: IntoBytes + Immutable>(
        &mut self,
        _: usize,
        _: T,
    ) -> Result<(), Error> {
        Err(Error::Unsupported)
    }

    fn read_consistent<T>(&self, read: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
        for _ in 0..READS_MAX {
            let before = self.read_config_generation();
            let value = read();
            if self.read_config_generation() == before {
                return value;
            }
        }
        Err(Error::NotReady)
    }
}

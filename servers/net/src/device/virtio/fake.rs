//! A network card for tests: well-behaved until it is told otherwise, and then it may write anything into memory that is shared with it.

#![expect(unsafe_code, reason = "the device's side of shared memory")]

use std::alloc::{Layout as Allocation, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::ptr::NonNull;
use std::rc::Rc;

use virtio_drivers::{BufferDirection, Hal, PAGE_SIZE, PhysAddr};

use super::layout::{Layout, Place, Window};
use super::transport::Registers;

/// Buffers of each queue.
pub const N: usize = 8;
/// Where the structures are behind BAR 4.
const COMMON: u32 = 0;
const INTERRUPT: u32 = 0x1000;
const OWN: u32 = 0x2000;
const NOTIFY: u32 = 0x3000;
const STEP: u32 = 4;

/// The queues.
pub const RECEIVE: usize = 0;
/// See [`RECEIVE`].
pub const TRANSMIT: usize = 1;

/// Memory of the host, at the same addresses for both sides.
pub struct TestHal;

fn allocation(pages: usize) -> Allocation {
    match Allocation::from_size_align(pages * PAGE_SIZE, PAGE_SIZE) {
        Ok(allocation) => allocation,
        Err(error) => panic!("{pages} pages: {error}"),
    }
}

/// Pages that a driver has: how many, and the first.
type Pages = (usize, NonNull<u8>);

thread_local! {
    /// Those that drivers have, and those that no driver has any more, though none gave them back.
    static HELD: RefCell<Vec<Pages>> = const { RefCell::new(Vec::new()) };
    static LEFT: RefCell<Vec<Pages>> = const { RefCell::new(Vec::new()) };
}

/// Runs a driver that ends with the function. Drivers do not give buffers back; here the next one gets them, so that any number
/// can be run.
pub fn with_memory<T: ?Sized>(on: &T, run: fn(&T)) {
    run(on);
    HELD.with_borrow_mut(|held| LEFT.with_borrow_mut(|left| left.append(held)));
}

/// Pages that were left, or of the host's allocator.
fn take(pages: usize) -> NonNull<u8> {
    let left = LEFT.with_borrow_mut(|left| {
        let place = left.iter().position(|&(count, _)| count == pages)?;
        Some(left.swap_remove(place).1)
    });
    if let Some(first) = left {
        // SAFETY: so many pages are there, and the driver that had them is gone.
        unsafe { first.write_bytes(0, pages * PAGE_SIZE) };
        return first;
    }
    // SAFETY: the size is not zero.
    let first = unsafe { alloc_zeroed(allocation(pages)) };
    NonNull::new(first).unwrap_or_else(|| handle_alloc_error(allocation(pages)))
}

// SAFETY: pages of the host's allocator, zeroed and aligned, that nobody else has.
unsafe impl Hal for TestHal {
    fn dma_alloc(pages: usize, _: BufferDirection) -> (PhysAddr, NonNull<u8>) {
        let first = take(pages);
        HELD.with_borrow_mut(|held| held.push((pages, first)));
        (first.as_ptr().expose_provenance() as u64, first)
    }
    unsafe fn dma_dealloc(_: PhysAddr, first: NonNull<u8>, pages: usize) -> i32 {
        HELD.with_borrow_mut(|held| held.retain(|&(_, of)| of != first));
        // SAFETY: the caller says that it is from `dma_alloc`.
        unsafe { dealloc(first.as_ptr(), allocation(pages)) };
        0
    }
    unsafe fn mmio_phys_to_virt(_: PhysAddr, _: usize) -> NonNull<u8> {
        unreachable!("no transport of the crate is used")
    }
    unsafe fn share(buffer: NonNull<[u8]>, _: BufferDirection) -> PhysAddr {
        buffer.cast::<u8>().as_ptr().expose_provenance() as u64
    }
    unsafe fn unshare(_: PhysAddr, _: NonNull<[u8]>, _: BufferDirection) {}
}

/// Registers of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueRegisters {
    /// Buffers that it has.
    pub size: u16,
    vector: u16,
    /// The driver uses it.
    pub enabled: u16,
    /// Descriptors, available ring, used ring.
    areas: [u64; 3],
    /// How far the device has come in the available and in the used ring.
    seen: u16,
    used: u16,
    /// How often the driver told of buffers.
    pub told: u32,
}

/// The device.
#[derive(Debug)]
pub struct FakeDevice {
    /// What it offers, and what the driver took of that.
    pub features: u64,
    /// See `features`.
    pub accepted: u64,
    /// How far it is set up.
    pub status: u8,
    /// Bits of the status that cannot be set, and those that stay set.
    pub status_refused: u8,
    /// See `status_refused`.
    pub status_stuck: u8,
    /// Changes with the configuration.
    pub generation: u8,
    /// The generation is another one at each reading.
    pub is_restless: bool,
    /// Vectors that are refused.
    pub refuses_vectors: bool,
    /// The message that tells of a changed configuration.
    pub config_vector: u16,
    /// Address and link status.
    pub own: [u8; 8],
    /// Why it interrupts.
    pub reason: u8,
    /// Where the driver is to tell of buffers of each queue, in steps.
    pub notify: [u16; 2],
    /// The registers of both.
    pub queues: [QueueRegisters; 2],
    feature_select: u32,
    queue_select: usize,
    now: u64,
}

/// Driver and test share it.
#[derive(Clone, Debug)]
pub struct Shared(pub Rc<RefCell<FakeDevice>>);

impl Default for Shared {
    fn default() -> Self {
        Self::new()
    }
}

impl Shared {
    /// One that does as it should.
    pub fn new() -> Self {
        let size = QueueRegisters {
            size: N as u16,
            ..QueueRegisters::default()
        };
        Self(Rc::new(RefCell::new(FakeDevice {
            features: 1 << 5 | 1 << 16 | 1 << 32 | 1 << 28 | 1 << 29 | 1,
            accepted: 0,
            status: 0x0f,
            status_refused: 0,
            status_stuck: 0,
            generation: 0,
            is_restless: false,
            refuses_vectors: false,
            config_vector: 0,
            own: [0x52, 0x54, 0, 0x12, 0x34, 0x56, 1, 0],
            reason: 0,
            notify: [0, 1],
            queues: [size; 2],
            feature_select: 0,
            queue_select: 0,
            now: 0,
        })))
    }

    /// Where the registers are.
    pub fn layout() -> Layout {
        let window = |offset, bytes| Window {
            bar: 4,
            offset,
            bytes,
        };
        Layout {
            common: window(COMMON, 0x38),
            notify: window(NOTIFY, 8),
            notify_step: STEP,
            interrupt: window(INTERRUPT, 1),
            own: window(OWN, 8),
        }
    }

    fn queue(&self, queue: usize) -> QueueRegisters {
        self.0.borrow().queues[queue]
    }

    /// Descriptor `index` of a queue: address and length.
    fn descriptor(&self, queue: usize, index: u16) -> (u64, u32) {
        let at = self.queue(queue).areas[0] + u64::from(index) * 16;
        (get(at), get(at + 8))
    }

    /// The next buffer that the driver lent, by its place in the rings.
    fn next(&self, queue: usize) -> Option<u16> {
        let QueueRegisters {
            enabled,
            areas,
            seen,
            ..
        } = self.queue(queue);
        if enabled == 0 || get::<u16>(areas[1] + 2) == seen {
            return None;
        }
        self.0.borrow_mut().queues[queue].seen = seen.wrapping_add(1);
        Some(get(areas[1] + 4 + u64::from(seen % N as u16) * 2))
    }

    /// Gives a buffer back: whatever place and length this says.
    pub fn give_back(&self, queue: usize, place: u32, bytes: u32) {
        let QueueRegisters { areas, used, .. } = self.queue(queue);
        let entry = areas[2] + 4 + u64::from(used % N as u16) * 8;
        put(entry, place);
        put(entry + 4, bytes);
        self.set_used(queue, used.wrapping_add(1));
    }

    /// Says that so many buffers were given back.
    pub fn set_used(&self, queue: usize, used: u16) {
        put(self.queue(queue).areas[2] + 2, used);
        self.0.borrow_mut().queues[queue].used = used;
    }

    /// Whether the driver wants to be interrupted.
    pub fn is_armed(&self, queue: usize) -> bool {
        get::<u16>(self.queue(queue).areas[1]) == 0
    }

    /// A frame arrives; whether there was a buffer for it.
    pub fn arrive(&self, frame: &[u8]) -> bool {
        let Some(place) = self.next(RECEIVE) else {
            return false;
        };
        let (address, bytes) = self.descriptor(RECEIVE, place);
        // A buffer that the device gave back before it came to it is no longer one.
        if 12 + frame.len() > bytes as usize {
            return false;
        }
        for (index, &byte) in (0..).zip([[1; 12].as_slice(), frame].concat().iter()) {
            put(address + index, byte);
        }
        self.give_back(RECEIVE, place.into(), 12 + frame.len() as u32);
        true
    }

    /// Takes the next frame that the driver sends, and gives its buffer back if told to.
    pub fn depart(&self, gives_back: bool) -> Option<Vec<u8>> {
        let place = self.next(TRANSMIT)?;
        let (address, bytes) = self.descriptor(TRANSMIT, place);
        if bytes < 12 {
            return None;
        }
        let frame: Vec<u8> = (0..u64::from(bytes)).map(|at| get(address + at)).collect();
        if gives_back {
            self.give_back(TRANSMIT, place.into(), 0);
        }
        assert_eq!(frame[..12], [0; 12]);
        Some(frame[12..].to_vec())
    }

    /// Writes over what only the driver may write: descriptors and the available ring.
    pub fn scribble(&self, queue: usize, byte: u8) {
        let areas = self.queue(queue).areas;
        for at in 0..N as u64 * 16 {
            put(areas[0] + at, byte);
        }
        for at in 0..4 + N as u64 * 2 {
            put(areas[1] + at, byte);
        }
    }
}

/// Reads memory as a device does.
fn get<T>(at: u64) -> T {
    let place = std::ptr::with_exposed_provenance::<T>(at as usize);
    // SAFETY: inside the memory that the driver shares.
    unsafe { place.read_volatile() }
}

/// Writes memory as a device does.
fn put<T>(at: u64, value: T) {
    let place = std::ptr::with_exposed_provenance_mut::<T>(at as usize);
    // SAFETY: inside the memory that the driver shares.
    unsafe { place.write_volatile(value) };
}

impl FakeDevice {
    fn read_common(&mut self, offset: u32) -> u32 {
        let queue = &self.queues[self.queue_select % 2];
        match offset {
            0x04 => (self.features >> (32 * self.feature_select)) as u32,
            0x10 if self.refuses_vectors => 0xffff,
            0x10 => self.config_vector.into(),
            0x14 => self.status.into(),
            0x15 => {
                self.generation = self.generation.wrapping_add(self.is_restless.into());
                self.generation.into()
            }
            0x18 if self.queue_select > 1 => 0,
            0x18 => queue.size.into(),
            0x1a if self.refuses_vectors => 0xffff,
            0x1a => queue.vector.into(),
            0x1c => queue.enabled.into(),
            0x1e => self.notify[self.queue_select % 2].into(),
            _ => 0,
        }
    }

    fn write_common(&mut self, offset: u32, value: u32) {
        let queue = &mut self.queues[self.queue_select % 2];
        match offset {
            0x00 | 0x08 => self.feature_select = value & 1,
            0x0c => {
                let shift = 32 * self.feature_select;
                self.accepted &= !(0xffff_ffff << shift);
                self.accepted |= u64::from(value) << shift;
            }
            0x10 => self.config_vector = value as u16,
            0x14 => {
                self.status = value as u8 & !self.status_refused | self.status_stuck;
                if value == 0 {
                    self.queues.iter_mut().for_each(|queue| queue.enabled = 0);
                }
            }
            0x16 => self.queue_select = value as usize,
            0x18 => queue.size = value as u16,
            0x1a => queue.vector = value as u16,
            0x1c => queue.enabled = value as u16,
            0x20..0x38 => {
                let area = &mut queue.areas[(offset as usize - 0x20) / 8];
                let shift = offset % 8 * 8;
                *area = *area & !(0xffff_ffff << shift) | u64::from(value) << shift;
            }
            _ => panic!("a write to {offset:#x}"),
        }
    }

    fn read(&mut self, place: Place) -> u32 {
        assert_eq!(place.bar, 4);
        match place.offset {
            COMMON..0x38 => self.read_common(place.offset),
            INTERRUPT => std::mem::take(&mut self.reason).into(),
            OWN..0x2008 => self.own[(place.offset - OWN) as usize].into(),
            other => panic!("a read of {other:#x}"),
        }
    }

    fn write(&mut self, place: Place, value: u32) {
        assert_eq!(place.bar, 4);
        match place.offset {
            COMMON..0x38 => self.write_common(place.offset, value),
            NOTIFY..0x3008 => {
                assert_eq!(
                    (place.offset - NOTIFY) / STEP,
                    u32::from(self.notify[value as usize])
                );
                self.queues[value as usize].told += 1;
            }
            other => panic!("a write to {other:#x}"),
        }
    }
}

impl Registers for Shared {
    fn read8(&self, place: Place) -> u8 {
        self.0.borrow_mut().read(place) as u8
    }
    fn read16(&self, place: Place) -> u16 {
        let low = self.0.borrow_mut().read(place);
        if place.offset < OWN {
            return low as u16;
        }
        let next = Place {
            offset: place.offset + 1,
            ..place
        };
        (low | self.0.borrow_mut().read(next) << 8) as u16
    }
    fn read32(&self, place: Place) -> u32 {
        self.0.borrow_mut().read(place)
    }
    fn write8(&self, place: Place, value: u8) {
        self.0.borrow_mut().write(place, value.into());
    }
    fn write16(&self, place: Place, value: u16) {
        self.0.borrow_mut().write(place, value.into());
    }
    fn write32(&self, place: Place, value: u32) {
        self.0.borrow_mut().write(place, value);
    }
    fn now(&self) -> u64 {
        let mut device = self.0.borrow_mut();
        device.now += 1_000_000;
        device.now
    }
}

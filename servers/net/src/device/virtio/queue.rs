//! A queue of buffers between driver and device, over `virtio-drivers`' rings.
//!
//! The rings need to be told the same buffer when it comes back as when it went, and trust their caller for that. Here is kept which buffers the device
//! has: a [`Buffer`] is one that it does not have, and whatever the device writes into the rings, it gets back only those that it was lent.

#![expect(
    unsafe_code,
    reason = "the rings trust their caller to remember its buffers"
)]

use core::sync::atomic::{Ordering, fence};

use alloc::boxed::Box;
use alloc::vec::Vec;
use virtio_drivers::queue::VirtQueue;
use virtio_drivers::transport::Transport;
use virtio_drivers::{BufferDirection, Hal};

use super::dma::{BUFFER_BYTES, BUFFER_WORDS, Buffers};
use super::fault::Fault;

/// A buffer that the device does not have.
#[derive(Debug, PartialEq, Eq)]
pub struct Buffer(u16);

/// A buffer that the device has.
struct Lent {
    buffer: u16,
    bytes: usize,
}

/// A queue of `N` buffers.
pub struct Queue<H: Hal, const N: usize> {
    rings: Box<VirtQueue<H, N>>,
    buffers: Buffers<H>,
    number: u16,
    to_device: bool,
    /// By the place in the rings that the device names.
    lent: Vec<Option<Lent>>,
    /// The device is to be told of buffers.
    untold: bool,
}

impl<H: Hal, const N: usize> Queue<H, N> {
    /// Sets up a queue, and gives all its buffers. It does not interrupt until [`Self::arm`].
    ///
    /// # Errors
    /// The device has no such queue, or there is no memory for it.
    pub fn new(
        transport: &mut impl Transport,
        number: u16,
        direction: BufferDirection,
    ) -> Result<(Self, Vec<Buffer>), Fault> {
        let rings = VirtQueue::new(transport, number, false, false);
        let rings = rings.map_err(|error| match error {
            virtio_drivers::Error::DmaError => Fault::Memory,
            _ => Fault::Queue(number),
        });
        let mut queue = Self {
            rings: Box::new(rings?),
            buffers: Buffers::new(N as u16, direction).ok_or(Fault::Memory)?,
            number,
            to_device: direction == BufferDirection::DriverToDevice,
            lent: core::iter::repeat_with(|| None).take(N).collect(),
            untold: false,
        };
        queue.rings.set_dev_notify(false);
        Ok((queue, (0..N as u16).map(Buffer).collect()))
    }

    /// Lends the first bytes of a buffer to the device.
    ///
    /// # Errors
    /// The rings are full, which they cannot be: each buffer has a place.
    pub fn lend(&mut self, buffer: Buffer, bytes: usize) -> Result<(), Fault> {
        let (Buffer(buffer), bytes) = (buffer, bytes.clamp(1, BUFFER_BYTES));
        let lent = Lent { buffer, bytes };
        let token = self.name(&lent, |rings, sent, received| {
            // SAFETY: the buffer is in memory that stays, and until the device gives it back there is no `Buffer` by which
            // it is accessed.
            unsafe { rings.add(sent, received) }
        });
        let place = token
            .ok()
            .and_then(|token| self.lent.get_mut(usize::from(token)));
        *place.ok_or(Fault::Buffer)? = Some(lent);
        self.untold |= self.rings.should_notify();
        Ok(())
    }

    /// Takes the next buffer that the device is done with, and how many bytes it says it has written, which may be any number.
    ///
    /// # Errors
    /// The device gave back what it did not have.
    pub fn take(&mut self) -> Result<Option<(Buffer, usize)>, Fault> {
        let Some(token) = self.rings.peek_used() else {
            return Ok(None);
        };
        let lent = self.lent.get_mut(usize::from(token)).and_then(Option::take);
        let lent = lent.ok_or(Fault::Buffer)?;
        let written = self.name(&lent, |rings, sent, received| {
            // SAFETY: this is the buffer that `add` was given when it returned this token, which is lent until now.
            unsafe { rings.pop_used(token, sent, received) }
        });
        // The device may have changed its mind since the token was read.
        let written = written.map_err(|_| Fault::Buffer)?;
        Ok(Some((Buffer(lent.buffer), written as usize)))
    }

    /// Names a buffer to the rings: as one of those that the device reads, or of those that it writes.
    fn name<T>(
        &mut self,
        lent: &Lent,
        step: impl for<'a> FnOnce(&mut VirtQueue<H, N>, &'a [&'a [u8]], &'a mut [&'a mut [u8]]) -> T,
    ) -> T {
        // SAFETY: the slice goes to the rings, which look at its address and length alone.
        let slice = unsafe { self.buffers.bytes(lent.buffer, lent.bytes) };
        if self.to_device {
            step(&mut self.rings, &[slice], &mut [])
        } else {
            step(&mut self.rings, &[], &mut [slice])
        }
    }

    /// Copies the first words of a buffer out.
    pub fn read(&self, buffer: &Buffer, words: usize, out: &mut [u64; BUFFER_WORDS]) {
        let shared = self.buffers.words(buffer.0);
        for (to, from) in out.iter_mut().zip(shared).take(words) {
            *to = from.load(Ordering::Relaxed);
        }
    }

    /// Copies the first words of a buffer in.
    pub fn write(&self, buffer: &Buffer, words: usize, from: &[u64; BUFFER_WORDS]) {
        let shared = self.buffers.words(buffer.0);
        for (to, from) in shared.iter().zip(from).take(words) {
            to.store(*from, Ordering::Relaxed);
        }
    }

    /// Tells the device of buffers that were lent since it was told last, if it wants to know.
    pub fn tell(&mut self, transport: &mut impl Transport) {
        if core::mem::take(&mut self.untold) {
            transport.notify(self.number);
        }
    }

    /// Lets the device interrupt from now on; `false`, and it does not, if it has given something back already.
    #[must_use]
    pub fn arm(&mut self) -> bool {
        self.rings.set_dev_notify(true);
        // What it gives back before it sees that, is seen here: each side writes first, and then reads.
        fence(Ordering::SeqCst);
        let still = !self.rings.can_pop();
        if !still {
            self.disarm();
        }
        still
    }

    /// Asks the device not to interrupt, which it need not obey.
    pub fn disarm(&mut self) {
        self.rings.set_dev_notify(false);
    }
}

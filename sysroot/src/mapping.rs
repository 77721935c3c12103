//! Memory objects, mapped where the program has room: above its heap.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use ipc::abi::layout::{PAGE_SIZE, USER_END};
use ipc::abi::startup::names;
use ipc::abi::{Error, Handle, Rights};

use sample_ring::Words;

use crate::ranges::Ranges;
use crate::sync::{Mutex, OnceLock};
use crate::{OwnedHandle, startup, syscall};

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

static ROOM: OnceLock<Mutex<Ranges>> = OnceLock::new();

fn room() -> &'static Mutex<Ranges> {
    ROOM.get_or_init(|| {
        let page = startup::page();
        Mutex::new(Ranges::new(page.heap_base + page.heap_bytes..USER_END))
    })
}

/// Addresses with nothing mapped at them yet, reserved for the caller.
///
/// # Errors
/// `LimitReached` if there is no such gap.
fn reserve(pages: u64) -> Result<u64, Error> {
    let bytes = pages.checked_mul(PAGE_SIZE).ok_or(Error::BadArgument)?;
    room().lock().take(bytes).ok_or(Error::LimitReached)
}

/// Gives reserved addresses back, at which nothing is mapped any more.
fn release(address: u64) {
    room().lock().give_back(address);
}

/// A memory object, or some pages of it, in this program's address space. Unmapped when dropped.
///
/// Another program may have the same memory and write to it at any time. So bytes are copied in and out, or seen as
/// atomics, and no plain reference is given.
#[derive(Debug)]
pub struct Mapping {
    /// Where the reserved addresses begin; what is below `address` stays unmapped.
    reserved: u64,
    address: u64,
    pages: u64,
    writable: bool,
}

impl Mapping {
    /// Maps `pages` pages of an object, from page `first` on, for reading and, if `writable`, writing.
    ///
    /// # Errors
    /// See the call `map`.
    pub fn new(memory: Handle, first: u64, pages: u64, writable: bool) -> Result<Self, Error> {
        let rights = if writable {
            Rights::READ | Rights::WRITE
        } else {
            Rights::READ
        };
        Self::above(0, memory, first, pages, rights)
    }

    /// Zeroed pages for a stack: below them is a page that stays unmapped, so that a stack which is used up faults.
    ///
    /// # Errors
    /// See the calls `memory_create` and `map`.
    pub(crate) fn stack(pages: u64) -> Result<Self, Error> {
        let memory = OwnedHandle::new(syscall::memory_create(Handle::NONE, pages, 0)?);
        Self::above(1, memory.raw(), 0, pages, Rights::READ | Rights::WRITE)
    }

    /// Maps pages above `gap` pages that are kept unmapped.
    fn above(
        gap: u64,
        memory: Handle,
        first: u64,
        pages: u64,
        rights: Rights,
    ) -> Result<Self, Error> {
        let reserved = reserve(pages.checked_add(gap).ok_or(Error::BadArgument)?)?;
        let address = reserved + gap * PAGE_SIZE;
        // SAFETY: the range was reserved, so no code of this program relies on what is there.
        let mapped = unsafe { syscall::map(Handle::NONE, memory, address, first, pages, rights) };
        if let Err(error) = mapped {
            release(reserved);
            return Err(error);
        }
        Ok(Self {
            reserved,
            address,
            pages,
            writable: rights.contains(Rights::WRITE),
        })
    }

    /// Maps a whole object for reading.
    ///
    /// # Errors
    /// See the calls `memory_info` and `map`.
    pub fn whole(memory: Handle) -> Result<Self, Error> {
        let (pages, _) = syscall::memory_info(memory)?;
        Self::new(memory, 0, pages, false)
    }

    /// Makes a memory object of zeroed pages and maps it for writing.
    ///
    /// # Errors
    /// See the calls `memory_create` and `map`.
    pub fn create(pages: u64) -> Result<(OwnedHandle, Self), Error> {
        let memory = OwnedHandle::new(syscall::memory_create(Handle::NONE, pages, 0)?);
        let mapping = Self::new(memory.raw(), 0, pages, true)?;
        Ok((memory, mapping))
    }

    /// Keeps the memory mapped for good; where it is.
    #[must_use]
    pub fn leak(self) -> NonNull<[u8]> {
        let kept = core::mem::ManuallyDrop::new(self);
        let first = core::ptr::with_exposed_provenance_mut(kept.address as usize);
        // Address 0 is never mapped.
        let first = NonNull::new(first).unwrap_or(NonNull::dangling());
        NonNull::slice_from_raw_parts(first, kept.len())
    }

    /// Where it begins.
    pub(crate) const fn address(&self) -> u64 {
        self.address
    }

    /// Where it ends.
    pub(crate) const fn end(&self) -> u64 {
        self.address + self.pages * PAGE_SIZE
    }

    /// Bytes mapped.
    #[must_use]
    pub const fn len(&self) -> usize {
        (self.pages * PAGE_SIZE) as usize
    }

    /// Whether nothing is mapped, which no mapping is.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.pages == 0
    }

    /// The memory as words, to be read.
    #[must_use]
    pub fn words(&self) -> Words<'_> {
        self.atomics().into()
    }

    const fn atomics(&self) -> &[AtomicU64] {
        // SAFETY: the range is mapped and page-aligned while `self` lives; atomics may be shared with anybody. Only `write` stores,
        // if the mapping is for writing.
        unsafe { core::slice::from_raw_parts(self.address as *const _, self.len() / WORD) }
    }

    const fn bytes(&self) -> &[AtomicU8] {
        // SAFETY: as in `atomics`.
        unsafe { core::slice::from_raw_parts(self.address as *const AtomicU8, self.len()) }
    }

    /// Copies bytes out, from `offset` on; how many there were. By words, if the offset is one of a word.
    pub fn read(&self, offset: usize, out: &mut [u8]) -> usize {
        let bytes = self.bytes().get(offset..).unwrap_or_default();
        let len = out.len().min(bytes.len());
        let mut copied = 0;
        if offset.is_multiple_of(WORD) {
            let words = self.atomics().iter().skip(offset / WORD);
            for (to, from) in out[..len].chunks_exact_mut(WORD).zip(words) {
                to.copy_from_slice(&from.load(Ordering::Relaxed).to_ne_bytes());
                copied += WORD;
            }
        }
        for (to, from) in out[copied..len].iter_mut().zip(&bytes[copied..]) {
            *to = from.load(Ordering::Relaxed);
        }
        len
    }

    /// Copies bytes in, at `offset`; how many fitted. None if the mapping is for reading. By words, if the offset is one of a word.
    pub fn write(&self, offset: usize, from: &[u8]) -> usize {
        if !self.writable {
            return 0;
        }
        let bytes = self.bytes().get(offset..).unwrap_or_default();
        let len = from.len().min(bytes.len());
        let mut copied = 0;
        if offset.is_multiple_of(WORD) {
            let words = self.atomics().iter().skip(offset / WORD);
            for (to, from) in words.zip(from[..len].as_chunks::<WORD>().0) {
                to.store(u64::from_ne_bytes(*from), Ordering::Relaxed);
                copied += WORD;
            }
        }
        for (to, from) in bytes[copied..].iter().zip(&from[copied..len]) {
            to.store(*from, Ordering::Relaxed);
        }
        len
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: borrows of the memory ended with `self`, and a thread whose stack or buffer this is has left it (`thread`).
        let unmapped = unsafe { syscall::unmap(Handle::NONE, self.address, self.pages) };
        // Addresses that the kernel would not unmap are not used again.
        if unmapped.is_ok() {
            release(self.reserved);
        }
    }
}

/// The boot archive, if this program was given it: mapped once, for good.
///
/// # Errors
/// `NotFound` if it was not given; else see the calls `memory_info` and `map`.
pub fn bootfs() -> Result<&'static [u8], Error> {
    static BOOTFS: OnceLock<Result<(u64, usize), Error>> = OnceLock::new();
    let &(address, len) = BOOTFS
        .get_or_init(|| {
            let memory = startup::handle(names::BOOTFS).ok_or(Error::NotFound)?;
            let mapping = core::mem::ManuallyDrop::new(Mapping::whole(memory)?);
            Ok((mapping.address, mapping.len()))
        })
        .as_ref()
        .map_err(|&error| error)?;
    // SAFETY: the range is mapped for reading and never unmapped, and nobody can write to the archive: its object is made by
    // the kernel without the right.
    Ok(unsafe { core::slice::from_raw_parts(address as *const u8, len) })
}

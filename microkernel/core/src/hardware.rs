//! The hardware as the kernel's decisions see it. The kernel binary implements these traits; tests implement them with
//! fakes that are hostile on purpose.

use crate::base::addr::{Frame, Nanos, PhysAddr, Tsc};
use crate::base::cpu::CpuId;
use crate::boot::memory::Range;
use crate::mem::entry::Entry;
use core::sync::atomic::{AtomicU64, Ordering};
use ipc::abi::PowerAction;
use ipc::abi::exit::{CrashReport, ExitReason};
use ipc::abi::inspect::{StackInfo, StackKind};

/// A frame of RAM, for reading: every load is atomic, since anyone may be writing.
pub trait Words: Copy {
    /// The word at an index; of indices from 512 on, the last 9 bits count.
    fn word(self, index: usize) -> u64;
}

impl Words for &[AtomicU64; 512] {
    #[inline]
    fn word(self, index: usize) -> u64 {
        self[index % 512].load(Ordering::Relaxed)
    }
}

/// Physical memory for reading, through the direct map: all of it that samples need.
pub trait PhysWords: Sync {
    /// A frame's words.
    type Words<'a>: Words
    where
        Self: 'a;

    /// The words of a frame of RAM that the direct map covers; `None` of any other. Constant time: the sampling path asks.
    fn words(&self, frame: Frame) -> Option<Self::Words<'_>>;
    /// The same of the frame at an address with [`Entry::TO_USER`] in its low 12 bits, if it lies where most RAM is. `None` says nothing.
    /// So one comparison tells that an entry of a table leads where it should: the sampling path asks this first.
    #[inline]
    fn user_words(&self, tagged: u64) -> Option<Self::Words<'_>> {
        let number = tagged.wrapping_sub(Entry::TO_USER).rotate_right(12);
        self.words(Frame(u32::try_from(number).ok()?))
    }
    /// Whether a frame is RAM that the direct map covers.
    fn is_ram(&self, frame: Frame) -> bool {
        self.words(frame).is_some()
    }
}

/// Physical memory, through the direct map. Addresses given here were checked by the caller: they lie in RAM.
pub trait PhysMemory: PhysWords {
    /// Reads a word; `at` is 8-byte aligned. The load is atomic.
    fn read(&self, at: PhysAddr) -> u64;
    /// Writes a word; `at` is 8-byte aligned. The store is atomic.
    fn write(&self, at: PhysAddr, value: u64);
    /// Copies bytes; both ranges lie in one frame each and do not overlap.
    fn copy(&self, from: PhysAddr, to: PhysAddr, bytes: usize);
    /// Zeroes a frame.
    fn zero(&self, frame: Frame);
    /// Copies bytes out of one frame.
    fn read_bytes(&self, from: PhysAddr, to: &mut [u8]);
    /// Copies bytes into one frame.
    fn write_bytes(&self, to: PhysAddr, from: &[u8]);
}

/// Everything else the kernel asks of the machine.
pub trait Hardware: PhysMemory {
    /// The time-stamp counter.
    fn tsc(&self) -> Tsc;
    /// Nanoseconds since boot.
    fn now(&self) -> Nanos;
    /// Converts a TSC difference to nanoseconds.
    fn tsc_to_nanos(&self, ticks: u64) -> u64;
    /// Nanoseconds since boot of a TSC value.
    fn time_at(&self, tsc: u64) -> Nanos;

    /// Makes another CPU enter the kernel soon (an IPI); a CPU may be kicked for nothing.
    fn kick(&self, cpu: CpuId);
    /// Sends a CPU an NMI; that may be this one. Who does has announced it.
    fn nmi(&self, cpu: CpuId);
    /// Asks for a timer interrupt on this CPU at this time, besides its tick; replaces the last one.
    fn set_timer(&self, deadline: Nanos);

    /// Puts an address space on this CPU and flushes its translations. `None` is the kernel's own, without a user half.
    fn load_space(&self, root: Option<Frame>);
    /// Flushes this CPU's translations of one page of the current space.
    fn flush_page(&self, address: u64);
    /// Flushes all of this CPU's user translations.
    fn flush_all(&self);
    /// The kernel's upper-half entries to copy into a new root table: entry `index`, 256 to 511.
    fn kernel_entry(&self, index: usize) -> u64;
    /// Sets this CPU's user FS base.
    fn set_fs_base(&self, base: u64);

    /// Masks an interrupt line.
    fn mask(&self, line: u32);
    /// Unmasks an interrupt line, and routes it to a CPU.
    fn unmask(&self, line: u32);
    /// Whether no part of a range of addresses is RAM of any kind, or registers that are the kernel's own. Bounded.
    fn is_device(&self, range: Range) -> bool;
    /// What a device writes to signal a line from [`lines`](Self::lines) on: an address, and the data.
    fn message(&self, line: u32) -> (u64, u64);
    /// Interrupt lines there are that devices are wired to; those from here on are signalled by messages.
    fn lines(&self) -> u32;
    /// Whether a line is the kernel's own.
    fn keeps(&self, line: u32) -> bool;

    /// Reads an I/O port, 1, 2 or 4 bytes wide.
    fn port_read(&self, port: u16, bytes: u8) -> u32;
    /// Writes an I/O port, 1, 2 or 4 bytes wide.
    fn port_write(&self, port: u16, bytes: u8, value: u32);

    /// How deep a stack of a CPU was ever used. Bounded by its size.
    fn stack(&self, cpu: CpuId, which: StackKind) -> StackInfo;

    /// Ends the machine's run.
    fn power(&self, action: PowerAction) -> !;
    /// Ends the machine's run as a failure, because the first program has ended; says how.
    fn init_ended(&self, reason: ExitReason, code: u64, crash: Option<&CrashReport>) -> !;
}

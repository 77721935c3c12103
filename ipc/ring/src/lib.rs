//! The per-CPU ring of sample records: written by the kernel, read by `profd` through a read-only mapping.
//!
//! A ring never makes its writer wait and never refuses a record: the newest overwrites the oldest, and the reader counts
//! what it missed. So the writer may run in an NMI, and a reader that is slow, dead or hostile costs the kernel nothing.
//! What a reader gets is whole, or counted: `read + lost + damaged` is always the number of records behind its position.
//!
//! # Memory
//! All words are 64 bits. A ring begins with a header of [`Geometry::header_words`], then come its slots.
//!
//! | header word | meaning |
//! |---|---|
//! | 0 | `MAGIC`: what this is, and the version of this table |
//! | 1 | records the ring holds, a power of two |
//! | 2 | words in a slot |
//! | 8 | head: records written since boot; in a cache line of its own |
//!
//! Record `n`, counted from 1, lives in slot `(n - 1) % records`. A slot's word 0 is its sequence: `n` while it holds
//! record `n` whole, 0 while it is being written. Word 1 is the record's header ([`ipc::abi::profile::Header`]), which
//! says how many words are used.
//!
//! # Ordering
//! Writer: sequence := 0; release fence; payload, relaxed; sequence := n, release; head := n, release.
//! Reader: head, relaxed; acquire fence; sequence; acquire fence; payload, relaxed; acquire fence; sequence again.
//!
//! - The head synchronizes with record `head` and all before it, so the slot of a record at or below the head shows that
//!   record or a later one, never an older one.
//! - If any payload word the reader loaded came from a later record, the writer's fence and the reader's last fence order
//!   that record's `sequence := 0` before the reader's second look, which then differs from `n`. So two equal looks mean a
//!   whole record.
//! - The release of the sequence and the reader's fence after its first look make a slot true by itself. For a record at or
//!   below the head, the head's release would do; on x86 all of these are plain moves.
//!
//! The reader loads relaxed and fences, because only relaxed loads are promised to work on read-only memory
//! (`core::sync::atomic`, "Atomic accesses to read-only memory").
#![cfg_attr(not(any(test, loom)), no_std)]

mod geometry;
#[cfg(not(loom))]
mod memory;
#[cfg(all(test, loom))]
mod races;
mod reader;
mod sample;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
mod words;
mod writer;

#[cfg(loom)]
pub use loom::sync::atomic::AtomicU64;

#[cfg(not(loom))]
pub use core::sync::atomic::AtomicU64;

#[cfg(loom)]
use loom::sync::atomic::fence;

#[cfg(not(loom))]
use core::sync::atomic::fence;

pub use core::sync::atomic::Ordering;
pub use geometry::Geometry;
#[cfg(not(loom))]
pub use memory::words;
pub use reader::{Counts, Drain, Reader, RingError};
pub use sample::{Frames, Part, RecordError, Sample};
pub use words::Words;
pub use writer::{Slot, Writer};

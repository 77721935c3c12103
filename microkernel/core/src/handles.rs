//! Handle tables. A table is made of chunks from a pool, so that a process with few handles costs little. An entry keeps its
//! generation when it is freed, so that an old handle names nothing.

use crate::base::cpu::Cpu;
use crate::base::pool::{Pool, Ref};
use crate::object::Object;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use ipc::abi::{Error, Handle, ObjectType, Rights};

/// Entries in a chunk.
pub const CHUNK_ENTRIES: usize = 32;
/// Chunks in a table at most: 1024 handles.
pub const CHUNKS_MAX: usize = 32;

/// What a handle is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// What it names.
    pub object: Object,
    /// What it allows.
    pub rights: Rights,
}

impl Grant {
    /// An object, for who keeps it and does nothing to it.
    #[must_use]
    pub const fn keeping(object: Object) -> Self {
        Self {
            object,
            rights: Rights::empty(),
        }
    }

    /// Whether moving it with these rights takes the right to receive from an endpoint away, which is counted: then the move
    /// is a copy, and the original is closed when the copy has arrived.
    #[must_use]
    pub fn stops_receiving(&self, rights: Rights) -> bool {
        matches!(self.object, Object::Endpoint(..))
            && (self.rights - rights).contains(Rights::RECEIVE)
    }

    /// Itself, if it allows all of `rights`.
    ///
    /// # Errors
    /// `MissingRight`.
    pub fn with(self, rights: Rights) -> Result<Self, Error> {
        if self.rights.contains(rights) {
            Ok(self)
        } else {
            Err(Error::MissingRight)
        }
    }

    /// What `object` finds it to name, if it allows all of `rights`. The type is looked at before the rights: a right means something
    /// for a type only.
    ///
    /// # Errors
    /// `WrongType`, `MissingRight`.
    pub fn named<T>(
        self,
        object: impl FnOnce(Object) -> Option<T>,
        rights: Rights,
    ) -> Result<T, Error> {
        let named = object(self.object).ok_or(Error::WrongType)?;
        self.with(rights).map(|_| named)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Free = 0,
    Full = 1,
    /// In a message under way: it names nothing, and its place is kept.
    Moving = 2,
}

/// One entry: `rights | type << 32 | generation << 40 | use << 60`, then the object's two words. All are read and
/// written under the table's lock.
#[derive(Debug)]
struct Entry([AtomicU64; 3]);

const GENERATIONS: u32 = 1 << (32 - Handle::INDEX_BITS);

impl Entry {
    fn state(&self) -> Use {
        match self.0[0].load(Relaxed) >> 60 {
            1 => Use::Full,
            2 => Use::Moving,
            _ => Use::Free,
        }
    }
    fn set_state(&self, state: Use) {
        self.0[0].store(
            self.0[0].load(Relaxed) & !(0xf << 60) | (state as u64) << 60,
            Relaxed,
        );
    }
    fn generation(&self) -> u32 {
        (self.0[0].load(Relaxed) >> 40) as u32 & (GENERATIONS - 1)
    }
    fn grant(&self) -> Option<Grant> {
        let head = self.0[0].load(Relaxed);
        let kind = ObjectType::from_raw((head >> 32) as u8)?;
        let object = Object::unpack(kind, [self.0[1].load(Relaxed), self.0[2].load(Relaxed)])?;
        Some(Grant {
            object,
            rights: Rights::from_bits_truncate(head as u32),
        })
    }
    /// Fills the entry under its next generation, which is never zero.
    fn fill(&self, grant: Grant) -> u32 {
        let generation = match (self.generation() + 1) % GENERATIONS {
            0 => 1,
            next => next,
        };
        let words = grant.object.pack();
        let head = u64::from(grant.rights.bits())
            | (grant.object.kind() as u64) << 32
            | u64::from(generation) << 40;
        self.0[0].store(head | (Use::Full as u64) << 60, Relaxed);
        self.0[1].store(words[0], Relaxed);
        self.0[2].store(words[1], Relaxed);
        generation
    }
}

/// Part of a handle table.
#[derive(Debug)]
pub struct Chunk([Entry; CHUNK_ENTRIES]);

impl Chunk {
    /// An empty slot.
    #[must_use]
    pub const fn empty() -> Self {
        Self([const { Entry([const { AtomicU64::new(0) }; 3]) }; CHUNK_ENTRIES])
    }
}

/// A process's handles.
#[derive(Debug)]
pub struct HandleTable {
    chunks: [Option<Ref<Chunk>>; CHUNKS_MAX],
    /// Bit per free entry of each chunk that is there.
    free: [u32; CHUNKS_MAX],
    /// The process has ended: nothing goes in any more.
    closed: bool,
}

impl HandleTable {
    /// An empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            chunks: [None; CHUNKS_MAX],
            free: [0; CHUNKS_MAX],
            closed: false,
        }
    }

    fn entry(&self, chunks: &Pool<Chunk>, handle: Handle) -> Result<&'static Entry, Error> {
        let reference = self
            .chunks
            .get(handle.index() / CHUNK_ENTRIES)
            .copied()
            .flatten()
            .ok_or(Error::BadHandle)?;
        let chunk = chunks.get(reference).ok_or(Error::BadHandle)?;
        let entry = &chunk.0[handle.index() % CHUNK_ENTRIES];
        if entry.state() == Use::Full && entry.generation() == handle.generation() {
            Ok(entry)
        } else {
            Err(Error::BadHandle)
        }
    }

    /// What a handle names.
    ///
    /// # Errors
    /// `BadHandle`.
    pub fn get(&self, chunks: &Pool<Chunk>, handle: Handle) -> Result<Grant, Error> {
        self.entry(chunks, handle)?.grant().ok_or(Error::BadHandle)
    }

    /// Adds a chunk from the pool.
    ///
    /// # Errors
    /// `LimitReached` when the table has all it may; `OutOfMemory` when the pool is empty; `PeerDied` when the process has ended.
    pub fn grow(&mut self, cpu: &Cpu, chunks: &Pool<Chunk>) -> Result<(), Error> {
        let place = self
            .chunks
            .iter()
            .position(Option::is_none)
            .ok_or(Error::LimitReached)?;
        if self.closed {
            return Err(Error::PeerDied);
        }
        let (reference, _) = chunks.take(cpu).ok_or(Error::OutOfMemory)?;
        self.chunks[place] = Some(reference);
        self.free[place] = u32::MAX;
        Ok(())
    }

    /// Handles in it, those on their way included.
    #[must_use]
    pub fn used(&self) -> u32 {
        let chunks = self.chunks.iter().flatten().count();
        (chunks * CHUNK_ENTRIES) as u32 - self.room()
    }

    /// Free places.
    #[must_use]
    pub fn room(&self) -> u32 {
        self.free.iter().map(|mask| mask.count_ones()).sum()
    }

    /// Puts a grant in.
    ///
    /// # Errors
    /// `PeerDied` when the process has ended, `LimitReached` when the table is full.
    pub fn insert(&mut self, chunks: &Pool<Chunk>, grant: Grant) -> Result<Handle, Error> {
        if self.closed {
            return Err(Error::PeerDied);
        }
        let place = self
            .free
            .iter()
            .position(|&mask| mask != 0)
            .ok_or(Error::LimitReached)?;
        let chunk = self.chunks[place]
            .and_then(|reference| chunks.get(reference))
            .ok_or(Error::LimitReached)?;
        let bit = self.free[place].trailing_zeros();
        self.free[place] &= !(1 << bit);
        let generation = chunk.0[bit as usize].fill(grant);
        Ok(Handle::new(
            (place * CHUNK_ENTRIES) as u32 + bit,
            generation,
        ))
    }

    /// Takes a handle out.
    ///
    /// # Errors
    /// `BadHandle`.
    pub fn remove(&mut self, chunks: &Pool<Chunk>, handle: Handle) -> Result<Grant, Error> {
        let entry = self.entry(chunks, handle)?;
        let grant = entry.grant().ok_or(Error::BadHandle)?;
        entry.set_state(Use::Free);
        self.free[handle.index() / CHUNK_ENTRIES] |= 1 << (handle.index() % CHUNK_ENTRIES);
        Ok(grant)
    }

    /// Takes a handle out for a message under way, and keeps its place.
    ///
    /// # Errors
    /// `BadHandle`.
    pub fn begin_move(&mut self, chunks: &Pool<Chunk>, handle: Handle) -> Result<Grant, Error> {
        let entry = self.entry(chunks, handle)?;
        let grant = entry.grant().ok_or(Error::BadHandle)?;
        entry.set_state(Use::Moving);
        Ok(grant)
    }

    /// Ends a move: the place becomes free if the message went, or the handle valid again if it did not. Returns false
    /// if the process has ended meanwhile, so that a grant that did not go is the caller's to release.
    pub fn end_move(&mut self, chunks: &Pool<Chunk>, handle: Handle, gone: bool) -> bool {
        let (place, bit) = (
            handle.index() / CHUNK_ENTRIES,
            handle.index() % CHUNK_ENTRIES,
        );
        let Some(chunk) = self
            .chunks
            .get(place)
            .copied()
            .flatten()
            .and_then(|reference| chunks.get(reference))
        else {
            return false;
        };
        let entry = &chunk.0[bit];
        if entry.state() != Use::Moving || entry.generation() != handle.generation() {
            return false;
        }
        if gone || self.closed {
            entry.set_state(Use::Free);
            self.free[place] |= 1 << bit;
        } else {
            entry.set_state(Use::Full);
        }
        !self.closed
    }

    /// Refuses insertions from now on.
    pub const fn close(&mut self) {
        self.closed = true;
    }

    /// For a closed table: takes out the next entry at or after `cursor` of at most `steps` looked at. Returns it and where
    /// to go on; the cursor is at the end when it is [`CHUNKS_MAX`] `*` [`CHUNK_ENTRIES`].
    pub fn drain(
        &mut self,
        chunks: &Pool<Chunk>,
        mut cursor: u32,
        steps: u32,
    ) -> (Option<Grant>, u32) {
        for _ in 0..steps {
            let (place, bit) = (
                cursor as usize / CHUNK_ENTRIES,
                cursor as usize % CHUNK_ENTRIES,
            );
            let Some(&reference) = self.chunks.get(place) else {
                return (None, cursor);
            };
            let Some(chunk) = reference.and_then(|reference| chunks.get(reference)) else {
                cursor = ((place + 1) * CHUNK_ENTRIES) as u32;
                continue;
            };
            cursor += 1;
            let entry = &chunk.0[bit];
            if entry.state() == Use::Full {
                entry.set_state(Use::Free);
                self.free[place] |= 1 << bit;
                return (entry.grant(), cursor);
            }
        }
        (None, cursor)
    }

    /// Every handle that is not on its way, with what it grants, in the order of the table. For tests.
    #[cfg(test)]
    pub(crate) fn grants(&self, chunks: &Pool<Chunk>) -> Vec<(Handle, Grant)> {
        let mut grants = Vec::new();
        for (place, reference) in self.chunks.iter().enumerate() {
            let Some(chunk) = reference.and_then(|reference| chunks.get(reference)) else {
                continue;
            };
            for (bit, entry) in chunk.0.iter().enumerate() {
                let free = self.free[place] >> bit & 1 == 1;
                assert_eq!(free, entry.state() == Use::Free, "an entry and its bit");
                if entry.state() == Use::Full {
                    let index = (place * CHUNK_ENTRIES + bit) as u32;
                    let handle = Handle::new(index, entry.generation());
                    grants.push((handle, entry.grant().unwrap()));
                }
            }
        }
        grants
    }

    /// Whether no handle is on its way. For tests.
    #[cfg(test)]
    pub(crate) fn is_at_rest(&self, chunks: &Pool<Chunk>) -> bool {
        let taken: u32 = self
            .chunks
            .iter()
            .zip(&self.free)
            .filter(|(chunk, _)| chunk.is_some())
            .map(|(_, free)| free.count_zeros())
            .sum();
        taken as usize == self.grants(chunks).len()
    }

    /// For a closed and drained table: gives its chunks back, and says how many there were. An entry may still be moving;
    /// its message finds the table without it.
    pub fn release(&mut self, cpu: &Cpu, chunks: &Pool<Chunk>) -> u32 {
        let mut released = 0;
        for (chunk, free) in self.chunks.iter_mut().zip(&mut self.free) {
            if let Some(reference) = chunk.take() {
                if let Some(chunk) = chunks.get(reference) {
                    for entry in chunk.0.iter().filter(|entry| entry.state() != Use::Free) {
                        entry.set_state(Use::Free);
                    }
                }
                chunks.give(cpu, reference);
                *free = 0;
                released += 1;
            }
        }
        released
    }
}

impl Default for HandleTable {
    fn default() -> Self {
        Self::new()
    }
}

//! Reads a program's memory the way the MMU would, but by hand: the root comes from the thread and not from CR3, because the
//! walk may be about a client whose address space is not on this CPU.
//!
//! Part of the sampling path; its rules are in [`super`].

use super::walk::Walk;
use crate::base::addr::{Frame, UserAddr};
use crate::hardware::{PhysWords, Words};
use crate::mem::entry::Entry;
use crate::mem::paging::Tables;
use ipc::abi::layout::{PAGE_SIZE, USER_END};
use sample_ring::{AtomicU64, Ordering};

/// Words of a page.
const WORDS: u64 = PAGE_SIZE / 8;

/// 4 KiB of a program's memory: a chain of frames mostly stays in one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window<W> {
    start: u64,
    words: W,
}

/// Where `N` words of a [`Window`] are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run<const N: usize>(usize);

impl<W: Words> Window<W> {
    /// The page of an address of the lower half, under a root table; `None` unless it is mapped and user-accessible at every level,
    /// and backed by RAM.
    // A function of its own: it has the registers for itself, and hands back what is at hand in two.
    #[inline(never)]
    pub(super) fn of<'m, M>(memory: &'m M, root: Frame, at: u64) -> Option<Self>
    where
        M: PhysWords<Words<'m> = W>,
    {
        match words_of_small(memory, root, at) {
            Some(words) => Some(Self::new(at, words)),
            None => Self::of_any(memory, root, at),
        }
    }

    /// The same of any page.
    #[cold]
    #[inline(never)]
    fn of_any<'m, M>(memory: &'m M, root: Frame, at: u64) -> Option<Self>
    where
        M: PhysWords<Words<'m> = W>,
    {
        if at >= USER_END {
            return None;
        }
        let found = Tables::at(root).translate(memory, UserAddr(at))?;
        // Of a large page each frame is asked about: a mapping of RAM may end in a device.
        let frame = u32::try_from(found.at.0 / PAGE_SIZE).ok()?;
        Some(Self::new(at, memory.words(Frame(frame))?))
    }

    #[inline]
    fn new(at: u64, words: W) -> Self {
        Self {
            start: at & !(PAGE_SIZE - 1),
            words,
        }
    }

    /// Which of the words is at an address. Where there is none, because it is misaligned or elsewhere, the rotated offset is too large.
    #[inline]
    const fn index(self, at: u64) -> u64 {
        at.wrapping_sub(self.start).rotate_right(3)
    }

    /// The `N` words from an address upwards. `None` unless it is 8-byte aligned, and all of them are here.
    #[inline]
    pub(super) fn words<const N: usize>(self, at: u64) -> Option<[u64; N]> {
        let index = self.index(at);
        let last = WORDS - N as u64;
        (index <= last).then(|| core::array::from_fn(|n| self.words.word(index as usize + n)))
    }

    /// Where the `N` words from an address upwards are, if they are all here.
    #[inline]
    pub(super) fn run<const N: usize>(self, at: u64) -> Option<Run<N>> {
        let index = self.index(at);
        (index <= WORDS - N as u64).then_some(Run(index as usize))
    }

    /// Copies words to as many places.
    // Inlined, because the words would have to be looked for again in each of them: that they are all here is known by its caller.
    #[inline(always)]
    pub(super) fn copy<const N: usize>(self, from: Run<N>, to: &[AtomicU64; N]) {
        for (index, place) in to.iter().enumerate() {
            place.store(self.words.word(from.0 + index), Ordering::Relaxed);
        }
    }

    /// Goes on with a walk for as long as its frames are here and there is nothing odd about them: nearly always to the end, and then
    /// says how many return addresses there are.
    ///
    /// # Errors
    /// How far it came, for who can tell what is next.
    // Inlined, because it is all that the usual sample does with the page: what it works with stays in registers.
    #[inline(always)]
    pub(super) fn follow(self, from: Walk, places: &[AtomicU64]) -> Result<usize, Walk> {
        /// Words of a page that a frame usually begins at: every other. Compilers keep frames aligned to their size (System V ABI for
        /// AMD64, section 3.2.2), so whether both words of a frame are here is one comparison, and whether both are above those of the
        /// frame before, another one.
        const PLACES: u64 = WORDS - 2;
        let mut frame = self.index(from.frame);
        if frame & !PLACES != 0 || from.frame < from.floor {
            // There is none, or it is elsewhere.
            return if from.frame == 0 { Ok(0) } else { Err(from) };
        }
        let mut taken = 0;
        while taken < places.len() {
            let next = self.index(self.words.word(frame as usize));
            let address = self.words.word(frame as usize + 1);
            if next & !PLACES != 0 {
                if address == 0 {
                    return Ok(taken);
                }
                break;
            }
            // 0 becomes the largest number.
            if address.wrapping_sub(1) >= USER_END - 1 {
                break;
            }
            places[taken].store(address, Ordering::Relaxed);
            if next <= frame {
                break;
            }
            taken += 1;
            frame = next;
        }
        // The last frame is looked at again.
        let frame = self.start + frame * 8;
        Err(Walk {
            taken,
            frame,
            floor: frame,
        })
    }
}

/// The words of a page of 4 KiB, if it and all tables lie where most RAM is: so it is nearly always, and `None` says nothing.
#[inline]
fn words_of_small<M: PhysWords>(memory: &M, root: Frame, at: u64) -> Option<M::Words<'_>> {
    if at >= USER_END {
        return None;
    }
    let mut words = memory.user_words(root.start().0 | Entry::TO_USER)?;
    for shift in [39, 30, 21] {
        let entry = Entry(words.word((at >> shift) as usize));
        words = memory.user_words(entry.to_user_table())?;
    }
    let entry = Entry(words.word((at >> 12) as usize));
    memory.user_words(entry.to_user_page())
}

/// A program's memory, for reading words.
pub(crate) struct UserMemory<'m, M: PhysWords> {
    memory: &'m M,
    root: Frame,
    window: Option<Window<M::Words<'m>>>,
}

impl<'m, M: PhysWords> UserMemory<'m, M> {
    /// The memory under a root table.
    #[inline]
    pub(crate) const fn new(memory: &'m M, root: Frame) -> Self {
        Self {
            memory,
            root,
            window: None,
        }
    }
    /// The same, with a page of it at hand.
    #[inline]
    pub(super) const fn at(memory: &'m M, root: Frame, page: Window<M::Words<'m>>) -> Self {
        Self {
            memory,
            root,
            window: Some(page),
        }
    }

    /// The word at an address. `None` unless the address is 8-byte aligned, in the lower half, mapped and user-accessible at
    /// every level, and backed by RAM.
    pub(crate) fn read(&mut self, at: u64) -> Option<u64> {
        let here = self.window.and_then(|window| window.words(at));
        if let Some([word]) = here {
            return Some(word);
        }
        if !at.is_multiple_of(8) {
            return None;
        }
        let window = Window::of(self.memory, self.root, at)?;
        self.window = Some(window);
        window.words(at).map(|[word]| word)
    }
}

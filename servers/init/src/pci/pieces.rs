//! Which pages of its registers a driver gets: whole pages that hold nothing else, and no part of the interrupt table.

use alloc::vec::Vec;

use ipc::abi::layout::PAGE_SIZE;

use super::bar::Bar;
use super::msix::Span;

/// Pages of registers, in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Number of the base address register.
    pub bar: u8,
    /// Offset of the first page from where the register points.
    pub offset: u64,
    /// Physical address.
    pub base: u64,
    /// How many.
    pub pages: u64,
}

impl Piece {
    /// How many bytes.
    #[cfg(test)]
    pub const fn bytes(&self) -> u64 {
        self.pages * PAGE_SIZE
    }
}

/// The pages of some registers without those that these spans touch. Registers that are less than a page have none: others may
/// lie in the same page.
pub fn of(bar: &Bar, without: &[Span]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    if bar.bytes < PAGE_SIZE {
        return pieces;
    }
    let end = bar.base + bar.bytes;
    let mut holes: Vec<(u64, u64)> = without
        .iter()
        .map(|span| {
            let first = span.base / PAGE_SIZE * PAGE_SIZE;
            (first, (span.base + span.bytes).next_multiple_of(PAGE_SIZE))
        })
        .filter(|&(first, last)| first < end && bar.base < last)
        .collect();
    holes.sort_unstable();
    holes.push((end, end));
    let mut from = bar.base;
    for (first, last) in holes {
        if first > from {
            pieces.push(Piece {
                bar: bar.index,
                offset: from - bar.base,
                base: from,
                pages: (first - from) / PAGE_SIZE,
            });
        }
        from = from.max(last);
    }
    pieces
}

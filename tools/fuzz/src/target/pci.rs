//! Configuration space of a function that says anything, and something else at each reading: looking at it ends, and its driver
//! is given nothing of what init keeps.

use arbitrary::{Arbitrary, Unstructured};
use init::pci::function::Interrupts;
use init::pci::{Address, Config, Function};
use ipc::abi::layout::PAGE_SIZE;

const AT: Address = Address {
    bus: 0,
    device: 3,
    function: 0,
};
const COMMAND: usize = 1;
const BUS_MASTER: u32 = 1 << 2;
/// Reads that looking at one function takes, at most.
const READS_MAX: usize = 400;

/// A function.
#[derive(Arbitrary)]
struct Hostile<'a> {
    words: [u32; 64],
    /// How many low bits of each base address register do not stick.
    bars: [u8; 6],
    /// Takes writes only there.
    writable: [bool; 64],
    /// What is added to what is read, one after the other; nothing behind the last.
    changes: &'a [u8],
    #[arbitrary(default)]
    reads: usize,
}

impl Config for Hostile<'_> {
    fn read_config(&mut self, at: Address, offset: u8) -> u32 {
        if at != AT {
            return !0;
        }
        let change = self.changes.get(self.reads).copied().unwrap_or(0);
        self.reads += 1;
        self.words[usize::from(offset / 4)].wrapping_add(change.into())
    }

    fn write_config(&mut self, at: Address, offset: u8, value: u32) {
        assert!(offset.is_multiple_of(4), "a write to {offset:#x}");
        let word = usize::from(offset / 4);
        if at != AT || !self.writable[word] {
            return;
        }
        // The status says what the function is, and is not written.
        let value = if word == COMMAND {
            value & 0xffff | self.words[word] & 0xffff_0000
        } else {
            value
        };
        let bar = word.checked_sub(4).and_then(|bar| self.bars.get(bar));
        let low = bar.map_or(0, |bits| {
            u32::MAX
                .checked_shl(u32::from(bits % 33))
                .map_or(!0, |mask| !mask)
        });
        self.words[word] = value & !low | self.words[word] & low & 0xf;
    }
}

/// The bytes are the function.
pub fn run(bytes: &[u8]) {
    let Ok(mut hostile) = Hostile::arbitrary(&mut Unstructured::new(bytes)) else {
        return;
    };
    let examined = Function::examine(&mut hostile, AT);
    assert!(hostile.reads < READS_MAX, "{} reads", hostile.reads);
    let Ok(function) = examined else { return };
    if hostile.writable[COMMAND] && hostile.changes.is_empty() {
        assert_eq!(hostile.words[COMMAND] & BUS_MASTER, 0, "it masters the bus");
    }
    for piece in &function.pieces {
        assert!(piece.base.is_multiple_of(PAGE_SIZE) && piece.pages > 0);
        let bytes = piece.pages.checked_mul(PAGE_SIZE);
        let end = bytes.and_then(|bytes| piece.base.checked_add(bytes));
        let Some(end) = end else {
            panic!("{piece:?} goes round the end of memory")
        };
        if let Interrupts::Messages(msix) = function.interrupts {
            for span in [msix.table, msix.pending] {
                let is_apart = span.base + span.bytes <= piece.base || end <= span.base;
                assert!(is_apart, "{span:?} is in {piece:?}");
            }
        }
    }
    let before = hostile.words;
    for offset in 0..=255 {
        let _ = function.read(&mut hostile, offset);
        for value in [0, !0] {
            let _ = function.write(&mut hostile, offset, value);
        }
    }
    for (word, (before, after)) in before.iter().zip(&hostile.words).enumerate() {
        assert!(
            word == COMMAND || before == after,
            "its driver wrote word {word}"
        );
    }
}

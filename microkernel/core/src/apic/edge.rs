//! Interrupt lines that signal by edge. An I/O APIC forgets an edge that comes while its line is masked (Intel 82093AA datasheet,
//! 3.2.4), and a device whose line stays up then never signals again. So such a line is held back here, not masked there: an
//! edge that comes meanwhile is kept, and made up for when the line is let go.

use core::sync::atomic::{AtomicU8, Ordering};
use ipc::abi::layout::INTERRUPTS;

/// Never let go yet: masked in the I/O APIC, which forgets its edges.
const CLOSED: u8 = 0;
/// Edges are delivered.
const OPEN: u8 = 1;
/// Edges are kept.
const HELD: u8 = 2;
/// An edge came while they were kept.
const KEPT: u8 = 3;

/// What letting a line go asks of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum LetGo {
    /// Nothing.
    Nothing,
    /// It is to be unmasked in the I/O APIC.
    Unmask,
    /// Its interrupt is to be raised again: an edge came meanwhile.
    Raise,
}

/// The state of each line.
#[derive(Debug)]
pub struct EdgeLines([AtomicU8; INTERRUPTS as usize]);

impl EdgeLines {
    /// All masked.
    #[must_use]
    pub const fn new() -> Self {
        Self([const { AtomicU8::new(CLOSED) }; INTERRUPTS as usize])
    }

    fn change(&self, line: u32, to: impl Fn(u8) -> u8) -> u8 {
        let Some(state) = self.0.get(line as usize) else {
            return CLOSED;
        };
        let change = |old| Some(to(old));
        match state.fetch_update(Ordering::AcqRel, Ordering::Acquire, change) {
            Ok(old) | Err(old) => old,
        }
    }

    /// Holds a line's edges back.
    pub fn hold(&self, line: u32) {
        self.change(line, |old| if old == OPEN { HELD } else { old });
    }

    /// An edge came in: whether it is to be delivered now.
    #[must_use]
    pub fn came(&self, line: u32) -> bool {
        self.change(line, |old| if old == HELD { KEPT } else { old }) == OPEN
    }

    /// Lets a line's edges through again.
    pub fn let_go(&self, line: u32) -> LetGo {
        match self.change(line, |_| OPEN) {
            CLOSED => LetGo::Unmask,
            KEPT => LetGo::Raise,
            _ => LetGo::Nothing,
        }
    }
}

impl Default for EdgeLines {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_edge_that_came_meanwhile_is_raised_once() {
        let lines = EdgeLines::new();
        assert!(!lines.came(4));
        assert_eq!(lines.let_go(4), LetGo::Unmask);
        assert!(lines.came(4));
        lines.hold(4);
        assert!(!lines.came(4) && !lines.came(4));
        assert_eq!(lines.let_go(4), LetGo::Raise);
        assert!(lines.came(4));
        lines.hold(4);
        assert_eq!(lines.let_go(4), LetGo::Nothing);
    }

    #[test]
    fn a_line_that_is_not_there_is_never_delivered() {
        let lines = EdgeLines::new();
        lines.hold(INTERRUPTS);
        let _ = lines.let_go(u32::MAX);
        assert!(!lines.came(u32::MAX) && !lines.came(INTERRUPTS));
    }

    proptest! {
        /// A driver that holds, serves and lets go hears of every edge: as one delivered or as one raised.
        #[test]
        fn no_edge_is_lost(steps in prop::collection::vec(any::<bool>(), 0..200)) {
            let lines = EdgeLines::new();
            let _ = lines.let_go(0);
            let (mut held, mut unheard) = (false, false);
            for edge in steps {
                if edge {
                    let heard = lines.came(0);
                    prop_assert_eq!(heard, !held);
                    unheard |= !heard;
                    if heard { lines.hold(0); held = true; }
                } else {
                    let raised = lines.let_go(0) == LetGo::Raise;
                    prop_assert_eq!(raised, unheard);
                    (held, unheard) = (false, false);
                }
            }
        }
    }
}

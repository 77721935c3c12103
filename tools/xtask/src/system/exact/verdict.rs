//! A chain held against the true one.

use profd::atlas::Place;
use profd::chain::Step;

/// What a chain is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every caller, and nobody else.
    Exact,
    /// No wrong caller; where some are missing, the chain says so.
    Marked,
    /// It names somebody who is no caller there, or lacks one and does not say so.
    Wrong,
}

/// The true callers, innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truth {
    /// Those that are known.
    pub callers: Vec<Place>,
    /// Whether those are all.
    pub complete: bool,
}

/// Judges the callers of a chain; `open` is whether the record had no room for all.
#[must_use]
pub fn judge(steps: &[Step], open: bool, truth: &Truth) -> Verdict {
    let mut parts = steps.split(|step| *step == Step::Missing);
    let first = parts.next().map(places).unwrap_or_default();
    let rest: Vec<Vec<Place>> = parts.map(places).collect();
    let callers = &truth.callers[..];
    if rest.is_empty() {
        let is_exact = match (open, truth.complete) {
            (false, true) => first == callers,
            (true, true) => callers.starts_with(&first),
            (false, false) => first.starts_with(callers),
            (true, false) => first.starts_with(callers) || callers.starts_with(&first),
        };
        return if is_exact {
            Verdict::Exact
        } else {
            Verdict::Wrong
        };
    }
    let Some(mut behind) = callers.strip_prefix(&first[..]) else {
        let is_beyond = !truth.complete && first.starts_with(callers);
        return if is_beyond {
            Verdict::Marked
        } else {
            Verdict::Wrong
        };
    };
    for caller in rest.concat() {
        match behind.iter().position(|it| *it == caller) {
            Some(at) => behind = &behind[at + 1..],
            None if truth.complete => return Verdict::Wrong,
            None => break,
        }
    }
    Verdict::Marked
}

/// A client's frame is no caller: it has no place here.
fn places(steps: &[Step]) -> Vec<Place> {
    let place = |step: &Step| match *step {
        Step::Caller(place) | Step::Client(place) => Some(place),
        Step::Missing | Step::MissingClient => None,
    };
    steps.iter().filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use profd::atlas::Space;

    const fn place(address: u64) -> Place {
        Place {
            space: Space::Process(1),
            address,
        }
    }

    /// A step for each number; 0 is a gap.
    fn steps(addresses: &[u64]) -> Vec<Step> {
        let step = |&address| match address {
            0 => Step::Missing,
            address => Step::Caller(place(address)),
        };
        addresses.iter().map(step).collect()
    }

    fn verdict(chain: &[u64], open: bool, truth: &[u64], complete: bool) -> Verdict {
        let callers = truth.iter().map(|&address| place(address)).collect();
        judge(&steps(chain), open, &Truth { callers, complete })
    }

    #[test]
    fn a_chain_without_gaps_must_be_the_true_one() {
        use Verdict::{Exact, Wrong};
        assert_eq!(verdict(&[1, 2, 3], false, &[1, 2, 3], true), Exact);
        assert_eq!(verdict(&[1, 3], false, &[1, 2, 3], true), Wrong);
        assert_eq!(verdict(&[1, 2], false, &[1, 2, 3], true), Wrong);
        assert_eq!(verdict(&[1, 2, 3, 4], false, &[1, 2, 3], true), Wrong);
        assert_eq!(verdict(&[1, 2], true, &[1, 2, 3], true), Exact);
        assert_eq!(verdict(&[1, 3], true, &[1, 2, 3], true), Wrong);
        assert_eq!(verdict(&[1, 2, 3], false, &[1, 2], false), Exact);
        assert_eq!(verdict(&[2, 3], false, &[1, 2], false), Wrong);
    }

    #[test]
    fn a_gap_stands_for_callers_and_hides_no_wrong_one() {
        use Verdict::{Marked, Wrong};
        assert_eq!(verdict(&[0, 2, 3], false, &[1, 2, 3], true), Marked);
        assert_eq!(verdict(&[1, 0, 3], false, &[1, 2, 3], true), Marked);
        assert_eq!(verdict(&[1, 0], false, &[1, 2, 3], true), Marked);
        assert_eq!(verdict(&[1, 0, 4], false, &[1, 2, 3], true), Wrong);
        assert_eq!(verdict(&[2, 0, 3], false, &[1, 2, 3], true), Wrong);
        assert_eq!(verdict(&[0, 3, 2], false, &[1, 2, 3], true), Wrong);
    }
}

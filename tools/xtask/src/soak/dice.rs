//! Choices.

use fastrand::Rng;

/// One of these.
///
/// # Panics
/// If there is none.
pub fn one<'a, T>(dice: &mut Rng, of: &'a [T]) -> &'a T {
    &of[dice.usize(..of.len())]
}

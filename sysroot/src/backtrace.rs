//! The walk of a thread's own stack along the frame pointers.

/// Most frames in a backtrace.
pub const FRAMES_MAX: usize = 32;

/// Iterates over return addresses, innermost first: from the frame that `frame_pointer` points at to the outermost, whose
/// saved frame pointer is zero.
///
/// Only words inside the stack are read, frames must lie at growing addresses, and there is an end to it: a stack that was
/// written over gives a short walk, not a fault.
pub fn walk(
    mut frame_pointer: u64,
    stack: core::ops::Range<u64>,
    read: impl Fn(u64) -> u64,
) -> impl Iterator<Item = u64> {
    let mut lowest = stack.start;
    core::iter::from_fn(move || {
        let inside = frame_pointer >= lowest
            && frame_pointer
                .checked_add(16)
                .is_some_and(|end| end <= stack.end);
        if !inside || !frame_pointer.is_multiple_of(8) {
            return None;
        }
        let return_address = read(frame_pointer + 8);
        lowest = frame_pointer + 16;
        frame_pointer = read(frame_pointer);
        (return_address != 0).then_some(return_address)
    })
    .take(FRAMES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BASE: u64 = 0x1000;

    fn walk_words(frame_pointer: u64, words: &[u64]) -> Vec<u64> {
        let end = BASE + words.len() as u64 * 8;
        walk(frame_pointer, BASE..end, |address| {
            assert!((BASE..end).contains(&address) && address.is_multiple_of(8));
            words[((address - BASE) / 8) as usize]
        })
        .collect()
    }

    #[test]
    fn frames_are_followed_to_the_outermost() {
        let words = [0, BASE + 32, 0xa1, 0, 0, 0xa2];
        assert_eq!(walk_words(BASE + 8, &words), [0xa1, 0xa2]);
        let words = [BASE + 16, 0xa1, BASE + 40, 0xa2, 7, 0, 0xa3];
        assert_eq!(walk_words(BASE, &words), [0xa1, 0xa2, 0xa3]);
    }

    #[test]
    fn a_loop_and_a_step_back_end_the_walk() {
        assert_eq!(walk_words(BASE, &[BASE, 0xa1]), [0xa1]);
        assert_eq!(walk_words(BASE + 16, &[0, 0xa0, BASE, 0xa1]), [0xa1]);
        assert_eq!(walk_words(0, &[0, 0xa1]), []);
        assert_eq!(walk_words(u64::MAX - 7, &[0, 0xa1]), []);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn any_stack_is_survived(
            words in prop::collection::vec(
                prop_oneof![any::<u64>(), (0..64u64).prop_map(|word| BASE + word * 8)],
                1..64,
            ),
            start in 0..64u64,
        ) {
            prop_assert!(walk_words(BASE + start * 8, &words).len() <= FRAMES_MAX);
        }
    }
}

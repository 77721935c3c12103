//! What a word that `profile` does not have was probably meant to be.
//!
//! A shell that refuses `by_client` knows what would have been right, and says it. Nothing is ever run on a guess.

use alloc::vec::Vec;

/// A word that is taken, and how it is written, with what stands before or behind it.
const WORDS: [(&str, &str); 11] = [
    ("all", "all"),
    ("depth", "depth N"),
    ("source", "source S"),
    ("by-client", "by-client"),
    ("folded", "folded"),
    ("v", "-v"),
    ("pmu", "source pmu"),
    ("timer", "source timer"),
    ("tick", "source tick"),
    // The report goes on with these behind `pmu/nmi`; which counter it is, the machine says.
    ("intel", "source pmu"),
    ("amd", "source pmu"),
];

/// How the word is written that is so much like this one that it was probably meant. Case, dashes in front, and what is
/// attached to it (`depth=4`) do not count.
pub(super) fn guess(typed: &str) -> Option<&'static str> {
    let attached = |character: char| "=:/".contains(character) || character.is_ascii_digit();
    let typed = typed.trim_start_matches('-');
    let typed = typed.split(attached).next().unwrap_or(typed);
    let near = WORDS.iter().filter_map(|&(word, written)| {
        let edits = edits(typed, word);
        // Two slips in a word of five characters, one in a shorter one.
        (edits <= (word.len() + 1) / 3).then_some((edits, written))
    });
    near.min_by_key(|&(edits, _)| edits)
        .map(|(_, written)| written)
}

/// Characters to be put in, left out or changed to make one word the other, but for case (Levenshtein's distance).
fn edits(typed: &str, word: &str) -> usize {
    let word: Vec<char> = word.chars().collect();
    // Of what was read of `typed`, edits to each beginning of `word`.
    let mut row: Vec<usize> = (0..=word.len()).collect();
    for character in typed.chars() {
        let mut diagonal = row[0];
        row[0] += 1;
        for (index, expected) in word.iter().enumerate() {
            let changed = diagonal + usize::from(!character.eq_ignore_ascii_case(expected));
            diagonal = row[index + 1];
            row[index + 1] = changed.min(row[index] + 1).min(diagonal + 1);
        }
    }
    row[word.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_those_of_the_shortest_way() {
        for (typed, word, expected) in [
            ("", "", 0),
            ("", "depth", 5),
            ("depth", "depth", 0),
            ("DEPTH", "depth", 0),
            ("deph", "depth", 1),
            ("dephth", "depth", 1),
            ("debth", "depth", 1),
            ("dpeth", "depth", 2),
            ("pmu", "tick", 4),
        ] {
            assert_eq!(edits(typed, word), expected, "{typed} {word}");
        }
    }

    #[test]
    fn a_slip_is_seen_through_and_another_word_is_not() {
        for (typed, expected) in [
            ("al", Some("all")),
            ("All", Some("all")),
            ("deph", Some("depth N")),
            ("dpeth", Some("depth N")),
            ("depth=4", Some("depth N")),
            ("--depth", Some("depth N")),
            ("depth4", Some("depth N")),
            ("sorce", Some("source S")),
            ("source:tick", Some("source S")),
            ("by_client", Some("by-client")),
            ("byclient", Some("by-client")),
            ("client", Some("by-client")),
            ("--by-client", Some("by-client")),
            ("foldd", Some("folded")),
            ("fold", Some("folded")),
            ("Folded", Some("folded")),
            ("-folded", Some("folded")),
            ("-V", Some("-v")),
            ("--v", Some("-v")),
            ("tick", Some("source tick")),
            ("timer/nmi", Some("source timer")),
            ("intel", Some("source pmu")),
            ("x", None),
            ("-w", None),
            ("-", None),
            ("", None),
            ("pid", None),
            ("ms", None),
            ("task", None),
            ("chains", None),
            ("flamegraph", None),
            ("übergroß", None),
        ] {
            assert_eq!(guess(typed), expected, "{typed}");
        }
    }
}

//! Shortens long names in the middle so that lines fit, and never makes two names look alike.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};

/// Gives names their short forms. One is used for a whole report, so that a short form stands for one name there.
#[derive(Debug, Default)]
pub struct Shortener {
    /// Whole name behind every form that was given out.
    taken: BTreeMap<String, String>,
}

impl Shortener {
    /// The name in at most `width` characters, which must be 12 or more. It keeps its beginning (the image) and its end
    /// (the function).
    pub fn fit(&mut self, name: &str, width: usize) -> String {
        let length = name.chars().count();
        if length <= width {
            return name.to_string();
        }
        let mut mark = String::from("..");
        let mut number = 1u32;
        loop {
            let kept = width.saturating_sub(mark.len());
            let (head, tail) = (kept / 3, kept - kept / 3);
            let short: String = name
                .chars()
                .take(head)
                .chain(mark.chars())
                .chain(name.chars().skip(length - tail))
                .collect();
            let whole = self
                .taken
                .entry(short.clone())
                .or_insert_with(|| name.to_string());
            if whole == name {
                return short;
            }
            number += 1;
            mark = format!("..{number}..");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_middle_goes_and_both_ends_stay() {
        let mut shortener = Shortener::default();
        assert_eq!(shortener.fit("kernel`idle", 12), "kernel`idle");
        assert_eq!(
            shortener.fit("kernel`a::very::long::path::transfer", 20),
            "kernel..th::transfer"
        );
        assert_eq!(
            shortener.fit("kernel`another::way::to::path::transfer", 20),
            "kerne..2..::transfer"
        );
        assert_eq!(
            shortener.fit("kernel`a::very::long::path::transfer", 20),
            "kernel..th::transfer"
        );
    }

    proptest! {
        #[test]
        fn short_forms_fit_and_stand_for_one_name(names in prop::collection::vec("[ab]{10,14}", 1..40)) {
            let mut shortener = Shortener::default();
            let mut seen = BTreeMap::new();
            for name in &names {
                let short = shortener.fit(name, 12);
                prop_assert!(short.chars().count() <= 12);
                prop_assert_eq!(seen.entry(short).or_insert(name), &name);
            }
        }
    }
}

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
    /// The name in at most `width` characters, which must be 12 or more. What a generic function is made for goes first: it is a list
    /// of types, often closures, and longer than all the rest. If that is not enough, the name keeps its beginning (the image) and
    /// its end (the function).
    pub fn fit(&mut self, name: &str, width: usize) -> String {
        let length = name.chars().count();
        if length <= width {
            return name.to_string();
        }
        let mut mark = String::from("..");
        let mut number = 1u32;
        loop {
            let mut short = without_arguments(name, &mark);
            if short.chars().count() > width {
                short = without_middle(name, length, width, &mark);
            }
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

/// The name with the mark for what is between `::<` and its `>`.
fn without_arguments(name: &str, mark: &str) -> String {
    let mut short = String::new();
    let mut depth = 0u32;
    // Where the arguments are that are left out: brackets around them.
    let mut outside = None;
    let mut before = ' ';
    for character in name.chars() {
        if character == '>' && before != '-' {
            depth = depth.saturating_sub(1);
            if outside == Some(depth) {
                outside = None;
                short.push_str(mark);
            }
        }
        if outside.is_none() {
            short.push(character);
        }
        if character == '<' {
            if outside.is_none() && short.ends_with("::<") {
                outside = Some(depth);
            }
            depth += 1;
        }
        before = character;
    }
    short
}

/// The name in `width` characters, with the mark for what is missing.
fn without_middle(name: &str, length: usize, width: usize, mark: &str) -> String {
    let kept = width.saturating_sub(mark.len());
    let (head, tail) = (kept / 3, kept - kept / 3);
    name.chars()
        .take(head)
        .chain(mark.chars())
        .chain(name.chars().skip(length - tail))
        .collect()
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

    #[test]
    fn what_a_function_is_made_for_goes_first() {
        let mut shortener = Shortener::default();
        let mut fit = |name: &str| shortener.fit(name, 30);
        assert_eq!(fit("x`a::run::<u8>"), "x`a::run::<u8>");
        let closure = "x`a::run::<<b::Builder>::start<(), x::main::{closure#0}>>";
        assert_eq!(fit(closure), "x`a::run::<..>");
        assert_eq!(fit(&closure.replace("#0", "#1")), "x`a::run::<..2..>");
        assert_eq!(fit(closure), "x`a::run::<..>");
        assert_eq!(
            fit("x`<b::Builder>::go::<fn() -> u8>"),
            "x`<b::Builder>::go::<..>"
        );
        assert_eq!(
            fit("x`a::<fn() -> u8, u16>::b::<u32, u64>"),
            "x`a::<..>::b::<..>"
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

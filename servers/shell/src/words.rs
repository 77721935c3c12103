//! A line's words.

use alloc::string::String;
use alloc::vec::Vec;

/// A quote that never ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenQuote {
    /// The words before the one that it is in.
    pub before: Vec<String>,
}

/// Begins a comment, where a word would begin.
pub const COMMENT: char = '#';

/// Splits a line at spaces. Double quotes keep a word together, and a `#` where a word would begin ends the line, so that what
/// `help` and the documents print can be typed as it stands. There is no other special character.
///
/// # Errors
/// [`OpenQuote`] if the last quote has no partner.
pub fn split(line: &str) -> Result<Vec<String>, OpenQuote> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' if !quoted => words.extend(word.take()),
            COMMENT if word.is_none() => break,
            other => word.get_or_insert_default().push(other),
        }
    }
    if quoted {
        return Err(OpenQuote { before: words });
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spaces_part_words_and_quotes_hold_them() {
        assert_eq!(
            split("  run  shares 60 "),
            Ok(vec!["run".into(), "shares".into(), "60".into()])
        );
        assert_eq!(
            split("dmesg \"page fault\" a\"\"b \"\""),
            Ok(vec![
                "dmesg".into(),
                "page fault".into(),
                "ab".into(),
                "".into(),
            ])
        );
        assert_eq!(split("   "), Ok(vec![]));
        let open = |before: &[&str]| {
            let before = before.iter().map(|&word| word.into()).collect();
            Err(OpenQuote { before })
        };
        assert_eq!(split("a \"b"), open(&["a"]));
        assert_eq!(split("a\"b c"), open(&[]));
    }

    #[test]
    fn a_comment_begins_where_a_word_would() {
        assert_eq!(
            split("kill 7  # it's \"done"),
            Ok(vec!["kill".into(), "7".into()])
        );
        assert_eq!(split("#kill 7"), Ok(vec![]));
        assert_eq!(
            split("a#b \"#c\" \"\"#d \" # \""),
            Ok(vec!["a#b".into(), "#c".into(), "#d".into(), " # ".into()])
        );
    }

    proptest! {
        #[test]
        fn quoting_each_word_gives_them_back(words in prop::collection::vec("[^\"]*", 0..5)) {
            let line = words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(split(&line), Ok(words));
        }
    }
}

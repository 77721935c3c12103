//! The value of an integer constant in the sources, without compiling them: those of the kernel and of servers are private.

use super::{files, read};
use std::path::Path;

/// The value of `NAME` as a file declares it.
pub fn value(file: &str, name: &str) -> Option<u64> {
    let source = read(file);
    let text = declaration(&source, name)?;
    let mut tokens = tokens(text);
    tokens.reverse();
    let value = sum(&mut tokens, file)?;
    tokens.is_empty().then_some(value)
}

/// What stands between the `=` and the `;` of a constant.
fn declaration<'a>(source: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = source.split_once(&format!("const {name}: "))?;
    let (_, rest) = rest.split_once('=')?;
    Some(rest.split_once(';')?.0)
}

/// Words and operators; of a path the last part is left.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |character: char| {
            character == '_' || character == ':' || character.is_ascii_alphanumeric()
        };
        let length = if is_word(first) {
            rest.find(|character| !is_word(character))
                .unwrap_or(rest.len())
        } else if rest.starts_with("<<") {
            2
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(length);
        tokens.push(token.rsplit("::").next().unwrap_or(token));
        rest = after.trim_start();
    }
    tokens
}

// Tokens are taken from the end. Rust's order: products before sums before shifts.

fn sum(tokens: &mut Vec<&str>, file: &str) -> Option<u64> {
    let mut value = terms(tokens, file)?;
    while tokens.pop_if(|token| *token == "<<").is_some() {
        value = value.checked_shl(terms(tokens, file)?.try_into().ok()?)?;
    }
    Some(value)
}

fn terms(tokens: &mut Vec<&str>, file: &str) -> Option<u64> {
    let mut value = product(tokens, file)?;
    while let Some(sign) = tokens.pop_if(|token| matches!(*token, "+" | "-")) {
        let other = product(tokens, file)?;
        value = if sign == "+" {
            value.checked_add(other)?
        } else {
            value.checked_sub(other)?
        };
    }
    Some(value)
}

fn product(tokens: &mut Vec<&str>, file: &str) -> Option<u64> {
    let mut value = factor(tokens, file)?;
    while tokens.pop_if(|token| *token == "*").is_some() {
        value = value.checked_mul(factor(tokens, file)?)?;
    }
    Some(value)
}

fn factor(tokens: &mut Vec<&str>, file: &str) -> Option<u64> {
    let token = tokens.pop()?;
    if token == "(" {
        let value = sum(tokens, file)?;
        return (tokens.pop()? == ")").then_some(value);
    }
    let digits = token.replace('_', "");
    if let Some(digits) = digits.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    if digits.starts_with(|first: char| first.is_ascii_digit()) {
        return digits.parse().ok();
    }
    // Declared beside it, or in the contract.
    let contract = files(Path::new("ipc/src"), "rs");
    let contract = contract.iter().filter_map(|path| path.to_str());
    [file]
        .into_iter()
        .chain(contract)
        .find_map(|file| value(file, token))
}

#[test]
fn expressions_have_rusts_values() {
    let value = |text| {
        let mut tokens = tokens(text);
        tokens.reverse();
        sum(&mut tokens, "ipc/src/abi/layout.rs")
    };
    assert_eq!(value("4 << 20"), Some(4 << 20));
    assert_eq!(value("1 << (2 * 3 + 1)"), Some(128));
    assert_eq!(value("0x1_0000 - 2 * 3"), Some(0xfffa));
    assert_eq!(value("2 * super::layout::PAGE_SIZE"), Some(8192));
    assert_eq!(value("size_of::<u64>()"), None);
    assert_eq!(value("NOT_THERE"), None);
}

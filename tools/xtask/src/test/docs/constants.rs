//! The values of integer constants in the sources, without compiling them: those of the kernel and of servers are private.

use std::path::Path;

use super::Sources;

/// Where constants are looked up.
pub struct Constants<'a>(pub Sources<'a>);

impl Constants<'_> {
    /// The value of `NAME` as a file declares it; `None` if it is not there, or not made of numbers.
    pub fn value(&self, file: &str, name: &str) -> Option<u64> {
        let source = self.0.read(file).ok()?;
        let (_, rest) = source.split_once(&format!("const {name}: "))?;
        let (_, rest) = rest.split_once('=')?;
        let (text, _) = rest.split_once(';')?;
        self.evaluate(text, file)
    }

    fn evaluate(&self, text: &str, file: &str) -> Option<u64> {
        let mut tokens = tokens(text);
        tokens.reverse();
        let value = self.shifts(&mut tokens, file)?;
        tokens.is_empty().then_some(value)
    }

    // Tokens are taken from the end of what is left. As in Rust, products bind tighter than sums, and sums than shifts.

    fn shifts(&self, left: &mut Vec<&str>, file: &str) -> Option<u64> {
        let mut value = self.sum(left, file)?;
        while left.pop_if(|token| *token == "<<").is_some() {
            value = value.checked_shl(self.sum(left, file)?.try_into().ok()?)?;
        }
        Some(value)
    }

    fn sum(&self, left: &mut Vec<&str>, file: &str) -> Option<u64> {
        let mut value = self.product(left, file)?;
        while let Some(sign) = left.pop_if(|token| matches!(*token, "+" | "-")) {
            let other = self.product(left, file)?;
            value = match sign {
                "+" => value.checked_add(other)?,
                _ => value.checked_sub(other)?,
            };
        }
        Some(value)
    }

    fn product(&self, left: &mut Vec<&str>, file: &str) -> Option<u64> {
        let mut value = self.factor(left, file)?;
        while left.pop_if(|token| *token == "*").is_some() {
            value = value.checked_mul(self.factor(left, file)?)?;
        }
        Some(value)
    }

    fn factor(&self, left: &mut Vec<&str>, file: &str) -> Option<u64> {
        let token = left.pop()?;
        if token == "(" {
            let value = self.shifts(left, file)?;
            return (left.pop()? == ")").then_some(value);
        }
        let digits = token.replace('_', "");
        if let Some(digits) = digits.strip_prefix("0x") {
            return u64::from_str_radix(digits, 16).ok();
        }
        if digits.starts_with(|first: char| first.is_ascii_digit()) {
            return digits.parse().ok();
        }
        // Declared beside it, or in the contract.
        let contract = self.0.files(Path::new("ipc/src"), "rs").ok()?;
        let contract = contract.iter().filter_map(|path| path.to_str());
        let mut places = [file].into_iter().chain(contract);
        places.find_map(|file| self.value(file, token))
    }
}

/// Words and operators; of a path the last part is left.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c == '_' || c == ':' || c.is_ascii_alphanumeric();
        let length = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;

    #[test]
    fn expressions_have_rusts_values() {
        let root = Workspace::find().unwrap().root;
        let constants = Constants(Sources(&root));
        let value = |text| constants.evaluate(text, "ipc/src/abi/layout.rs");
        assert_eq!(value("4 << 20"), Some(4 << 20));
        assert_eq!(value("1 << (2 * 3 + 1)"), Some(128));
        assert_eq!(value("0x1_0000 - 2 * 3"), Some(0xfffa));
        assert_eq!(value("2 * super::layout::PAGE_SIZE"), Some(8192));
        assert_eq!(value("size_of::<u64>()"), None);
        assert_eq!(value("NOT_THERE"), None);
    }
}

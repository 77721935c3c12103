//! What the server `@name@` does for its callers: it keeps one sum for all of them.

use postcard::experimental::max_size::MaxSize;
use serde::{Deserialize, Serialize};

/// The largest sum.
pub const LARGEST_SUM: u64 = 1 << 40;

/// Why the server refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub enum @Name@Error {
    /// The sum would be more than [`LARGEST_SUM`]; it stays as it is.
    Full,
}

impl core::fmt::Display for @Name@Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Full => write!(f, "the sum would be more than {LARGEST_SUM}"),
        }
    }
}

impl core::error::Error for @Name@Error {}

crate::protocol! {
    error @Name@Error;
    /// Adds a number to the sum, and answers the sum.
    1 Add = add(u32) -> u64;
    /// Answers the sum.
    2 Sum = sum(()) -> u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<T: Serialize>(value: &T) -> Vec<u8> {
        let mut buffer = [0; 16];
        postcard::to_slice(value, &mut buffer).unwrap().to_vec()
    }

    #[test]
    fn wire_bytes_are_pinned() {
        assert_eq!(bytes(&300u32), [0xac, 2]);
        assert_eq!(bytes(&LARGEST_SUM), [0x80, 0x80, 0x80, 0x80, 0x80, 0x20]);
        assert_eq!(bytes(&@Name@Error::Full), [0]);
        assert_eq!(OPERATIONS, [(1, "add"), (2, "sum")]);
    }
}

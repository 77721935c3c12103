//! The kernel's errors in messages, by number: a server says why the kernel refused it, and the kernel itself builds no
//! serializer.

use postcard::experimental::max_size::MaxSize;
use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::abi::Error;

impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

impl<'de> Deserialize<'de> for Error {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u64::from(u8::deserialize(deserializer)?);
        Self::from_raw(number).ok_or_else(|| {
            D::Error::invalid_value(Unexpected::Unsigned(number), &"an error of the kernel")
        })
    }
}

impl MaxSize for Error {
    const POSTCARD_MAX_SIZE: usize = u8::POSTCARD_MAX_SIZE;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_a_byte_and_no_other_byte_is_one() {
        for number in 0..=u8::MAX {
            let known = Error::from_raw(number.into());
            assert_eq!(postcard::from_bytes(&[number]).ok(), known);
            if let Some(error) = known {
                let mut bytes = [0; 2];
                assert_eq!(postcard::to_slice(&error, &mut bytes).unwrap(), [number]);
            }
        }
    }
}

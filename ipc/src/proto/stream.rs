//! A stream of bytes: what the console serves to a session, and a session to the programs that it runs.
//!
//! Every operation may be parked: a write until there is room, so that nothing is lost and a fast writer is held to the
//! pace of the reader; a read until there is a byte; a flush until the server has passed everything on.

use postcard::experimental::max_size::MaxSize;
use serde::{Deserialize, Serialize};

use super::Bytes;

/// Most bytes in one message.
pub const CHUNK_MAX: usize = 1024;

/// Some bytes of a stream.
pub type Chunk = Bytes<CHUNK_MAX>;

/// Why a stream refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub enum StreamError {
    /// Too many calls wait already; nothing was taken, so try again later.
    Busy,
    /// This stream cannot be read by its caller.
    WriteOnly,
    /// The other end is gone for good.
    Closed,
}

impl core::fmt::Display for StreamError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Busy => "too many wait for this stream",
            Self::WriteOnly => "this stream cannot be read",
            Self::Closed => "the other end of the stream is gone",
        })
    }
}

impl core::error::Error for StreamError {}

crate::protocol! {
    error StreamError;
    /// Takes all the bytes, in order. Answered once they are accepted.
    1 Write = write(Chunk) -> ();
    /// Gives at least one byte and at most as many as asked for; none only if none was asked for.
    2 Read = read(u16) -> Chunk;
    /// Answered once the server holds nothing of what was written before: for who is about to power off.
    3 Flush = flush(()) -> ();
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
        let chunk = Chunk::try_from(&b"a\n"[..]).unwrap();
        assert_eq!(bytes(&chunk), b"\x02a\n");
        assert_eq!(bytes(&300u16), [0xac, 2]);
        let errors = [
            StreamError::Busy,
            StreamError::WriteOnly,
            StreamError::Closed,
        ];
        assert_eq!(errors.map(|error| bytes(&error)), [[0], [1], [2]]);
        assert_eq!(OPERATIONS, [(1, "write"), (2, "read"), (3, "flush")]);
    }
}

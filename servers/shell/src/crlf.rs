//! Line feeds as CR LF: what a terminal takes that nobody set up otherwise. The serial line has this from the console.

use alloc::vec::Vec;

use crate::terminal::{Closed, Sink};

/// A sink that writes CR LF for each line feed.
#[derive(Debug)]
pub struct CrLf<S>(pub S);

impl<S: Sink> Sink for CrLf<S> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        let mut out = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            if byte == b'\n' {
                out.push(b'\r');
            }
            out.push(byte);
        }
        self.0.write(&out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Wire(Vec<u8>);

    impl Sink for Wire {
        fn write(&mut self, bytes: &[u8]) -> Result<(), Closed> {
            self.0.extend(bytes);
            Ok(())
        }
    }

    #[test]
    fn a_line_feed_goes_to_the_start_of_the_next_row() {
        let mut crlf = CrLf(Wire(Vec::new()));
        for part in ["a\n\nb", "\r> ", "\n", ""] {
            assert_eq!(crlf.write(part.as_bytes()), Ok(()));
        }
        assert_eq!(crlf.0.0, b"a\r\n\r\nb\r> \r\n");
    }
}

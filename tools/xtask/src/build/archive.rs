//! Writes the boot archive that `ipc::bootfs` reads.

use ipc::bootfs::{ALIGNMENT, HEADER_SIZE, MAGIC, PAD, TRAILER, fields};

/// An archive in the making.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    fillers: usize,
}

impl Archive {
    /// Appends a file, after a filler that puts its data on a page boundary.
    pub fn add(&mut self, name: &str, data: &[u8]) {
        let filler = format!("{PAD}{}", self.fillers);
        let fixed = self.bytes.len() + header_len(&filler) + header_len(name);
        let zeros = fixed.next_multiple_of(ALIGNMENT) - fixed;
        self.fillers += 1;
        self.push(&filler, &vec![0; zeros]);
        self.push(name, data);
    }

    /// Ends the archive; returns its bytes.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.push(TRAILER, &[]);
        self.bytes
    }

    /// Appends one entry.
    fn push(&mut self, name: &str, data: &[u8]) {
        self.bytes.extend(MAGIC);
        for field in fields(name, data) {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(data);
        self.pad();
    }

    /// Names and data end on a multiple of four.
    fn pad(&mut self) {
        let len = self.bytes.len().next_multiple_of(4);
        self.bytes.resize(len, 0);
    }
}

/// Bytes of an entry before its data. Every entry begins on a multiple of four.
fn header_len(name: &str) -> usize {
    (HEADER_SIZE + name.len() + 1).next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ipc::bootfs::Bootfs;

    #[test]
    fn the_reader_finds_what_was_written() {
        let contents: Vec<Vec<u8>> = [0, 1, 3, 4095, 4096, 4097, 20_000]
            .iter()
            .map(|&len| (0..len).map(|i: usize| (i % 251) as u8).collect())
            .collect();
        let mut archive = Archive::default();
        for (index, content) in contents.iter().enumerate() {
            archive.add(&format!("bin/program-{}", "x".repeat(index)), content);
        }
        let bytes = archive.finish();
        let bootfs = Bootfs::parse(&bytes).unwrap();
        assert_eq!(bootfs.files().count(), contents.len());
        for (file, content) in bootfs.files().zip(&contents) {
            assert_eq!(file.data, content);
            assert_eq!(file.offset % ALIGNMENT, 0);
            assert_eq!(file.verify(), Ok(()));
        }
    }
}

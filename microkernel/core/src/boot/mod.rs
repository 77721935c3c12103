//! What the firmware and the boot loader say about the machine, and what the boot makes of it.
//!
//! Everything read here was written by others and may be damaged: every number is checked, every walk is bounded, and
//! a table that cannot be believed is an error of its own or is left out, never a crash. Physical memory is reached through
//! [`PhysRead`], so that tests hand in hostile bytes.

pub mod acpi;
pub mod calibrate;
pub mod command_line;
pub mod features;
pub mod memory;
pub mod pvh;
pub mod shortage;
pub mod tsc;

/// Reads physical memory while the machine is being found out.
pub trait PhysRead {
    /// Fills `into` from the physical address `at`; `false` if that cannot be read.
    fn read(&self, at: u64, into: &mut [u8]) -> bool;

    /// Reads a fixed number of bytes.
    fn bytes<const N: usize>(&self, at: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.read(at, &mut bytes).then_some(bytes)
    }
}

/// The little-endian 32-bit number at `at` of a record; 0 past its end, which no caller asks for.
fn half(record: &[u8], at: usize) -> u32 {
    let bytes = record.get(at..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |&bytes| u32::from_le_bytes(bytes))
}

/// The little-endian 64-bit number at `at` of a record; 0 past its end, which no caller asks for.
fn word(record: &[u8], at: usize) -> u64 {
    u64::from(half(record, at)) | u64::from(half(record, at + 4)) << 32
}

#[cfg(test)]
pub(crate) mod testing {
    //! Physical memory made of a few pieces.

    use super::PhysRead;

    /// Pieces of memory by address; what lies in none cannot be read.
    #[derive(Default)]
    pub struct Pieces(pub Vec<(u64, Vec<u8>)>);

    impl PhysRead for Pieces {
        fn read(&self, at: u64, into: &mut [u8]) -> bool {
            self.0.iter().any(|(start, bytes)| {
                let Some(offset) = at.checked_sub(*start).and_then(|o| usize::try_from(o).ok())
                else {
                    return false;
                };
                let end = offset.saturating_add(into.len());
                bytes
                    .get(offset..end)
                    .map(|found| into.copy_from_slice(found))
                    .is_some()
            })
        }
    }
}

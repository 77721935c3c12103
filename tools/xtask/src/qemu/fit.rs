//! Whether the image fits into the machine's memory at all: if it does not, QEMU refuses the archive or loads it over the
//! kernel, and no kernel can say so.

use std::fs;

use anyhow::{Context, Result, ensure};
use ipc::abi::layout::PAGE_SIZE;

use crate::build::{Image, elf};

use super::command::Machine;

const ACPI: u64 = Machine::ACPI_BYTES;
const MIB: u64 = 1 << 20;

/// Checks that a machine of so many MiB can be loaded with the image. How much the kernel needs to run, it says itself.
///
/// # Errors
/// It cannot; or the image cannot be read.
pub fn check(image: &Image, mib: u32) -> Result<()> {
    let kernel = fs::read(&image.kernel).with_context(|| image.kernel.display().to_string())?;
    let archive = match &image.bootfs {
        Some(path) => fs::metadata(path)
            .with_context(|| path.display().to_string())?
            .len(),
        None => 0,
    };
    let least = least(elf::physical_end(&kernel)?, archive);
    ensure!(
        u64::from(mib) >= least,
        "--mem {mib} cannot hold the image: at least {least} MiB, and more to run"
    );
    Ok(())
}

/// The least memory, in MiB, for a kernel that ends there and an archive of so many bytes.
const fn least(kernel_end: u64, archive: u64) -> u64 {
    (kernel_end + archive.next_multiple_of(PAGE_SIZE) + ACPI).div_ceil(MIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_archive_and_tables_fit() {
        assert_eq!(least(MIB, MIB - ACPI), 2);
        assert_eq!(least(MIB, MIB - ACPI - PAGE_SIZE + 1), 2);
        assert_eq!(least(MIB, MIB - ACPI + 1), 3);
    }
}

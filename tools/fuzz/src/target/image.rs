//! ELF files: as the kernel loads init, as init loads programs, and as profd reads names and unwind tables. All three take the
//! file from the archive, which may be damaged.

use ipc::abi::layout::PAGE_SIZE;

/// The bytes are the file.
pub fn run(file: &[u8]) {
    if let Ok(program) = kcore::elf::Program::parse(file) {
        let entry = program.entry();
        assert!(program.segments().count() > 0, "{entry:?} is in none");
    }
    if let Ok(image) = init::image::Image::read(file) {
        let mut end = 0;
        for segment in &image.segments {
            assert!(segment.address >= end, "segments overlap");
            end = segment.address + segment.pages * PAGE_SIZE;
            match segment.content {
                init::image::Content::InPlace { first } => {
                    let pages = (file.len() as u64).div_ceil(PAGE_SIZE);
                    assert!(
                        first + segment.pages <= pages,
                        "mapped past the end of the file"
                    );
                }
                init::image::Content::Copy(bytes) => {
                    assert!(bytes.len() as u64 <= segment.pages * PAGE_SIZE);
                }
            }
        }
    }
    if let Ok(image) = profd::image::Image::parse(file) {
        for (address, size) in image.symbols.iter().take(64) {
            for at in [
                address,
                address.wrapping_add(size / 2),
                address.wrapping_sub(1),
            ] {
                let _ = image.rule(at);
                if let Some((symbol, _)) = image.symbols.find(at) {
                    let _ = image.symbols.raw_name(symbol);
                }
            }
        }
    }
}

//! ELF files that init finds whole.

/// A segment.
#[derive(Clone, Copy)]
pub struct Load {
    pub address: u64,
    pub flags: u32,
    pub in_file: u64,
    pub in_memory: u64,
}

/// A file with these segments, each on a page of its own, and a build-id note.
pub fn file(entry: u64, loads: &[Load]) -> Vec<u8> {
    let mut out = vec![0; 0x1000];
    out[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(16, &[2, 0, 62, 0, 1, 0, 0, 0]);
    put(24, &entry.to_le_bytes());
    put(32, &64_u64.to_le_bytes());
    put(52, &[64, 0, 56, 0, loads.len() as u8 + 1, 0, 64, 0]);
    let mut offset = 0x1000;
    let mut header = |index: usize, kind: u32, flags: u32, words: [u64; 5]| {
        let at = 64 + index * 56;
        put(at, &kind.to_le_bytes());
        put(at + 4, &flags.to_le_bytes());
        let [offset, address, in_file, in_memory, align] = words;
        for (index, word) in [offset, address, address, in_file, in_memory, align]
            .iter()
            .enumerate()
        {
            put(at + 8 + index * 8, &word.to_le_bytes());
        }
    };
    for (index, load) in loads.iter().enumerate() {
        header(
            index,
            1,
            load.flags,
            [offset, load.address, load.in_file, load.in_memory, 0x1000],
        );
        offset += load.in_file.next_multiple_of(0x1000);
    }
    header(loads.len(), 4, 4, [0xf00, 0, 36, 36, 4]);
    put(0xf00, b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0\xb1\xb2");
    let end = usize::try_from(offset).unwrap();
    out.resize(end, 0xcc);
    out
}

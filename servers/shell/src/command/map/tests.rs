//! `map` against the fake system, with an archive that holds one program.

use ipc::abi::Rights;
use ipc::abi::exit::ExitReason;
use ipc::abi::inspect::{MappingInfo, MappingSource};
use ipc::abi::layout::USER_START;
use ipc::abi::startup::{IPC_BUFFER, STACK_BASE, STARTUP_PAGE};
use ipc::bootfs::Archive;
use ipc::proto::init::Ending;

use super::super::tests::Bench;

/// Page of the archive at which `bin/shares` begins: behind a filler.
const FILE_PAGE: u64 = 1;
/// Behind the ELF header and the text.
const DATA: u64 = 0x40_4000;

/// An ELF file with text at 0x400000 from its second page on, and three pages of data.
fn elf() -> Vec<u8> {
    let mut out = vec![0; 0x4000];
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"\x7fELF\x02\x01\x01");
    put(16, &[2, 0, 62, 0, 1, 0, 0, 0]);
    put(32, &64_u64.to_le_bytes());
    put(52, &[64, 0, 56, 0, 2, 0, 64, 0]);
    let segments = [
        (5_u64, 0x1000_u64, 0x40_0000_u64, 0x2000_u64, 0x2000_u64),
        (6, 0x3000, DATA, 0x10, 0x2001),
    ];
    for (index, (flags, offset, address, in_file, in_memory)) in segments.into_iter().enumerate() {
        let words = [
            1 | flags << 32,
            offset,
            address,
            address,
            in_file,
            in_memory,
            4096,
        ];
        for (word, value) in words.into_iter().enumerate() {
            put(64 + index * 56 + word * 8, &value.to_le_bytes());
        }
    }
    out
}

fn bench() -> Bench {
    let mut bench = Bench::default();
    let mut archive = Archive::default();
    archive.add("bin/shares", &elf());
    bench.system.archive = Some(archive.finish().leak());
    let kernel = &mut bench.system.kernel;
    kernel.process(1, "init");
    kernel.process(9, "shares").quota_pages = 256;
    let thread = kernel.thread(14);
    (thread.stack, thread.buffer) = (STACK_BASE + 0x2000, 0x1004);
    bench
}

/// Maps something; what is asked for is in the fake's second slot.
fn map(bench: &mut Bench, source: MappingSource, address: u64, pages: u64, first: u64) {
    let rights = match source {
        MappingSource::Archive => Rights::READ | Rights::EXECUTE,
        MappingSource::Rings => Rights::READ,
        _ => Rights::READ | Rights::WRITE,
    };
    let mappings = &mut bench.system.kernel.mappings;
    let n = mappings.len() as u64;
    let mapping = MappingInfo {
        pid: 9,
        address,
        pages,
        rights: rights.bits().into(),
        source: source as u64,
        first,
        object: 0x1000 + n,
        ..MappingInfo::default()
    };
    // A hole in between, as unmapping leaves it.
    mappings.insert((1, 2 * n), mapping);
}

#[test]
fn each_place_is_named_from_what_is_known() {
    use MappingSource::{Archive, Contiguous, Device, Memory, Rings};
    let mut bench = bench();
    map(&mut bench, Memory, DATA, 3, 0);
    map(&mut bench, Archive, 0x40_0000, 2, FILE_PAGE + 1);
    map(&mut bench, Memory, STACK_BASE, 2, 0);
    map(&mut bench, Memory, STARTUP_PAGE, 1, 0);
    map(&mut bench, Memory, IPC_BUFFER, 1, 0);
    map(&mut bench, Memory, DATA + 0x4000, 8, 0);
    map(&mut bench, Memory, 0x1_0000_0000, 4, 0);
    map(&mut bench, Archive, 0x2_0000_0000, 5, 0);
    map(&mut bench, Rings, 0x3_0000_0000, 1024, 0);
    map(&mut bench, Device, 0x4_0000_0000, 1, 0);
    map(&mut bench, Contiguous, 0x5_0000_0000, 1, 0);
    assert_eq!(
        bench.run("map 9"),
        "\
START          END                 KIB RIGHTS WHAT
0x200000       0x201000              4 rw-    startup page
0x201000       0x202000              4 rw-    ipc buffer of tid 14
0x203000       0x205000              8 rw-    stack of tid 14
0x400000       0x402000              8 r-x    bin/shares from 0x1000
0x404000       0x407000             12 rw-    data of bin/shares
0x408000       0x410000             32 rw-    heap
0x100000000    0x100004000          16 rw-    memory object 0x1006
0x200000000    0x200005000          20 r-x    boot archive
0x300000000    0x300400000        4096 r--    sample rings
0x400000000    0x400001000           4 rw-    device
0x500000000    0x500001000           4 rw-    contiguous 0x100a
0x7fffffffd000 0x7fffffffe000        4 r--    information page
"
    );
}

/// A slot of the kernel's pools that was used again has a long number.
#[test]
fn the_longest_number_fits_a_row() {
    use MappingSource::{Contiguous, Memory};
    for source in [Contiguous, Memory] {
        let mut bench = bench();
        map(&mut bench, source, 0x7fff_0000_0000, 4, 0);
        let mapping = bench.system.kernel.mappings.values_mut().next().unwrap();
        mapping.object = u64::MAX;
        let text = bench.run("map 9");
        assert!(text.contains(" 0xffffffffffffffff\n"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    }
}

/// Nothing is called what it only looks like.
#[test]
fn what_is_not_known_is_a_memory_object() {
    use MappingSource::{Archive, Memory};
    let mut bench = bench();
    // Two pages where a startup page has one; data without the text that goes with it; a stack that another process has.
    map(&mut bench, Memory, STARTUP_PAGE, 2, 0);
    map(&mut bench, Memory, DATA, 3, 0);
    map(&mut bench, Memory, DATA + 0x4000, 8, 0);
    map(&mut bench, Memory, STACK_BASE + 0x10_0000, 2, 0);
    // Text of the file, but not where the file wants it.
    map(&mut bench, Archive, USER_START, 2, FILE_PAGE + 1);
    let text = bench.run("map 9");
    assert_eq!(text.matches(" memory object 0x").count(), 4, "{text}");
    assert!(text.contains("r-x    bin/shares from 0x1000\n"), "{text}");
}

#[test]
fn without_an_archive_files_are_not_named() {
    let mut bench = bench();
    bench.system.archive = None;
    map(
        &mut bench,
        MappingSource::Archive,
        0x40_0000,
        2,
        FILE_PAGE + 1,
    );
    map(&mut bench, MappingSource::Memory, DATA, 3, 0);
    let text = bench.run("map 9");
    assert!(
        text.contains(" boot archive\n") && text.contains(" memory object 0x1001\n"),
        "{text}"
    );
}

#[test]
fn a_process_that_ends_while_it_is_read_has_no_rows() {
    for reads in 0..8 {
        let mut bench = bench();
        map(&mut bench, MappingSource::Memory, DATA, 3, 0);
        bench.system.end(9, "shares", Ending::Killed, 0);
        let mut after = bench.system.kernel.clone();
        after.mappings.clear();
        after.processes[1].as_mut().unwrap().reason = ExitReason::Killed as u64;
        bench.system.kernel.change = Some((reads, Box::new(after)));
        let text = bench.run("map 9");
        let ended = text == "map: pid 9 (shares) has ended\n";
        assert!(
            ended || text.contains("memory object"),
            "after {reads}: {text}"
        );
    }
}

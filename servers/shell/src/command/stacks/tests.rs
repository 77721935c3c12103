//! `stacks` against the fake system.

use ipc::abi::inspect::{MappingInfo, StackInfo};

use super::super::tests::Bench;
use crate::fake::FakeKernel;

const TOP: u64 = 0x21_3000;

/// One CPU, and a process whose only thread has used 5000 bytes of 16 KiB.
fn bench() -> Bench {
    let mut bench = Bench::default();
    bench.system.cpus = vec![Default::default()];
    let stack = |used, bytes| StackInfo { bytes, used };
    let stacks = [
        stack(4096, 16384),
        stack(40, 8192),
        stack(0, 8192),
        stack(0, 8192),
    ];
    let kernel = &mut bench.system.kernel;
    kernel.stacks = vec![stacks];
    kernel.process(1, "init");
    kernel.process(9, "chain");
    kernel.thread(14).stack = TOP;
    let mapping = |address, pages| MappingInfo {
        pid: 9,
        address,
        pages,
        ..MappingInfo::default()
    };
    kernel.mappings.insert((1, 0), mapping(TOP, 1));
    kernel.mappings.insert((1, 2), mapping(TOP - 0x4000, 4));
    kernel.zeroes.insert(TOP - 0x2000, 0x2000 - 5000);
    // Above the deepest word there may be zeroes again.
    kernel.zeroes.insert(TOP - 0x1000, 0);
    bench
}

#[test]
fn the_fullest_comes_first() {
    assert_eq!(
        bench().run("stacks"),
        "    \
    USED     SIZE   PART STACK
    5000    16384  30.5% pid 9 chain tid 14
    4096    16384  25.0% cpu 0 kernel
      40     8192   0.5% cpu 0 nmi
       0     8192   0.0% cpu 0 double fault
       0     8192   0.0% cpu 0 machine check
"
    );
}

#[test]
fn a_stack_that_is_full_or_never_used_is_shown_as_such() {
    let mut bench = bench();
    bench.system.kernel.zeroes = [(TOP - 0x4000, 0)].into();
    let text = bench.run("stacks");
    assert!(
        text.contains("   16384    16384 100.0% pid 9 chain tid 14\n"),
        "{text}"
    );
    bench.system.kernel.zeroes.clear();
    let text = bench.run("stacks");
    assert!(
        text.contains("       0    16384   0.0% pid 9 chain tid 14\n"),
        "{text}"
    );
}

#[test]
fn a_stack_pointer_in_the_middle_of_a_mapping_is_the_top() {
    let mut bench = bench();
    bench.system.kernel.threads[0].as_mut().unwrap().stack = TOP - 0x1008;
    let text = bench.run("stacks");
    let (used, size) = (5000 - 0x1008, 0x4000 - 0x1008);
    assert!(text.contains(&format!("{used:>8} {size:>8} ")), "{text}");
}

#[test]
fn a_thread_without_a_stack_is_not_given_one() {
    let mut bench = bench();
    bench.system.kernel.mappings.clear();
    let text = bench.run("stacks");
    assert!(
        text.ends_with("       -        -      - pid 9 chain tid 14\n"),
        "{text}"
    );
}

/// Whenever the process goes, its thread has a true row or none; and a process that has its slot afterwards lends it nothing.
#[test]
fn a_thread_that_ends_meanwhile_has_no_wrong_row() {
    let whole = bench().run("stacks");
    for reads in 0..8 {
        let mut bench = bench();
        let stacks = bench.system.kernel.stacks.clone();
        let mut after = FakeKernel {
            stacks,
            ..FakeKernel::default()
        };
        after.process(1, "init");
        after.process(10, "other");
        after.thread(15).stack = TOP;
        let mapping = MappingInfo {
            pid: 10,
            address: TOP - 0x4000,
            pages: 4,
            ..MappingInfo::default()
        };
        after.mappings.insert((1, 1), mapping);
        bench.system.kernel.change = Some((reads, Box::new(after)));
        let text = bench.run("stacks");
        let told = text.contains("tid 14");
        assert!(!told || text == whole, "after {reads}: {text}");
    }
}

//! `irq` against the fake system.

use ipc::abi::inspect::{InterruptInfo, LineInfo};
use proptest::prelude::*;

use super::super::tests::Bench;

fn bench(interrupts: Vec<InterruptInfo>) -> Bench {
    let mut bench = Bench::default();
    bench.system.cpus = vec![Default::default(); interrupts.len()];
    bench.system.kernel.interrupts = interrupts;
    bench
}

#[test]
fn kinds_are_rows_and_cpus_are_columns() {
    let first = InterruptInfo {
        timer: 100,
        kicks: 20,
        lines: 3,
        errors: 0,
        spurious: 1,
        nmis: 2,
        exceptions: 9,
    };
    let mut bench = bench(vec![first, InterruptInfo::default()]);
    bench.system.kernel.process(1, "init");
    bench.system.kernel.process(3, "console");
    let line = LineInfo {
        taken_by: 1,
        driver: 3,
        count: 3,
        by_message: 0,
    };
    bench.system.kernel.lines.insert(4, line);
    let free = LineInfo {
        count: 5,
        by_message: 1,
        ..LineInfo::default()
    };
    bench.system.kernel.lines.insert(30, free);
    let text = bench.run("irq");
    assert_eq!(
        text,
        "\
cpu                0          1
timer            100          0
kick              20          0
line               3          0
error              0          0
spurious           1          0
nmi                2          0
total            126          0
exception          9          0
line           count by       taken by               driver
4                  3 pin      1     init             3     console
30                 5 message  -                      -
"
    );
}

#[test]
fn sixty_four_cpus_wrap_into_blocks_that_fit() {
    let most = InterruptInfo {
        timer: 9_999_999_999,
        ..InterruptInfo::default()
    };
    let text = bench(vec![most; 64]).run("irq");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    let columns: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("cpu"))
        .flat_map(str::split_whitespace)
        .collect();
    let expected: Vec<String> = (0..64).map(|cpu| cpu.to_string()).collect();
    assert_eq!(columns, expected);
}

#[test]
fn the_widest_line_fits() {
    let mut bench = bench(Vec::new());
    let pid = u64::from(u32::MAX);
    bench.system.kernel.process(pid, "sixteencharacter");
    let line = LineInfo {
        taken_by: pid,
        driver: pid,
        count: u64::MAX,
        by_message: 1,
    };
    bench.system.kernel.lines.insert(191, line);
    let text = bench.run("irq");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    assert_eq!(text.matches("sixteencharacter").count(), 2, "{text}");
}

proptest! {
    /// The total is the sum of what is shown above it.
    #[test]
    fn totals_add_up(counts in prop::collection::vec(prop::array::uniform7(0..1_000_000u64), 1..9)) {
        let cpus = counts.iter().map(|&[timer, kicks, lines, errors, spurious, nmis, exceptions]| {
            InterruptInfo { timer, kicks, lines, errors, spurious, nmis, exceptions }
        });
        let text = bench(cpus.collect()).run("irq");
        let row = |name: &str| -> Vec<u64> {
            let rows = text.lines().filter(|line| line.starts_with(&format!("{name} ")));
            rows.flat_map(|line| line.split_whitespace().skip(1))
                .filter_map(|word| word.parse().ok())
                .collect()
        };
        let kinds = ["timer", "kick", "line", "error", "spurious", "nmi"].map(row);
        let sums: Vec<u64> = (0..counts.len())
            .map(|cpu| kinds.iter().map(|kind| kind[cpu]).sum())
            .collect();
        prop_assert_eq!(row("total"), sums);
    }
}

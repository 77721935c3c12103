//! `mem`, `uptime`, `lscpu`, `version` and `poweroff`.

use ipc::abi::info::{CpuInfo, MemoryInfo};

use super::Bench;

#[test]
fn mem_shows_all_there_is() {
    let mut bench = Bench::default();
    bench.system.memory = MemoryInfo {
        total: 65_536,
        free: 60_000,
        waiting: 1,
        kernel: 2000,
        bootfs: 535,
        processes: 3000,
        pools: [
            [5, 256],
            [9, 1024],
            [4, 512],
            [3, 512],
            [20, 2048],
            [6, 1024],
            [2, 512],
        ],
    };
    assert_eq!(
        bench.run("mem"),
        "\
total              262144 KiB
free               240000 KiB
waiting                 4 KiB
kernel               8000 KiB
bootfs               2140 KiB
processes           12000 KiB
processes               5 of 256
threads                 9 of 1024
endpoints               4 of 512
notifications           3 of 512
memory objects         20 of 2048
handle chunks           6 of 1024
badges                  2 of 512
"
    );
}

#[test]
fn uptime_says_what_each_cpu_did() {
    let mut bench = Bench::default();
    bench.system.now = 83_456_000_000;
    bench.system.cpus = vec![CpuInfo {
        idle_ns: 750,
        busy_ns: 250,
        ticks: 8345,
        syscalls: 1234,
        switches: 99,
        longest_entry: 70_000,
        ..CpuInfo::default()
    }];
    assert_eq!(
        bench.run("uptime"),
        "up 1m 23.456s, 1 cpu\n\
         cpu 0: 25.0% busy, 8345 ticks, 1234 calls, 99 switches, longest 35.0us\n"
    );
}

#[test]
fn uptime_of_a_busy_year_fits_a_row() {
    let mut bench = Bench::default();
    let second = 1_000_000_000;
    bench.system.now = 365 * 86_400 * second;
    bench.system.cpus = vec![CpuInfo {
        busy_ns: bench.system.now,
        ticks: 3_153_600_000,
        syscalls: 31_536_000_000_000,
        switches: 31_536_000_000,
        longest_entry: 2_000_000,
        ..CpuInfo::default()
    }];
    let text = bench.run("uptime");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    assert!(text.ends_with("longest 1000.0us\n"), "{text}");
}

#[test]
fn version_and_poweroff() {
    let mut bench = Bench::default();
    bench.system.version = "Sonde 0.1.0\n".into();
    assert_eq!(bench.run("version"), "Sonde 0.1.0\n");
    assert_eq!(
        bench.run("poweroff now"),
        "poweroff: `now` is too much; usage: poweroff\n"
    );
    assert!(!bench.system.powered_off);
    assert!(bench.run("poweroff").starts_with("poweroff: "));
    assert!(bench.system.powered_off);
}

#[test]
fn lscpu_shows_what_profd_says_or_that_it_does_not() {
    let mut bench = Bench::default();
    assert_eq!(bench.run("lscpu"), "lscpu: timed out\n");
    bench.system.processors = Some(["source tick only\n", "all\n"]);
    assert_eq!(bench.run("lscpu"), "source tick only\n");
    assert_eq!(bench.run("time lscpu -v").lines().next(), Some("all"));
}

//! The law of `top`, for any schedule and any order in which it was read.

use ipc::abi::info::CpuInfo;
use ipc::abi::inspect::{ProcessInfo, ThreadInfo};
use proptest::prelude::*;

use super::{Snapshot, Usage};

const CPUS: usize = 3;
/// Threads of a CPU.
const THREADS: usize = 4;
const MS: u64 = 1_000_000;
/// A whole CPU, as shares have it.
const MILLION: i64 = 1_000_000;

/// Who has each CPU, span by span: a length, and one of its threads or none. And when each thread ends.
#[derive(Clone, Debug)]
struct Schedule {
    spans: Vec<Vec<(u64, Option<usize>)>>,
    ends: Vec<u64>,
}

impl Schedule {
    /// How long a thread of a CPU ran until a time.
    fn ran(&self, cpu: usize, thread: usize, until: u64) -> u64 {
        let until = until.min(self.ends[cpu * THREADS + thread]);
        let (mut at, mut ran) = (0, 0);
        for &(length, who) in &self.spans[cpu] {
            if who == Some(thread) {
                ran += until.clamp(at, at + length) - at;
            }
            at += length;
        }
        ran
    }
    fn busy(&self, cpu: usize, until: u64) -> u64 {
        (0..THREADS)
            .map(|thread| self.ran(cpu, thread, until))
            .sum()
    }

    /// A snapshot that is begun at `at`; `skew` is when each record is read.
    fn snapshot(&self, at: u64, skew: &[u64]) -> Snapshot {
        let mut skews = skew.iter().cycle().map(|skew| at + skew);
        let mut read = || skews.next().unwrap();
        let cpus = (0..CPUS).map(|cpu| {
            let at_ns = read();
            let busy_ns = self.busy(cpu, at_ns);
            CpuInfo {
                busy_ns,
                idle_ns: at_ns - busy_ns,
                at_ns,
                ..CpuInfo::default()
            }
        });
        let cpus = cpus.collect();
        let (mut threads, mut ended_ns) = (Vec::new(), 0);
        for (index, &end) in self.ends.iter().enumerate() {
            let (cpu, thread) = (index / THREADS, index % THREADS);
            // None of them ends while it is read.
            if end <= at {
                ended_ns += self.ran(cpu, thread, end);
                continue;
            }
            let at_ns = read();
            let cpu_ns = self.ran(cpu, thread, at_ns);
            // It is made when it first runs.
            if cpu_ns > 0 {
                threads.push(ThreadInfo {
                    tid: index as u64,
                    pid: 1,
                    cpu_ns,
                    at_ns,
                    ..ThreadInfo::default()
                });
            }
        }
        let process = ProcessInfo {
            pid: 1,
            ended_ns,
            ..ProcessInfo::default()
        };
        Snapshot {
            begun: at,
            ended: at + skew.iter().max().unwrap(),
            cpus,
            threads,
            processes: vec![process],
        }
    }
}

/// When the snapshots are begun.
const BEGUN: [u64; 2] = [100 * MS, 200 * MS];
/// Longest reading.
const READING: u64 = 10 * MS;

fn schedules() -> impl Strategy<Value = Schedule> {
    let span = (0..40 * MS, prop::option::of(0..THREADS));
    let spans = prop::collection::vec(prop::collection::vec(span, 0..30), CPUS);
    let end = prop_oneof![
        0..BEGUN[0],
        BEGUN[0] + READING..BEGUN[1],
        BEGUN[1] + READING..500 * MS,
    ];
    let ends = prop::collection::vec(end, CPUS * THREADS);
    (spans, ends).prop_map(|(spans, ends)| Schedule { spans, ends })
}

proptest! {
    /// Threads, ended and idle are all the time of each CPU; what is off is within the time of the readings.
    #[test]
    fn all_time_is_accounted_for(
        schedule in schedules(),
        skew in prop::collection::vec(0..READING, 1..20),
    ) {
        let usage = Usage::between(
            &schedule.snapshot(BEGUN[0], &skew),
            &schedule.snapshot(BEGUN[1], &skew),
        );
        let rounding = (CPUS * (THREADS + 3)) as i64;
        for cpu in &usage.cpus {
            prop_assert!((cpu.busy.0 + cpu.idle.0 - MILLION).abs() <= 2);
        }
        let bound = 2 * CPUS as u64 * usage.reading * MILLION as u64 / usage.window;
        prop_assert!(usage.off().0.unsigned_abs() <= bound + rounding as u64, "{usage:?}");
        let sum = usage.listed().0 + usage.ended.0 + usage.idle().0 + usage.off().0;
        prop_assert!((sum - CPUS as i64 * MILLION).abs() <= rounding, "{usage:?}");
        prop_assert!(usage.threads.is_sorted_by(|one, next| one.share >= next.share));
    }

    /// Read in no time, nothing is off.
    #[test]
    fn what_is_read_at_once_adds_up(schedule in schedules()) {
        let [first, last] = BEGUN.map(|at| schedule.snapshot(at, &[0]));
        let usage = Usage::between(&first, &last);
        prop_assert!(usage.off().0.abs() <= (CPUS * (THREADS + 2)) as i64, "{usage:?}");
    }
}

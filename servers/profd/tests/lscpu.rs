//! `lscpu`, on what CPUID answers on machines of several kinds. The files in `lscpu/` are what `lscpu -v` printed there, leaves and all: read
//! back, they must give the same text.

use std::ops::RangeInclusive;

use ipc::abi::monitor::{Interface, MonitorInfo, Verdict};
use ipc::abi::profile::Source;
use profd::lscpu::leaves::{Leaf, Leaves};
use profd::lscpu::{Cpu, Processors};
use proptest::prelude::*;
use raw_cpuid::{CpuIdReader, CpuIdResult};

/// Intel, two cores of two threads.
const SKYLAKE: &str = include_str!("lscpu/skylake.txt");
/// AMD that claims counters, two packages of a core of two threads.
const MILAN: &str = include_str!("lscpu/milan.txt");
/// All that the emulator has.
const MAX: &str = include_str!("lscpu/max.txt");
/// Two packages.
const NEHALEM: &str = include_str!("lscpu/nehalem.txt");
/// Without leaves of the topology: a package of two cores.
const CORE2DUO: &str = include_str!("lscpu/core2duo.txt");
/// Likewise, of AMD: two packages of two cores.
const PHENOM: &str = include_str!("lscpu/phenom.txt");

/// The processors that a text was printed of.
struct Machine {
    cpus: Vec<Leaves>,
    monitor: MonitorInfo,
    exposed: bool,
}

impl Machine {
    fn read(text: &str) -> Self {
        let count = text.split_whitespace().nth(1).map(number);
        let count = count.expect("a number of CPUs") as usize;
        let mut cpus = vec![Vec::new(); count];
        for line in text.lines() {
            let Some(row) = line.strip_prefix("cpuid ") else {
                continue;
            };
            let row = row.trim_start();
            let (of, leaf) =
                row.strip_prefix("cpu ")
                    .map_or((None, row), |row| match row.split_once(": ") {
                        Some((of, leaf)) => (Some(of), leaf),
                        None => panic!("{line}"),
                    });
            let words: Vec<u32> = leaf.split(' ').map(number).collect();
            let [leaf, part, words @ ..] = words.as_slice() else {
                panic!("{line}");
            };
            let leaf = Leaf {
                leaf: *leaf,
                part: *part,
                words: words.try_into().expect("four words"),
            };
            for cpu in of.map_or(0..=count - 1, range) {
                cpus[cpu].push(leaf);
            }
        }
        Self {
            cpus: cpus.into_iter().map(Leaves::from_iter).collect(),
            monitor: MonitorInfo::default(),
            exposed: text.contains("\nmeltdown "),
        }
    }

    fn text(&self, verbose: bool) -> String {
        processors(&self.cpus, |_| self.monitor, Source::TimerNmi, self.exposed).text(verbose)
    }
}

fn number(word: &str) -> u32 {
    let hex = word.strip_prefix("0x");
    let number = hex.map_or_else(|| word.parse(), |hex| u32::from_str_radix(hex, 16));
    number.expect("a number")
}

fn range(of: &str) -> RangeInclusive<usize> {
    let (first, last) = of.split_once('-').unwrap_or((of, of));
    let number = |word: &str| word.parse().expect("a CPU");
    number(first)..=number(last)
}

fn processors(
    leaves: &[Leaves],
    monitor: impl Fn(usize) -> MonitorInfo,
    best: Source,
    exposed: bool,
) -> Processors<'_> {
    let cpu = |(index, leaves)| Cpu {
        leaves,
        monitor: monitor(index),
    };
    Processors {
        cpus: leaves.iter().enumerate().map(cpu).collect(),
        best: Some(best),
        exposed,
    }
}

/// Intel's counters, as they are on a processor of today.
fn intel(verdict: Verdict) -> MonitorInfo {
    let mut info = MonitorInfo {
        interface: Interface::Intel as u64,
        version: 5,
        counters: 8,
        counter_bits: 48,
        fixed_counters: 0b1_0000_1111,
        fixed_bits: 48,
        verdict: verdict as u64,
        hz: 2_399_960_000,
        register_count: 2,
        ..MonitorInfo::default()
    };
    info.registers[0] = [0x30a, 0xffff_8000_0000];
    info.registers[1] = [0x38d, 0xb0];
    info
}

#[test]
fn each_machine_is_described_as_it_was() {
    for (text, cpus) in [
        (SKYLAKE, "4 threads, 2 cores, 1 package"),
        (MILAN, "4 threads, 2 cores, 2 packages"),
        (MAX, "4 threads, 4 cores, 1 package"),
        (NEHALEM, "2 threads, 2 cores, 2 packages"),
        (CORE2DUO, "2 threads, 2 cores, 1 package"),
        (PHENOM, "4 threads, 4 cores, 2 packages"),
    ] {
        let mut machine = Machine::read(text);
        if text == MILAN {
            machine.monitor = MonitorInfo {
                interface: Interface::AmdCore as u64,
                version: 1,
                counters: 6,
                counter_bits: 48,
                verdict: Verdict::StandsStill as u64,
                register_count: 2,
                ..MonitorInfo::default()
            };
            machine.monitor.registers[0][0] = 0xc001_0200;
            machine.monitor.registers[1][0] = 0xc001_0201;
        }
        assert_eq!(machine.text(true), text);
        assert!(text.starts_with(&format!("cpus        {cpus}\n")), "{text}");
        assert!(text.starts_with(&machine.text(false)), "{text}");
    }
}

#[test]
fn the_page_shows_what_is_printed() {
    let page = include_str!("../../../docs/profiling.md");
    let (shown, _) = MILAN.split_once("register ").unwrap();
    assert!(
        page.contains(&format!("```\n> lscpu\n{shown}```\n")),
        "{shown}"
    );
}

#[test]
fn counters_that_work_are_told_with_their_source() {
    let machine = Machine::read(NEHALEM);
    let text = processors(
        &machine.cpus,
        |_| intel(Verdict::Works),
        Source::PmuIntel,
        false,
    )
    .text(true);
    for row in [
        "monitor     version 5, 8 counters of 48 bits, fixed counters 0-3,8 of 48 bits",
        "counters    claims Intel fixed counters; they count and interrupt",
        "source      pmu/nmi intel fixed-ctr1",
        "rate        2399 MHz, as measured by the proof",
        "register    0x30a IA32_FIXED_CTR1 0x0000ffff80000000",
        "register    0x38d IA32_FIXED_CTR_CTRL 0x00000000000000b0",
    ] {
        assert!(text.lines().any(|line| line == row), "no {row} in:\n{text}");
    }
    assert!(!text.contains("meltdown"), "{text}");
    let tick = processors(
        &machine.cpus,
        |_| intel(Verdict::Silent),
        Source::Tick,
        false,
    );
    assert!(tick.text(false).ends_with("\nsource      tick only\n"));
}

/// A machine whose CPUs are of two kinds.
#[test]
fn where_cpus_differ_each_row_says_whose_it_is() {
    let mut leaves = Machine::read(SKYLAKE).cpus;
    leaves.truncate(3);
    leaves.insert(1, Machine::read(NEHALEM).cpus[1].clone());
    let monitor = |cpu| match cpu {
        1 => MonitorInfo::default(),
        _ => intel(Verdict::Works),
    };
    let text = processors(&leaves, monitor, Source::PmuIntel, true).text(false);
    let rows = "\
model       cpu 0,2-3: family 6, model 85, stepping 4
model       cpu 1: family 6, model 26, stepping 3
brand       cpu 0,2-3: Intel Xeon Processor (Skylake)
brand       cpu 1: Intel Core i7 9xx (Nehalem Class Core i7)
caches      L1d 32 KiB, L1i 32 KiB, L2 4 MiB, L3 16 MiB
hypervisor  TCGTCGTCGTCG
features    cpu 0,2-3: NX, SMEP, SMAP, 1 GiB pages, FSGSBASE
features    cpu 1: NX
meltdown    programs can read kernel memory: Intel, and RDCL_NO is not set
monitor     cpu 0,2-3: version 5, 8 counters of 48 bits, fixed counters 0-3,8 of
  48 bits
counters    cpu 0,2-3: claims Intel fixed counters; they count and interrupt
counters    cpu 1: claims no counters that the profiler can use
source      pmu/nmi intel fixed-ctr1 on 3 cpus, timer/nmi on 1
";
    assert!(text.ends_with(rows), "{text}");
}

/// Registers have the longest names of those that are read, and stand on a line of their own all the same.
#[test]
fn registers_that_differ_are_named_on_one_line_each() {
    let leaves = vec![Machine::read(NEHALEM).cpus[0].clone(); 4];
    let monitor = |cpu| {
        let mut info = intel(Verdict::Works);
        info.registers[1] = [0x38e, if cpu < 2 { 0 } else { 1 << 33 }];
        info
    };
    let text = processors(&leaves, monitor, Source::PmuIntel, false).text(true);
    let rows = "
register    0x30a IA32_FIXED_CTR1 0x0000ffff80000000
register    cpu 0-1: 0x38e IA32_PERF_GLOBAL_STATUS 0x0000000000000000
register    cpu 2-3: 0x38e IA32_PERF_GLOBAL_STATUS 0x0000000200000000
";
    assert!(text.contains(rows), "{text}");
}

/// A processor that answers a leaf that it has not with its highest basic one, as Intel's do.
#[derive(Clone)]
struct OutOfRange<'a>(&'a Leaves);

impl CpuIdReader for OutOfRange<'_> {
    fn cpuid2(&self, leaf: u32, part: u32) -> CpuIdResult {
        let highest = |group: u32| self.0.cpuid1(group).eax;
        let is_there = match leaf >> 28 {
            0 => leaf <= highest(0),
            4 => leaf <= highest(0x4000_0000),
            8 => leaf <= highest(0x8000_0000),
            _ => false,
        };
        self.0
            .cpuid2(if is_there { leaf } else { highest(0) }, part)
    }
}

#[test]
fn no_leaf_is_read_that_is_not_there() {
    for text in [SKYLAKE, MILAN, MAX, NEHALEM, CORE2DUO, PHENOM] {
        for leaves in Machine::read(text).cpus {
            assert_eq!(Leaves::read(&OutOfRange(&leaves)), leaves);
        }
    }
}

/// As an emulator answers for a processor of Intel's without leaf 0xb, with two threads in each of two cores.
#[test]
fn leaf_4_tells_threads_from_cores_where_amds_field_is_filled_as_well() {
    let leaf = |leaf, words| Leaf {
        leaf,
        part: 0,
        words,
    };
    let of = |id: u32| -> Leaves {
        let all = [
            leaf(1, [0x50654, id << 24 | 0x40800, 0xf6d8_3203, 0x178b_fbfd]),
            leaf(4, [0x0400_0121, 0x01c0_003f, 0x3f, 1]),
            leaf(0x8000_0008, [0x3028, 0, 0x2003, 0]),
        ];
        all.into_iter().collect()
    };
    let all: Vec<Leaves> = (0..4).map(of).collect();
    let text = processors(&all, |_| MonitorInfo::default(), Source::Tick, false).text(false);
    let cpus = text.lines().next();
    assert_eq!(cpus, Some("cpus        4 threads, 2 cores, 1 package"));
}

/// Leaves that rows are made of, with anything in them.
fn wild() -> impl Strategy<Value = Leaves> {
    let numbers = [
        0,
        1,
        4,
        7,
        0xb,
        0x1f,
        0x4000_0000,
        0x8000_0000,
        0x8000_0001,
        0x8000_0002,
        0x8000_0003,
        0x8000_0004,
        0x8000_0005,
        0x8000_0006,
        0x8000_0007,
        0x8000_0008,
        0x8000_001d,
        0x8000_001e,
    ];
    let leaf = (
        prop::sample::select(numbers.to_vec()),
        0..4u32,
        any::<[u32; 4]>(),
    );
    let vendor = prop::sample::select(vec![SKYLAKE, MILAN]);
    (vendor, prop::collection::vec(leaf, 0..40)).prop_map(|(vendor, leaves)| {
        let of = &Machine::read(vendor).cpus[0];
        let names = of
            .iter()
            .filter(|leaf| leaf.leaf & 0x7fff_ffff == 0)
            .copied();
        let leaves = leaves
            .into_iter()
            .map(|(leaf, part, words)| Leaf { leaf, part, words });
        names
            .filter(|_| leaves.len() % 2 == 0)
            .chain(leaves.clone())
            .collect()
    })
}

proptest! {
    #[test]
    fn whatever_cpus_answer_the_text_is_for_a_terminal(leaves in prop::collection::vec(wild(), 0..5), verbose: bool, words: [u64; 9]) {
        let [interface, version, counters, counter_bits, fixed_counters, fixed_bits, verdict, hz, register_count] = words;
        let monitor = MonitorInfo {
            interface: interface % 5, version, counters, counter_bits, fixed_counters, fixed_bits,
            verdict: verdict % 8, hz, register_count, ..MonitorInfo::default()
        };
        let text = processors(&leaves, |_| monitor, Source::PmuAmd, true).text(verbose);
        for line in text.lines() {
            prop_assert!(line.len() <= 80 && line.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{line:?}");
        }
    }

    #[test]
    fn reading_a_wild_processor_ends(leaves in wild()) {
        let read = Leaves::read(&&leaves);
        prop_assert!(read.iter().count() < 512);
    }
}

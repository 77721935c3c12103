//! What is said of one CPU.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use ipc::abi::monitor::MonitorInfo;
use ipc::abi::monitor::register::Named;
use raw_cpuid::{CpuId, CpuIdReader};

use super::leaves::Leaves;
use super::{Cpu, caches, ranges};
use crate::text::counted;

/// The row of a machine that the kernel found to be vulnerable, with the rule by which it did (`kcore::boot::features`).
pub const MELTDOWN: &str = "programs can read kernel memory: Intel, and RDCL_NO is not set";

/// What a row is about: its name and key.
pub type Fact<'a> = (&'static str, &'a str);

/// What is said of a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The first column.
    pub name: &'static str,
    /// Tells rows of the same name apart; may be empty.
    pub key: String,
    /// What is said.
    pub value: String,
}

impl Row {
    /// What it is about.
    pub fn fact(&self) -> Fact<'_> {
        (self.name, &self.key)
    }
}

fn row(name: &'static str, value: String) -> Option<Row> {
    (!value.is_empty()).then_some(Row {
        name,
        key: String::new(),
        value,
    })
}

/// What it is, and what it has of what the kernel uses.
pub fn identity(cpu: &Cpu<'_>) -> Vec<Row> {
    let id = CpuId::with_cpuid_reader(cpu.leaves);
    let brand = id.get_processor_brand_string();
    let rows = [
        row("vendor", vendor(cpu.leaves, 0, [1, 3, 2])),
        row("model", model(&id).unwrap_or_default()),
        row(
            "brand",
            brand.map_or(String::new(), |brand| printable(brand.as_str())),
        ),
        row("caches", caches::of(&id).unwrap_or_default()),
        row("hypervisor", vendor(cpu.leaves, 0x4000_0000, [1, 2, 3])),
        row("features", features(&id)),
    ];
    rows.into_iter().flatten().collect()
}

/// Twelve characters of a leaf, in the registers with these indices.
fn vendor(leaves: &Leaves, leaf: u32, order: [usize; 3]) -> String {
    let found = leaves.cpuid1(leaf);
    let words = [found.eax, found.ebx, found.ecx, found.edx];
    let bytes: Vec<u8> = order
        .iter()
        .flat_map(|&index| words[index].to_le_bytes())
        .collect();
    printable(&String::from_utf8_lossy(&bytes))
}

/// Text from a processor, without what could upset a terminal.
fn printable(text: &str) -> String {
    let text = text.trim_matches(|character: char| character == '\0' || character == ' ');
    let shown = |character: char| match character {
        ' '..='~' => character,
        _ => '?',
    };
    text.chars().map(shown).collect()
}

/// Family and model as manuals count them (Intel SDM volume 2, CPUID, leaf 1): the extended family counts if the family is 15, and the
/// extended model then, too, or with Intel's family 6. raw-cpuid adds the families in 8 bits.
fn model(id: &CpuId<&Leaves>) -> Option<String> {
    let info = id.get_feature_info()?;
    let family = match info.base_family_id() {
        0xf => 0xf + u32::from(info.extended_family_id()),
        base => base.into(),
    };
    let (model, stepping) = (info.model_id(), info.stepping_id());
    Some(format!(
        "family {family}, model {model}, stepping {stepping}"
    ))
}

/// What the kernel depends on, of what is there.
fn features(id: &CpuId<&Leaves>) -> String {
    let basic = id.get_feature_info();
    let basic = |has: fn(&raw_cpuid::FeatureInfo) -> bool| basic.as_ref().is_some_and(has);
    let more = id.get_extended_feature_info();
    let more = |has: fn(&raw_cpuid::ExtendedFeatures) -> bool| more.as_ref().is_some_and(has);
    let extended = id.get_extended_processor_and_feature_identifiers();
    let extended = extended.as_ref();
    let power = id.get_advanced_power_mgmt_info();
    let all = [
        ("NX", extended.is_some_and(|f| f.has_execute_disable())),
        ("SMEP", more(|f| f.has_smep())),
        ("SMAP", more(|f| f.has_smap())),
        ("UMIP", more(|f| f.has_umip())),
        (
            "invariant TSC",
            power.is_some_and(|power| power.has_invariant_tsc()),
        ),
        ("TSC deadline", basic(|f| f.has_tsc_deadline())),
        ("x2APIC", basic(|f| f.has_x2apic())),
        ("1 GiB pages", extended.is_some_and(|f| f.has_1gib_pages())),
        ("FSGSBASE", more(|f| f.has_fsgsbase())),
    ];
    let there = all.into_iter().filter(|(_, there)| *there);
    let names: Vec<&str> = there.map(|(name, _)| name).collect();
    names.join(", ")
}

/// The performance monitor as CPUID claims it, and what the proof at boot came to.
pub fn monitor(cpu: &Cpu<'_>) -> Vec<Row> {
    let rows = [
        row("monitor", claims(&cpu.monitor)),
        row("counters", cpu.monitor.to_string()),
    ];
    rows.into_iter().flatten().collect()
}

/// Version, counters and their widths.
fn claims(monitor: &MonitorInfo) -> String {
    let MonitorInfo {
        version,
        counters,
        counter_bits,
        fixed_counters,
        fixed_bits,
        ..
    } = *monitor;
    let mut parts = Vec::new();
    if version > 0 {
        parts.push(format!("version {version}"));
    }
    if counters > 0 {
        let counters = counted(counters, "counter");
        parts.push(format!("{counters} of {counter_bits} bits"));
    }
    let fixed: Vec<usize> = (0..64)
        .filter(|bit| fixed_counters >> bit & 1 == 1)
        .collect();
    if !fixed.is_empty() {
        let fixed = ranges(&fixed);
        parts.push(format!("fixed counters {fixed} of {fixed_bits} bits"));
    }
    parts.join(", ")
}

/// The driver's registers and counters as they were in the proof, and the rate that it measured.
pub fn registers(cpu: &Cpu<'_>) -> Vec<Row> {
    let MonitorInfo {
        hz,
        register_count,
        registers,
        ..
    } = cpu.monitor;
    let rate = match hz / 1_000_000 {
        0 => String::new(),
        mhz => format!("{mhz} MHz, as measured by the proof"),
    };
    let registers = registers.into_iter().take(register_count as usize);
    let registers = registers.map(|[number, value]| Row {
        name: "register",
        key: Named(number).to_string(),
        value: format!("{value:#018x}"),
    });
    row("rate", rate).into_iter().chain(registers).collect()
}

/// Every answer of CPUID: leaf, part, EAX, EBX, ECX, EDX.
pub fn leaves(cpu: &Cpu<'_>) -> Vec<Row> {
    let leaves = cpu.leaves.iter().map(|leaf| {
        let [eax, ebx, ecx, edx] = leaf.words;
        Row {
            name: "cpuid",
            key: format!("{:#010x} {}", leaf.leaf, leaf.part),
            value: format!("{eax:#010x} {ebx:#010x} {ecx:#010x} {edx:#010x}"),
        }
    });
    leaves.collect()
}

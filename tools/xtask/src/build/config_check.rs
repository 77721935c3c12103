//! The rules that `system.toml` must keep beyond its syntax.

use std::ops::RangeInclusive;

use ipc::abi::layout::{INTERRUPTS, NAME_MAX, PAGE_SIZE, PHYSICAL_END};
use ipc::abi::startup::STACK_MAX;
use ipc::proto::system::{DEFAULT, DMA_KIB_MAX, INIT, PRIORITY_MAX, Start, VECTORS_MAX};
use toml::Spanned;

use super::config::{Entry, Pci};

/// Least memory that a program may be given, in KiB: less does not hold a stack and page tables.
pub const MEMORY_KIB_MIN: u32 = 64;
/// Most memory, in KiB.
pub const MEMORY_KIB_MAX: u32 = 1 << 20;
/// Smallest stack, in KiB.
pub const STACK_KIB_MIN: u32 = 8;
/// Largest stack, in KiB: up to where programs are linked.
pub const STACK_KIB_MAX: u32 = (STACK_MAX / 1024) as u32;
/// KiB in a page.
const PAGE_KIB: u32 = (PAGE_SIZE / 1024) as u32;

/// What a rule says against a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// Byte of the file where the value begins.
    pub at: usize,
    /// What is wrong, and what is allowed.
    pub what: String,
}

type Verdict = Result<(), Objection>;

fn object<T>(value: &Spanned<T>, what: String) -> Verdict {
    let at = value.span().start;
    Err(Objection { at, what })
}

/// Checks every rule that needs no images.
///
/// # Errors
/// The first objection.
pub fn check(entries: &[Spanned<Entry>]) -> Verdict {
    for required in [INIT, DEFAULT] {
        if !entries.iter().any(|entry| name(entry) == required) {
            let what = format!("there is no program `{required}`");
            return Err(Objection { at: 0, what });
        }
    }
    for (index, entry) in entries.iter().enumerate() {
        let others = &entries[..index];
        check_name(entry.get_ref(), others)?;
        check_start(entry)?;
        check_numbers(entry.get_ref())?;
        check_endpoints(entry.get_ref(), entries, others)?;
        check_devices(entry.get_ref(), others)?;
        if let Some(pci) = &entry.get_ref().pci {
            check_pci(pci, others)?;
        }
    }
    Ok(())
}

/// Checks that every image named is in the archive.
///
/// # Errors
/// The first objection.
pub fn check_images(entries: &[Spanned<Entry>], images: &[String]) -> Verdict {
    for image in entries
        .iter()
        .filter_map(|entry| entry.get_ref().image.as_ref())
    {
        if !images.contains(image.get_ref()) {
            return object(
                image,
                format!("there is no `{}` in the boot archive", image.get_ref()),
            );
        }
    }
    Ok(())
}

fn name(entry: &Spanned<Entry>) -> &str {
    entry.get_ref().name.get_ref()
}

fn check_name(entry: &Entry, others: &[Spanned<Entry>]) -> Verdict {
    check_word(&entry.name)?;
    if others
        .iter()
        .any(|other| name(other) == entry.name.get_ref())
    {
        return object(
            &entry.name,
            format!("`{}` has an entry already", entry.name.get_ref()),
        );
    }
    Ok(())
}

/// Names of programs and endpoints.
fn check_word(word: &Spanned<String>) -> Verdict {
    let allowed =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    let text = word.get_ref();
    if (1..=NAME_MAX).contains(&text.len()) && text.bytes().all(allowed) {
        return Ok(());
    }
    object(
        word,
        format!("`{text}` is not a name: 1 to {NAME_MAX} of a-z 0-9 _ -"),
    )
}

fn check_start(entry: &Spanned<Entry>) -> Verdict {
    let is_default = name(entry) == DEFAULT;
    let entry_ref = entry.get_ref();
    let start = &entry_ref.start;
    if is_default && *start.get_ref() != Start::Demand {
        return object(start, format!("`{DEFAULT}` starts on demand"));
    }
    if name(entry) == INIT && *start.get_ref() != Start::Boot {
        return object(start, format!("`{INIT}` starts at boot"));
    }
    match &entry_ref.image {
        Some(image) if is_default => object(image, format!("`{DEFAULT}` has no image of its own")),
        None if !is_default => object(entry, format!("`{}` has no image", name(entry))),
        _ => Ok(()),
    }
}

fn check_numbers(entry: &Entry) -> Verdict {
    if *entry.priority.get_ref() > PRIORITY_MAX {
        return object(
            &entry.priority,
            format!("a priority is 0 to {PRIORITY_MAX}"),
        );
    }
    let memory = MEMORY_KIB_MIN..=MEMORY_KIB_MAX;
    check_kib(&entry.memory_kib, "memory_kib", memory)?;
    let half = *entry.memory_kib.get_ref() / 2;
    if *entry.stack_kib.get_ref() > half {
        return object(
            &entry.stack_kib,
            "stack_kib is at most half of memory_kib".into(),
        );
    }
    let most = half.min(STACK_KIB_MAX);
    check_kib(&entry.stack_kib, "stack_kib", STACK_KIB_MIN..=most)
}

fn check_kib(value: &Spanned<u32>, key: &str, allowed: RangeInclusive<u32>) -> Verdict {
    let kib = *value.get_ref();
    if allowed.contains(&kib) && kib.is_multiple_of(PAGE_KIB) {
        return Ok(());
    }
    let (low, high) = allowed.into_inner();
    object(
        value,
        format!("{key} is {low} to {high}, a multiple of {PAGE_KIB}"),
    )
}

fn check_endpoints(entry: &Entry, all: &[Spanned<Entry>], others: &[Spanned<Entry>]) -> Verdict {
    let serves =
        |entry: &Entry, name: &str| entry.serves.iter().any(|served| served.get_ref() == name);
    for (index, served) in entry.serves.iter().enumerate() {
        check_word(served)?;
        let repeated = entry.serves[..index]
            .iter()
            .any(|other| other.get_ref() == served.get_ref());
        let other = others
            .iter()
            .find(|other| serves(other.get_ref(), served.get_ref()));
        if let Some(server) = other
            .map(name)
            .or(repeated.then_some(entry.name.get_ref().as_str()))
        {
            return object(
                served,
                format!("`{}` is served by `{server}` already", served.get_ref()),
            );
        }
    }
    for called in &entry.calls {
        if !all
            .iter()
            .any(|other| serves(other.get_ref(), called.get_ref()))
        {
            return object(called, format!("no program serves `{}`", called.get_ref()));
        }
    }
    Ok(())
}

/// Devices have one driver each.
fn check_devices(entry: &Entry, others: &[Spanned<Entry>]) -> Verdict {
    for ports in &entry.ports {
        let (first, count) = (
            u32::from(ports.get_ref().first),
            u32::from(ports.get_ref().count),
        );
        if count == 0 || first + count > 1 << 16 {
            return object(
                ports,
                "a range has at least one port, and ends at 0xffff at most".into(),
            );
        }
        let overlaps = |other: &Entry| {
            other.ports.iter().map(Spanned::get_ref).any(|other| {
                let (other_first, other_count) = (u32::from(other.first), u32::from(other.count));
                first < other_first + other_count && other_first < first + count
            })
        };
        if let Some(other) = others.iter().find(|other| overlaps(other.get_ref())) {
            return object(
                ports,
                format!("some of these ports belong to `{}`", name(other)),
            );
        }
    }
    for (index, line) in entry.interrupts.iter().enumerate() {
        let number = *line.get_ref();
        if number >= INTERRUPTS {
            return object(
                line,
                format!("an interrupt line is 0 to {}", INTERRUPTS - 1),
            );
        }
        let has = |lines: &[Spanned<u32>]| lines.iter().any(|line| *line.get_ref() == number);
        let other = others
            .iter()
            .find(|other| has(&other.get_ref().interrupts))
            .map(name);
        let own = has(&entry.interrupts[..index]).then_some(entry.name.get_ref().as_str());
        if let Some(owner) = other.or(own) {
            return object(
                line,
                format!("interrupt {number} belongs to `{owner}` already"),
            );
        }
    }
    for range in &entry.device_memory {
        let (base, bytes) = (range.get_ref().base, range.get_ref().bytes);
        let whole = base.is_multiple_of(PAGE_SIZE) && bytes.is_multiple_of(PAGE_SIZE) && bytes > 0;
        let end = base.checked_add(bytes).filter(|&end| end <= PHYSICAL_END);
        let Some(end) = end.filter(|_| whole) else {
            let what = "device memory is whole pages, at least one, and ends below 16 TiB";
            return object(range, what.into());
        };
        let overlaps = |other: &Entry| {
            let mut ranges = other.device_memory.iter().map(Spanned::get_ref);
            ranges.any(|other| base < other.base + other.bytes && other.base < end)
        };
        if let Some(other) = others.iter().find(|other| overlaps(other.get_ref())) {
            return object(
                range,
                format!("some of this memory belongs to `{}`", name(other)),
            );
        }
    }
    Ok(())
}

fn check_pci(pci: &Pci, others: &[Spanned<Entry>]) -> Verdict {
    let vendor = *pci.vendor.get_ref();
    if vendor == u16::MAX {
        return object(&pci.vendor, "a vendor is 0 to 0xfffe".into());
    }
    let devices = pci.devices.get_ref();
    if devices.is_empty() {
        return object(&pci.devices, "`devices` has at least one device".into());
    }
    if !(1..=VECTORS_MAX).contains(pci.vectors.get_ref()) {
        return object(&pci.vectors, format!("vectors is 1 to {VECTORS_MAX}"));
    }
    check_kib(&pci.dma_kib, "dma_kib", PAGE_KIB..=DMA_KIB_MAX)?;
    let drives = |other: &Entry| {
        other.pci.as_ref().is_some_and(|other| {
            let known = other.devices.get_ref();
            *other.vendor.get_ref() == vendor && devices.iter().any(|it| known.contains(it))
        })
    };
    match others.iter().find(|other| drives(other.get_ref())) {
        Some(other) => object(
            &pci.devices,
            format!("one of these devices belongs to `{}`", name(other)),
        ),
        None => Ok(()),
    }
}

//! The numbers that pages give, against the constants that they are.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, Result};
use ipc::abi::layout::{INFO_PAGE, PROGRAM_BASE};
use ipc::abi::startup::{IPC_BUFFER, STACK_BASE, STACK_GUARD, STARTUP_PAGE};

use super::{Sources, rows};
use crate::qemu::{PANIC, POWER_OFF, REBOOT, debug_exit};

const LIMITS: &str = "docs/limits.md";
const BOUNDS: &str = "docs/kernel.md";
const LOCKS: &str = "microkernel/core/src/base/lock.rs";
const LAYOUT: &str = "microkernel/src/arch/layout.rs";

/// A constant that a cell names, as name and file: `` `NAME` in `file` ``.
fn declared(cell: &str) -> Option<(String, String)> {
    let (name, file) = cell.split_once(" in ")?;
    let code = |word: &str| Some(word.strip_prefix('`')?.strip_suffix('`')?.to_owned());
    Some((code(name)?, code(file)?))
}

/// A number and its unit.
fn amount(cell: &str) -> Option<u64> {
    let mut words = cell.split(' ');
    let number: u64 = words.next()?.parse().ok()?;
    let unit = match words.next() {
        Some("KiB") => 1 << 10,
        Some("MiB") => 1 << 20,
        Some("TiB") => 1 << 40,
        _ => 1,
    };
    Some(number * unit)
}

/// Each limit, and each bound of a loop, has the value of the constant that it is declared as.
pub fn limits(sources: &Sources<'_>) -> Result<Vec<String>> {
    let mut wrong = compared(sources, LIMITS)?;
    wrong.extend(compared(sources, BOUNDS)?);
    Ok(wrong)
}

/// The rows of a page's tables of constants that give another value than the constant has.
fn compared(sources: &Sources<'_>, page: &str) -> Result<Vec<String>> {
    let text = sources.read(page)?;
    let rows: Vec<_> = rows(&text).collect();
    let (mut wrong, mut is_of_constants, mut compared) = (Vec::new(), false, 0);
    for (index, row) in rows.iter().enumerate() {
        let is_rule = |row: &Vec<&str>| row.iter().all(|cell| *cell == "---");
        if rows.get(index + 1).is_some_and(is_rule) {
            is_of_constants = row.get(2) == Some(&"declared as");
            continue;
        }
        let [what, given, constant, ..] = row[..] else {
            continue;
        };
        if is_rule(row) || !is_of_constants {
            continue;
        }
        compared += 1;
        let code =
            declared(constant).and_then(|(name, file)| sources.constants().value(&file, &name));
        if code.is_none() || amount(given) != code {
            let code = code.map_or("not to be found".into(), |code| code.to_string());
            wrong.push(format!("{page}: {what}: {given}, but {constant} is {code}"));
        }
    }
    if compared == 0 {
        wrong.push(format!("{page}: no table says what is `declared as` what"));
    }
    Ok(wrong)
}

/// Each limit of the contract is among them: the constants that end in `_MAX`, with or without a unit.
pub fn contract(sources: &Sources<'_>) -> Result<Vec<String>> {
    let page = sources.read(LIMITS)?;
    let listed: BTreeSet<_> = rows(&page)
        .filter_map(|row| declared(row.get(2)?))
        .collect();
    let mut wrong = Vec::new();
    for path in sources.files(Path::new("ipc/src"), "rs")? {
        let (source, file) = (sources.read(&path)?, path.display().to_string());
        let constants = source
            .lines()
            .filter_map(|line| line.strip_prefix("pub const "));
        for name in constants.filter_map(|line| line.split(':').next()) {
            // One that is computed from the size of a type is that type's, not a limit of its own.
            let is_limit = (name.ends_with("_MAX") || name.contains("_MAX_"))
                && sources.constants().value(&file, name).is_some();
            if is_limit && !listed.contains(&(name.to_owned(), file.clone())) {
                wrong.push(format!("{LIMITS}: `{name}` in `{file}` is missing"));
            }
        }
    }
    Ok(wrong)
}

/// The order of locks is that of their ranks.
pub fn locks(sources: &Sources<'_>) -> Result<Vec<String>> {
    let source = sources.read(LOCKS)?;
    let ranks = source.split_once("pub mod rank {");
    let (ranks, _) = ranks
        .and_then(|(_, rest)| rest.split_once("\n}"))
        .context(LOCKS)?;
    let mut order = Vec::new();
    for line in ranks
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub const "))
    {
        let name = line.split(':').next().unwrap_or_default();
        let rank = sources.constants().value(LOCKS, name).context(LOCKS)?;
        order.push((rank, name.to_lowercase().replace('_', " ")));
    }
    order.sort();
    let expected: Vec<_> = order
        .iter()
        .map(|(rank, name)| format!("{rank} {name}"))
        .collect();
    let page = sources.read("docs/kernel.md")?;
    let section = page.split_once("## Locks").map(|(_, rest)| rest);
    let block = section.and_then(|rest| rest.split("```").nth(1));
    let block = block.context("docs/kernel.md has no order of locks")?;
    let documented = block.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(different(
        "docs/kernel.md",
        &documented,
        &expected.join(" "),
    ))
}

/// The memory maps have the addresses of the code, and no others.
pub fn memory_maps(sources: &Sources<'_>) -> Result<Vec<String>> {
    let constant = |file, name| sources.constants().value(file, name).context(name);
    let mut kernel = BTreeSet::from([
        constant("ipc/src/abi/layout.rs", "USER_START")?,
        // The image is linked that far above its physical address, which is 1 MiB.
        constant(LAYOUT, "KERNEL_BASE")? + (1 << 20),
    ]);
    for name in ["DIRECT_MAP", "CPU_AREAS", "WINDOW", "DEVICES"] {
        kernel.insert(constant(LAYOUT, name)?);
    }
    let program = [
        STARTUP_PAGE,
        IPC_BUFFER,
        STACK_GUARD,
        STACK_BASE,
        PROGRAM_BASE,
        INFO_PAGE,
    ];
    let mut wrong = Vec::new();
    for (page, map) in [
        ("docs/boot.md", kernel),
        ("docs/programs.md", program.into()),
    ] {
        wrong.extend(different(
            page,
            &hex(&addresses(sources, page)?),
            &hex(&map),
        ));
    }
    Ok(wrong)
}

/// The values for the exit device, and QEMU's status for each, are those of the code.
pub fn exit_values(sources: &Sources<'_>) -> Result<Vec<String>> {
    const PAGE: &str = "docs/boot.md";
    let page = sources.read(PAGE)?;
    let table = rows(&page).skip_while(|row| row.first() != Some(&"exit device value"));
    let documented: Vec<_> = table
        .skip(2)
        .filter_map(|row| Some(format!("{} {}", row.first()?, row.get(1)?)))
        .collect();
    let code = [POWER_OFF, PANIC, REBOOT].map(|value| format!("{value:#x} {}", debug_exit(value)));
    Ok(different(PAGE, &documented.join(", "), &code.join(", ")))
}

/// The addresses in the first column of a page's tables. What has a few digits is no address.
fn addresses(sources: &Sources<'_>, page: &str) -> Result<BTreeSet<u64>> {
    let page = sources.read(page)?;
    let cells = rows(&page).filter_map(|row| Some(row.first()?.trim_matches('`').replace('_', "")));
    let numbers = cells.filter_map(|cell| u64::from_str_radix(cell.strip_prefix("0x")?, 16).ok());
    Ok(numbers.filter(|&number| number > 0xff).collect())
}

fn hex(addresses: &BTreeSet<u64>) -> String {
    let words: Vec<_> = addresses
        .iter()
        .map(|address| format!("{address:#x}"))
        .collect();
    words.join(" ")
}

fn different(page: &str, documented: &str, code: &str) -> Vec<String> {
    match documented == code {
        true => Vec::new(),
        false => vec![format!("{page}: {documented}, but the code has {code}")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read() {
        let constant = ("A_MAX".to_owned(), "ipc/src/a.rs".to_owned());
        assert_eq!(declared("`A_MAX` in `ipc/src/a.rs`"), Some(constant));
        assert_eq!(declared("A_MAX in ipc/src/a.rs"), None);
        assert_eq!(amount("4 MiB"), Some(4 << 20));
        assert_eq!(amount("8 servers deep"), Some(8));
        assert_eq!(amount("many"), None);
    }
}

//! The numbers that pages give, against the constants that they are.

use super::constants::value;
use super::{files, read, rows};
use ipc::abi::layout::{INFO_PAGE, PROGRAM_BASE};
use ipc::abi::startup::{IPC_BUFFER, STACK_BASE, STACK_GUARD, STARTUP_PAGE};
use std::collections::BTreeSet;
use std::path::Path;

/// A constant that a cell names: `` `NAME` in `file` ``.
fn declared(cell: &str) -> Option<(&str, &str)> {
    let (name, file) = cell.split_once(" in ")?;
    let code = |word: &'_ str| word.len() > 2 && word.starts_with('`') && word.ends_with('`');
    (code(name) && code(file)).then(|| (name.trim_matches('`'), file.trim_matches('`')))
}

/// A number and its unit.
fn amount(cell: &str) -> Option<u64> {
    let mut words = cell.split(' ');
    let number: u64 = words.next()?.parse().ok()?;
    let shift = match words.next() {
        Some("KiB") => 10,
        Some("MiB") => 20,
        Some("TiB") => 40,
        _ => 0,
    };
    Some(number << shift)
}

#[test]
fn limits_are_the_constants() {
    let page = read("docs/limits.md");
    let mut compared = 0;
    for row in rows(&page) {
        let [what, given, constant, ..] = row[..] else {
            continue;
        };
        let Some((name, file)) = declared(constant) else {
            let is_head = constant == "declared as" || constant == "---";
            assert!(is_head, "{what}: {constant} is no constant in a file");
            continue;
        };
        let code = value(file, name);
        assert!(code.is_some(), "{what}: no value of {name} in {file}");
        assert_eq!(amount(given), code, "{what}: {name} in {file}");
        compared += 1;
    }
    assert!(compared > 40, "{compared}");
}

#[test]
fn every_limit_of_the_contract_is_listed() {
    let page = read("docs/limits.md");
    let listed: BTreeSet<_> = rows(&page)
        .filter_map(|row| {
            declared(row.get(2)?).map(|(name, file)| (name.to_owned(), file.to_owned()))
        })
        .collect();
    for path in files(Path::new("ipc/src"), "rs") {
        let file = path.to_str().unwrap();
        for line in read(&path)
            .lines()
            .filter_map(|line| line.strip_prefix("pub const "))
        {
            let name = line.split(':').next().unwrap_or_default();
            // One that is computed from the size of a type is that type's, not a limit of its own.
            let is_limit = name.ends_with("_MAX") || name.contains("_MAX_");
            if is_limit && value(file, name).is_some() {
                let constant = (name.to_owned(), file.to_owned());
                assert!(
                    listed.contains(&constant),
                    "{constant:?} is not in docs/limits.md"
                );
            }
        }
    }
}

#[test]
fn the_order_of_locks_is_that_of_the_ranks() {
    let lock = "microkernel/core/src/base/lock.rs";
    let source = read(lock);
    let (_, ranks) = source.split_once("pub mod rank {").unwrap();
    let (ranks, _) = ranks.split_once("\n}").unwrap();
    let mut order: Vec<(u64, String)> = ranks
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub const "))
        .map(|line| line.split(':').next().unwrap_or_default())
        .map(|name| {
            (
                value(lock, name).unwrap(),
                name.to_lowercase().replace('_', " "),
            )
        })
        .collect();
    order.sort();
    let page = read("docs/kernel.md");
    let (_, block) = page.split_once("## Locks").unwrap();
    let block = block.split("```").nth(1).unwrap();
    let documented: Vec<&str> = block.split_whitespace().collect();
    let expected: Vec<String> = order
        .iter()
        .map(|(rank, name)| format!("{rank} {name}"))
        .collect();
    assert_eq!(documented.join(" "), expected.join(" "));
}

/// The addresses in the first column of a page's tables.
fn addresses(page: &str) -> BTreeSet<u64> {
    let page = read(page);
    let cells = rows(&page).filter_map(|row| {
        row.first()
            .map(|cell| cell.trim_matches('`').replace('_', ""))
    });
    cells
        .filter_map(|cell| u64::from_str_radix(cell.strip_prefix("0x")?, 16).ok())
        .collect()
}

#[test]
fn memory_maps_are_the_constants() {
    let layout = "microkernel/src/arch/layout.rs";
    let constant = |file, name| value(file, name).unwrap();
    let mut map: BTreeSet<u64> = ["DIRECT_MAP", "CPU_AREAS", "WINDOW", "DEVICES"]
        .map(|name| constant(layout, name))
        .into();
    map.insert(constant("ipc/src/abi/layout.rs", "USER_START"));
    // The kernel's image is linked that far above its physical address, which is 1 MiB.
    map.insert(constant(layout, "KERNEL_BASE") + (1 << 20));
    let mut found = addresses("docs/boot.md");
    found.retain(|&address| address > 0xff);
    assert_eq!(found, map);

    let map = BTreeSet::from([
        STARTUP_PAGE,
        IPC_BUFFER,
        STACK_GUARD,
        STACK_BASE,
        PROGRAM_BASE,
        INFO_PAGE,
    ]);
    assert_eq!(addresses("docs/programs.md"), map);
}

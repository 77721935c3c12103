//! Symbols from ELF files, whole and damaged.

mod support;

use profd::atlas::{Atlas, Space};
use profd::catalog::{Catalog, Content, ImageId};
use profd::image::{Image, ImageError};
use profd::process::Processes;
use profd::symbols::Symbols;
use proptest::prelude::*;
use support::elf::{Elf, FUNCTION, LABEL, LOCAL_FUNCTION};
use support::process;

fn named(symbols: &Symbols<'_>, address: u64) -> Option<(String, u64)> {
    let (symbol, offset) = symbols.find(address)?;
    Some((
        String::from_utf8_lossy(symbols.raw_name(symbol)).into_owned(),
        offset,
    ))
}

/// An entry stub with a label inside a function, labels of assembly between functions, and two names for one function.
fn mixed() -> Elf {
    let symbol = |name: &str, address, size, info| (name.as_bytes().to_vec(), address, size, info);
    Elf {
        symbols: vec![
            symbol("late", 0x1100, 0x20, FUNCTION),
            symbol("inner", 0x1108, 0, LABEL),
            symbol("alias", 0x1100, 0x20, LOCAL_FUNCTION),
            symbol("early", 0x1010, 0x10, FUNCTION),
            symbol("stub", 0x1020, 0, LABEL),
            symbol("last", 0x1180, 0, LABEL),
            symbol("elsewhere", 0x9000, 8, FUNCTION),
            symbol("object", 0x1140, 8, 0x11),
        ],
        text: Some((0x1000, 0x200)),
        ..Elf::default()
    }
}

#[test]
fn functions_are_found_by_every_address_of_theirs_and_by_no_other() {
    let file = mixed().build();
    let image = Image::parse(&file).unwrap();
    let at = |address| named(&image.symbols, address);
    let is = |name: &str, offset| Some((name.to_string(), offset));
    assert_eq!(at(0x100f), None);
    assert_eq!(at(0x1010), is("early", 0));
    assert_eq!(at(0x101f), is("early", 0xf));
    assert_eq!(at(0x1020), is("stub", 0));
    assert_eq!(at(0x10ff), is("stub", 0xdf));
    assert_eq!(at(0x110a), is("late", 0xa));
    assert_eq!(at(0x1120), None);
    assert_eq!(at(0x1140), None);
    assert_eq!(at(0x11ff), is("last", 0x7f));
    assert_eq!(at(0x1200), None);
    assert_eq!(at(0x9000), None);
    assert_eq!(image.symbols.iter().count(), image.symbols.len());
    assert!(image.is_code(0x11ff) && !image.is_code(0x1200));
}

#[test]
fn what_is_no_usable_file_is_named() {
    let fails = |data: &[u8]| Image::parse(data).err();
    let good = mixed().build();
    assert_eq!(fails(b""), Some(ImageError::NotElf));
    assert_eq!(fails(b"#!/bin/sh"), Some(ImageError::NotElf));
    assert_eq!(fails(&good[..good.len() - 8]), Some(ImageError::Damaged));
    let mut arm = good.clone();
    arm[18] = 183;
    assert_eq!(fails(&arm), Some(ImageError::NotElf));
    assert_eq!(
        fails(
            &Elf {
                text: Some((0x1000, 8)),
                ..Elf::default()
            }
            .build()
        ),
        Some(ImageError::Stripped)
    );
}

#[test]
fn a_process_of_another_build_has_no_symbols() {
    let file = Elf {
        build_id: vec![7; 20],
        ..Elf::new([("main", 0x1000, 0x10)])
    }
    .build();
    let mut catalog = Catalog::new(None);
    catalog.add("bin/a", Content::Bytes(&file));
    let mut processes = Processes::default();
    for (pid, byte) in [(1, 7), (2, 8), (3, 0)] {
        processes.start(
            pid,
            profd::process::Process {
                build_id: [byte; 20],
                ..process("a")
            },
        );
    }
    let atlas = Atlas {
        catalog: &catalog,
        processes: &processes,
    };
    let place = |pid| atlas.owner(pid).place(0x1000);
    assert!(atlas.function(place(1)).is_some());
    assert_eq!(place(2).space, Space::Process(2));
    assert_eq!(
        atlas.problem(Space::Process(2)),
        Some(ImageError::OtherBuild)
    );
    assert!(atlas.function(place(3)).is_some());
    assert_eq!(atlas.image_of(4), Err(ImageError::Missing));
}

#[test]
fn a_program_called_kernel_is_not_the_kernel() {
    let file = Elf::new([("main", 0x1000, 0x10)]).build();
    let kernel = Elf::new([("idle", 0xffff_ffff_8000_0000, 0x10)]).build();
    let mut catalog = Catalog::new(Some(Content::Bytes(&kernel)));
    assert_eq!(catalog.find("bin/kernel"), None);
    catalog.add("bin/kernel", Content::Bytes(&file));
    let program = catalog.find("kernel").expect("it was added");
    assert_ne!(program, ImageId::KERNEL);
    let image = catalog.image(program).expect("it is whole");
    assert!(image.symbols.find(0x1000).is_some());
}

#[test]
fn a_load_bias_is_taken_off_program_addresses_alone() {
    let file = Elf::new([("main", 0x1000, 0x10)]).build();
    let kernel = Elf::new([("idle", 0xffff_ffff_8000_0000, 0x10)]).build();
    let mut catalog = Catalog::new(Some(Content::Bytes(&kernel)));
    catalog.add("bin/a", Content::Bytes(&file));
    let mut processes = Processes::default();
    processes.start(
        1,
        profd::process::Process {
            load_bias: 0x40_0000,
            ..process("a")
        },
    );
    let atlas = Atlas {
        catalog: &catalog,
        processes: &processes,
    };
    let offset = |address| {
        atlas
            .function(atlas.owner(1).place(address))
            .map(|(_, offset)| offset)
    };
    assert_eq!(offset(0x40_1004), Some(4));
    assert_eq!(offset(0xffff_ffff_8000_0008), Some(8));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_damaged_file_never_panics(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..24), cut in any::<prop::sample::Index>(), whole in any::<bool>(), address in 0u64..0x2000) {
        let mut file = Elf { build_id: vec![1; 20], eh_frame: vec![0x14, 0, 0, 0, 0, 0, 0, 0], ..mixed() }.build();
        for (place, byte) in changes {
            let place = place.index(file.len());
            file[place] = byte;
        }
        if !whole {
            file.truncate(cut.index(file.len()));
        }
        if let Ok(image) = Image::parse(&file) {
            let _ = named(&image.symbols, address);
            let _ = image.rule(address);
            for (start, size) in image.symbols.iter() {
                prop_assert!(size == 0 || image.symbols.find(start).is_some());
            }
        }
    }

    #[test]
    fn lookup_agrees_with_a_search(starts in prop::collection::btree_set(0u64..0x400, 1..30), sizes in prop::collection::vec(1u64..40, 30), address in 0u64..0x440) {
        let functions: Vec<_> = starts.iter().zip(&sizes).map(|(start, size)| (format!("f{start}"), 0x1000 + start, *size)).collect();
        let file = Elf { text: Some((0x1000, 0x440)), ..Elf::new(functions.iter().map(|(name, start, size)| (name.as_str(), *start, *size))) }.build();
        let image = Image::parse(&file).unwrap();
        let address = 0x1000 + address;
        let nearest = functions.iter().rev().find(|(_, start, _)| *start <= address);
        let expected = nearest.filter(|(_, start, size)| address < start + size).map(|(name, start, _)| (name.clone(), address - start));
        prop_assert_eq!(named(&image.symbols, address), expected);
    }
}

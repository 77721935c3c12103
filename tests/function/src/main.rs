//! `function [on]`: has a PCI function, and tries to do with it what a driver may not. It is in the test archive alone. A check that
//! fails panics; the last line says what was tried. With `on` it then lets the function master the bus, and ends.
#![no_std]
#![no_main]
#![expect(clippy::unwrap_used, reason = "a check that fails panics")]

extern crate alloc;

use alloc::vec::Vec;
use core::ops::Range;

use ipc::abi::layout::PAGE_SIZE;
use ipc::abi::startup::names;
use ipc::abi::{Error, Handle, ObjectType, Rights};
use ipc::proto::CallError;
use ipc::proto::pci::{BUS_MASTER, COMMAND, Client, PciError};
use sysroot::{Connection, handle, mapping, println, startup, syscall};

sysroot::entry!(main);

/// Base address registers and the capabilities' list.
const BARS: u8 = 0x10;
const CAPABILITIES: u8 = 0x34;
/// A capability: MSI-X.
const MSIX: u8 = 0x11;

type Configuration = Client<Connection>;

fn main() {
    let Some(handle) = startup::handle(names::PCI) else {
        println!("no function");
        return;
    };
    let mut function = Client::new(Connection::new(handle));
    let command = function.read(&COMMAND).unwrap();
    assert_eq!(command & BUS_MASTER, 0, "it masters the bus already");
    let refused = refused_writes(&mut function, command);
    let bars = bars(&mut function);
    let pages = registers(&mut function, &bars);
    let dma = dma(&bars);
    passes_nothing_on();
    println!("{refused} writes refused, {pages} pages of registers, {dma} for DMA");
    if startup::args().next() == Some("on") {
        function.write(&(COMMAND, command | BUS_MASTER)).unwrap();
        assert_ne!(function.read(&COMMAND).unwrap() & BUS_MASTER, 0);
    }
}

/// Tries to change each bit of each register; how many could not be.
fn refused_writes(function: &mut Configuration, command: u32) -> u32 {
    let mut refused = 0;
    for offset in (0..=252).step_by(4) {
        let held = function.read(&offset).unwrap_or(0);
        for bit in 0..32 {
            // The one bit that it may change; and the status, of which nothing is written.
            if offset == COMMAND && (1 << bit == BUS_MASTER || bit >= 16) {
                continue;
            }
            let result = function.write(&(offset, held ^ 1 << bit));
            assert_eq!(result, Err(CallError::Service(PciError::NotWritable)));
            refused += 1;
        }
    }
    assert_eq!(function.read(&COMMAND).unwrap() & 0xffff, command & 0xffff);
    refused
}

/// Where the function's registers are in memory, by number.
fn bars(function: &mut Configuration) -> [u64; 6] {
    let mut bars = [0; 6];
    let mut high = false;
    for index in 0..6 {
        let word = function.read(&(BARS + 4 * index)).unwrap();
        let index = usize::from(index);
        if high {
            bars[index - 1] |= u64::from(word) << 32;
            high = false;
        } else if word & 1 == 0 {
            bars[index] = u64::from(word & !0xf);
            high = word & 6 == 4;
        }
    }
    bars
}

/// The page that the table of messages begins in.
fn table(function: &mut Configuration, bars: &[u64; 6]) -> u64 {
    let mut next = function.read(&CAPABILITIES).unwrap() as u8;
    while next != 0 {
        let word = function.read(&next).unwrap();
        if word as u8 == MSIX {
            let table = function.read(&(next + 4)).unwrap();
            return (bars[table as usize & 7] + u64::from(table & !7)) / PAGE_SIZE * PAGE_SIZE;
        }
        next = (word >> 8) as u8;
    }
    panic!("it has no MSI-X");
}

/// The pages of registers that this program has: it must not have that of the table, nor others behind them.
fn registers(function: &mut Configuration, bars: &[u64; 6]) -> u64 {
    let table = table(function, bars);
    let mut all = 0;
    for (name, handle) in startup::page().handles() {
        if !name.starts_with(names::PCI_BAR) {
            continue;
        }
        let (pages, base) = syscall::memory_info(handle).unwrap();
        let given: Range<u64> = base..base + pages * PAGE_SIZE;
        assert!(!given.contains(&table), "{name} has the table");
        assert!(bars.iter().any(|&bar| bar != 0 && bar <= base), "{name}");
        let beyond = sysroot::Mapping::new(handle, 0, pages + 1, true);
        assert_eq!(beyond.err(), Some(Error::BadArgument));
        all += pages;
    }
    all
}

/// The pages for DMA, which are RAM in a row.
fn dma(bars: &[u64; 6]) -> u64 {
    let memory = startup::handle(names::PCI_DMA).unwrap();
    let (pages, base) = syscall::memory_info(memory).unwrap();
    assert!(base != 0 && !bars.contains(&base));
    let mapping = mapping::Mapping::new(memory, 0, pages, true).unwrap();
    assert_eq!(mapping.write(0, &[7; 64]), 64);
    pages
}

/// No handle to the function can be given to another program, nor can one be made of another function.
fn passes_nothing_on() {
    let given: Vec<(&str, Handle)> = startup::page().handles().collect();
    let of_function = given
        .iter()
        .filter(|(name, _)| name.starts_with(names::PCI));
    for &(name, handle) in of_function {
        let (_, rights, _) = syscall::handle_info(handle).unwrap();
        let rights = Rights::from_bits_truncate(rights.bits());
        assert!(
            !rights.intersects(Rights::TRANSFER | Rights::DUPLICATE),
            "{name}"
        );
        assert!(
            handle::duplicate(handle, Rights::empty()).is_err(),
            "{name}"
        );
    }
    let endpoint = startup::handle(names::PCI).unwrap();
    let minted = handle::mint(endpoint, 1 << 32, Rights::CALL);
    assert_eq!(minted.err(), Some(Error::MissingRight));
    let system = given.iter().any(|&(_, handle)| {
        let kind = syscall::handle_info(handle).map(|(kind, ..)| kind);
        kind == Ok(ObjectType::System as u64)
    });
    assert!(!system, "it can take devices by itself");
}

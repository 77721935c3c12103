//! The story of the boot: what machine this is, what of it the guest is told, and the guest's first instruction.
//!
//! The loader's information is that of the PVH protocol (Xen's public header `arch-x86/hvm/start_info.h`).

use crate::acpi::take_hpet;
use crate::cpu::{Config, Cpu};
use crate::hpet::Hpet;
use crate::memory::{self, Device, Physical};
use crate::report::give_up;
use crate::start::{TRAMPOLINE, install_trampoline, shim};
use crate::vmcb::Vmcb;
use crate::{cpu, kernel};
use kcore::boot::PhysRead;
use kcore::boot::pvh::{self, BootInfo};
use pmu_model::setup::{Setup, WORD};
use spin::Mutex;

/// Bytes of the start information, and where in it the command line and the memory map are told.
const INFO_BYTES: usize = 56;
const COMMAND_LINE: u64 = 24;
const MAP: usize = 40;
const ENTRIES: usize = 48;
const ENTRY_BYTES: usize = 24;
const ENTRIES_MAX: usize = 64;
/// An entry's type that is not RAM.
const RESERVED: u32 = 2;

/// The guest's start information and memory map: the loader's, with what the shim keeps.
struct Told {
    info: [u8; INFO_BYTES],
    map: [[u8; ENTRY_BYTES]; ENTRIES_MAX],
}

static TOLD: Mutex<Told> = Mutex::new(Told {
    info: [0; INFO_BYTES],
    map: [[0; ENTRY_BYTES]; ENTRIES_MAX],
});

/// Entered by `start.s` on the first CPU, with what the loader left in EBX.
pub extern "C" fn boot(_: u64, info: u64) -> ! {
    let found =
        pvh::parse(&Physical, info).unwrap_or_else(|error| give_up(format_args!("{error}")));
    let setup = take_word(&found, info);
    let base = take_hpet(found.rsdp);
    // SAFETY: the table told of an HPET there; it writes to no memory but by messages, which are told to it.
    let hpet = Hpet::new(unsafe { Device::new(base) });
    let entry = load(&found);
    let told = tell(info);
    install_trampoline();
    cpu::configure(Config { setup, hpet });
    let mut vmcb = Vmcb::at_entry(entry);
    vmcb.rax = u64::from(pvh::MAGIC);
    Cpu::start(cpu::own_id(), vmcb, told)
}

/// Reads the setup from the command line, and blanks the word: it is none of the kernel's.
fn take_word(found: &BootInfo, info: u64) -> Setup {
    let line = &found.command_line;
    let Some(at) = line.find(WORD) else {
        give_up(format_args!("no `{WORD}` on the command line"));
    };
    let word = line[at..].split(' ').next().unwrap_or_default();
    let Some(setup) = Setup::parse(&word[WORD.len()..]) else {
        give_up(format_args!("no such counters: `{word}`"));
    };
    let text = u64::from_le_bytes(bytes(info + COMMAND_LINE));
    for offset in at..at + word.len() {
        // SAFETY: a byte of the loader's command line, which was just read; nobody else does.
        unsafe { memory::write(text + offset as u64, b" ") };
    }
    setup
}

/// Loads the kernel; returns its entry.
fn load(found: &BootInfo) -> u64 {
    let Some(module) = found.module else {
        give_up(format_args!("no archive"));
    };
    if module.end > 1 << 32 || module.start < shim().end {
        give_up(format_args!(
            "the archive lies out of reach, or over the shim"
        ));
    }
    // SAFETY: the loader has put it there, and the guest, which may write to it, runs later.
    kernel::load(unsafe { memory::module(module.start, module.bytes()) })
}

/// Bytes that the loader left.
fn bytes<const N: usize>(at: u64) -> [u8; N] {
    let read = Physical.bytes(at);
    read.unwrap_or_else(|| give_up(format_args!("boot information at {at:#x} cannot be read")))
}

/// Writes down what the guest is told of the machine; returns where.
fn tell(info: u64) -> u64 {
    let mut told = TOLD.lock();
    let told = &mut *told;
    told.info = bytes(info);
    let number = |at: usize| {
        told.info[at..]
            .first_chunk()
            .map_or(0, |&n| u32::from_le_bytes(n))
    };
    let entries = number(ENTRIES) as usize;
    let map = u64::from(number(MAP)) | u64::from(number(MAP + 4)) << 32;
    let kept = [shim(), TRAMPOLINE..TRAMPOLINE + 4096];
    if entries + kept.len() > ENTRIES_MAX {
        give_up(format_args!("the memory map has {entries} entries"));
    }
    for (index, entry) in told.map.iter_mut().take(entries).enumerate() {
        *entry = bytes(map + (index * ENTRY_BYTES) as u64);
    }
    // Over the RAM that others told of: what is not RAM wins.
    for (entry, kept) in told.map[entries..].iter_mut().zip(&kept) {
        entry[..8].copy_from_slice(&kept.start.to_le_bytes());
        entry[8..16].copy_from_slice(&(kept.end - kept.start).to_le_bytes());
        entry[16..20].copy_from_slice(&RESERVED.to_le_bytes());
    }
    let map = told.map.as_ptr() as u64;
    let count = (entries + kept.len()) as u32;
    told.info[MAP..MAP + 8].copy_from_slice(&map.to_le_bytes());
    told.info[ENTRIES..ENTRIES + 4].copy_from_slice(&count.to_le_bytes());
    told.info.as_ptr() as u64
}

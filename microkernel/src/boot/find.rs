//! What machine this is: its tables, interrupt controllers and clocks.

use super::clock;
use crate::arch::clock::Clock;
use crate::arch::devices::{Registers, Window};
use crate::arch::machine::{self, Machine};
use crate::arch::memory::OutOfMemory;
use crate::arch::percpu::PerCpu;
use crate::arch::sampling::{Alone, Hpet};
use crate::arch::start::Boot;
use crate::arch::{apic, cpu, power};
use crate::fatal::refuse;
use crate::log::detail;
use core::sync::atomic::Ordering;
use heapless::Vec;
use ipc::abi::layout::INTERRUPTS;
use kcore::apic::edge::EdgeLines;
use kcore::apic::hpet::OneShot;
use kcore::apic::io::IoApic;
use kcore::apic::local::LocalApic;
use kcore::base::addr::Tsc;
use kcore::boot::acpi::fadt::{self, Fadt};
use kcore::boot::acpi::madt::{self, IO_APICS_MAX, Madt};
use kcore::boot::acpi::{self, Tables};
use kcore::boot::tsc::Scale;
use kcore::mem::frame_set::FrameSet;
use spin::mutex::TicketMutex;

/// Finds out what machine this is, and prepares the boot CPU's part of it.
///
/// # Errors
/// When there is no memory to map devices.
#[inline(never)]
pub fn machine(boot: &mut Boot) -> Result<&'static Machine, OutOfMemory> {
    let window = Window::new(&mut boot.memory, &boot.mapper)?;
    let tables = Tables::find(&window, boot.info.rsdp)
        .unwrap_or_else(|error| refuse(format_args!("{error}")));
    let madt = match tables.get(b"APIC") {
        Some(table) => madt::parse(&window, table),
        None => refuse(format_args!(
            "no ACPI table of interrupt controllers (MADT)"
        )),
    };
    let fadt = tables
        .get(b"FACP")
        .map_or(Fadt::default(), |table| fadt::parse(&window, table));
    power::set_ways(fadt);
    processor(boot);

    apic::silence_old_controllers();
    let local = local(boot, &madt)?;
    let clocks = [
        match tables
            .get(b"HPET")
            .and_then(|table| acpi::hpet::base(&window, table))
        {
            Some(base) => {
                let (memory, mapper) = (&mut boot.memory, &boot.mapper);
                Clock::hpet(Registers::map(memory, mapper, base)?)
            }
            None => None,
        },
        fadt.pm_timer
            .map(|(port, timer)| Clock::PmTimer(port, timer)),
        Some(Clock::Pit),
    ];
    let rates = clock::measure(clocks, &local, boot.features.tsc_deadline);
    let io = io(boot, &madt)?;
    let lines = io
        .iter()
        .map(IoApic::end)
        .max()
        .map_or(0, |end| end.min(INTERRUPTS));
    let hpet = clocks.iter().flatten().find_map(|clock| clock.as_hpet());
    let alone = hpet
        .and_then(|(registers, hz)| OneShot::find(Hpet(registers), hz, lines))
        .map(Alone::new);
    let highest = boot.mapped.ranges().last().map_or(0, |range| range.end);
    let words = boot.memory.slice(FrameSet::words(highest), |_| 0)?;
    let mapped = FrameSet::new(words, &boot.mapped);
    let machine = machine::set_machine(Machine {
        features: boot.features,
        local,
        io: TicketMutex::new(io),
        madt,
        edges: EdgeLines::new(),
        lines,
        alone,
        scale: Scale::new(Tsc(cpu::tsc()), rates.tsc_hz),
        timer_mode: rates.timer,
        ram: boot.info.ram.clone(),
        mapped,
        root: boot.mapper.root(),
    });
    machine.enable_local();
    Ok(machine)
}

/// Says what of the processor is worth knowing.
fn processor(boot: &Boot) {
    if cpu::needs_isolation(boot.features) {
        detail(format_args!(
            "programs can read kernel memory on this processor (Meltdown)"
        ));
    }
    if !boot.features.invariant_tsc {
        detail(format_args!(
            "the time-stamp counter is not said to be invariant"
        ));
    }
    let lacking = [
        (boot.features.smep, "SMEP"),
        (boot.features.smap, "SMAP"),
        (boot.features.umip, "UMIP"),
    ];
    for (_, name) in lacking.iter().filter(|(there, _)| !there) {
        detail(format_args!("this processor lacks {name}"));
    }
}

/// Switches the boot CPU's own APIC on.
fn local(boot: &mut Boot, madt: &Madt) -> Result<LocalApic<apic::Local>, OutOfMemory> {
    let claims_x2 = boot.features.x2apic || apic::Local::is_x2();
    if claims_x2 {
        apic::Local::X2.switch_on();
    }
    let local = if apic::Local::is_x2() {
        apic::Local::X2
    } else {
        if claims_x2 {
            detail(format_args!("this processor claims an x2APIC and has none"));
        }
        let (memory, mapper) = (&mut boot.memory, &boot.mapper);
        let local = apic::Local::X(Registers::map(memory, mapper, madt.local_base)?);
        local.switch_on();
        local
    };
    let local = LocalApic(local);
    local.enable(madt.nmi_inputs);
    PerCpu::current()
        .apic_id
        .store(local.id(), Ordering::Relaxed);
    Ok(local)
}

/// Masks all lines of all I/O APICs.
fn io(boot: &mut Boot, madt: &Madt) -> Result<Vec<IoApic<apic::Io>, IO_APICS_MAX>, OutOfMemory> {
    let mut io = Vec::new();
    for entry in &madt.io_apics {
        let (memory, mapper) = (&mut boot.memory, &boot.mapper);
        let registers = Registers::map(memory, mapper, entry.base)?;
        // There is room for all that the table's reader keeps.
        let _ = io.push(IoApic::new(apic::Io(registers), entry.first));
    }
    Ok(io)
}

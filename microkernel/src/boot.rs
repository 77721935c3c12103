//! The story of the boot, from the kernel's own page tables on: what machine is this, what does the kernel need on it,
//! what runs first.

use crate::arch::clock::{Clock, Measured};
use crate::arch::devices::{Registers, Window};
use crate::arch::machine::{self, Machine};
use crate::arch::memory::OutOfMemory;
use crate::arch::percpu::PerCpu;
use crate::arch::start::{BOOT_CPU, Boot};
use crate::arch::{apic, cpu, entry, power, smp};
use crate::fatal::refuse;
use crate::log::line;
use core::sync::atomic::Ordering;
use heapless::Vec;
use kcore::apic::io::IoApic;
use kcore::apic::local::{LocalApic, TimerMode};
use kcore::apic::vector;
use kcore::base::addr::Tsc;
use kcore::base::cpu::CpuId;
use kcore::boot::acpi::fadt::{self, Fadt};
use kcore::boot::acpi::madt;
use kcore::boot::acpi::{Tables, hpet};
use kcore::boot::tsc::Scale;
use kcore::hardware::Hardware;
use spin::mutex::TicketMutex;

/// Bytes of registers of each kind of device.
const LOCAL_BYTES: u64 = 0x400;
const IO_BYTES: u64 = 0x20;
const HPET_BYTES: u64 = 0x100;

/// Goes on where [`crate::arch::start`] ends: in the kernel's page tables, on the boot CPU's own stack.
pub fn main(boot: &'static mut Boot) -> ! {
    match run(boot) {
        Ok(cpu) => entry::wait(cpu),
        Err(error) => refuse(format_args!("{error}")),
    }
}

fn run(boot: &mut Boot) -> Result<&'static PerCpu, OutOfMemory> {
    let machine = find_machine(boot)?;
    let cpus = start_cpus(boot, machine)?;
    line(format_args!(
        "Sonde: {cpus} cpus, {} MiB",
        boot.ram_bytes >> 20
    ));
    for id in 1..cpus {
        machine.kick(CpuId(id));
    }
    let cpu = PerCpu::current();
    machine.start_ticking(cpu);
    if boot.info.command_line.contains("panic=test") {
        panic!("as the command line asks");
    }
    Ok(cpu)
}

/// Finds out what machine this is.
fn find_machine(boot: &mut Boot) -> Result<&'static Machine, OutOfMemory> {
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

    apic::silence_old_controllers();
    let x2 = boot.features.x2apic || apic::Local::is_x2_already();
    let local = if x2 {
        apic::Local::X2
    } else {
        let registers =
            Registers::map(&mut boot.memory, &boot.mapper, madt.local_base, LOCAL_BYTES)?;
        apic::Local::X(registers)
    };
    local.switch_on();
    let local = LocalApic(local);
    local.enable(madt.nmi_inputs);
    PerCpu::current()
        .apic_id
        .store(local.id(), Ordering::Relaxed);

    let hpet = match tables
        .get(b"HPET")
        .and_then(|table| hpet::base(&window, table))
    {
        Some(base) => Clock::hpet(Registers::map(
            &mut boot.memory,
            &boot.mapper,
            base,
            HPET_BYTES,
        )?),
        None => None,
    };
    let timer = fadt
        .pm_timer
        .map(|(port, reference)| Clock::PmTimer(port, reference));
    let measured = measure([hpet, timer, Some(Clock::Pit)], &local);
    let tsc_hz = measured.tsc.hz;
    let timer_mode = match measured.apic_timer {
        _ if boot.features.tsc_deadline => TimerMode::Deadline,
        Some(hz) => TimerMode::Count { hz, tsc_hz },
        None => refuse(format_args!("no usable clock: the APIC timer stands still")),
    };

    let mut io = Vec::new();
    for entry in &madt.io_apics {
        let registers = Registers::map(&mut boot.memory, &boot.mapper, entry.base, IO_BYTES)?;
        // There is room for all that the table's reader keeps.
        let _ = io.push(IoApic::new(apic::Io(registers), entry.first));
    }
    let lines = io.iter().map(|io: &IoApic<_>| io.end()).max().unwrap_or(0);
    let machine = machine::set_machine(Machine {
        features: boot.features,
        local,
        io: TicketMutex::new(io),
        madt,
        lines: lines.min(vector::LINES_MAX),
        scale: Scale::new(Tsc(cpu::tsc()), tsc_hz),
        timer_mode,
        mapped: boot.mapped.clone(),
        root: boot.mapper.root(),
    });
    machine.enable_local();
    Ok(machine)
}

/// Measures against the first clock that works.
fn measure(clocks: [Option<Clock>; 3], local: &LocalApic<apic::Local>) -> Measured {
    for clock in clocks.into_iter().flatten() {
        match clock.measure(local) {
            Ok(measured) => {
                line(format_args!(
                    "tsc: {} kHz by the {}, within {} ppm",
                    measured.tsc.hz / 1000,
                    clock.name(),
                    measured.tsc.error_ppm
                ));
                return measured;
            }
            Err(error) => line(format_args!("{} is of no use: {error:?}", clock.name())),
        }
    }
    refuse(format_args!("no usable clock"))
}

/// Starts the other CPUs; how many run.
fn start_cpus(boot: &mut Boot, machine: &Machine) -> Result<u8, OutOfMemory> {
    let mut cpus = 1;
    let Some(trampoline) = smp::Trampoline::new(&mut boot.memory, &boot.mapper) else {
        line(format_args!("no memory below 1 MiB: only one cpu"));
        return Ok(cpus);
    };
    let own = PerCpu::of(BOOT_CPU).map(|cpu| cpu.apic_id.load(Ordering::Relaxed));
    for &apic_id in machine.madt.cpus.iter().filter(|&&id| Some(id) != own) {
        if !machine.local.reaches(apic_id) {
            line(format_args!("cpu with APIC id {apic_id} is out of reach"));
            continue;
        }
        let (memory, mapper) = (&mut boot.memory, &boot.mapper);
        match smp::start(machine, memory, mapper, &trampoline, CpuId(cpus), apic_id)? {
            Some(offset) => {
                if !offset.may_be_zero() {
                    line(format_args!(
                        "cpu {cpus}: tsc is {} ticks off, within {}",
                        offset.ticks, offset.bound
                    ));
                }
                cpus += 1;
            }
            None => line(format_args!("cpu with APIC id {apic_id} does not start")),
        }
    }
    trampoline.finish(&mut boot.memory);
    Ok(cpus)
}

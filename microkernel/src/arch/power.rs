//! The end of the machine's run: off, restarted, or ended by a failure.

use super::cpu::stop;
use ipc::abi::PowerAction;
use ipc::abi::layout::{EXIT_FAILURE, EXIT_OFF, EXIT_PORT, EXIT_REBOOT};
use kcore::boot::acpi::fadt::Fadt;
use spin::Once;
use x86_64::instructions::port::Port;

static FADT: Once<Fadt> = Once::new();

/// Remembers how this machine is switched off and restarted.
pub fn set_ways(fadt: Fadt) {
    FADT.call_once(|| fadt);
}

fn exit(value: u32) {
    // SAFETY: a port of QEMU's exit device, or of nothing.
    unsafe { Port::new(EXIT_PORT).write(value) };
}

/// Ends the run with a failure; where nothing can be told, waits for ever.
pub fn fail() -> ! {
    exit(EXIT_FAILURE);
    stop()
}

/// Switches the machine off or restarts it.
pub fn end(action: PowerAction) -> ! {
    match action {
        PowerAction::Off => off(),
        PowerAction::Reboot => reboot(),
    }
    stop()
}

fn off() {
    exit(EXIT_OFF);
    if let Some(off) = FADT.get().and_then(|fadt| fadt.off) {
        for (port, value) in [Some(off.a), off.b].into_iter().flatten() {
            // SAFETY: the firmware names this port and value for switching the machine off.
            unsafe { Port::new(port).write(value) };
        }
    }
}

fn reboot() {
    const KEYBOARD_CONTROLLER: u16 = 0x64;
    const PULSE_RESET: u8 = 0xfe;
    // Where QEMU runs with the exit device, who runs it starts the machine again.
    exit(EXIT_REBOOT);
    if let Some((port, value)) = FADT.get().and_then(|fadt| fadt.reset) {
        // SAFETY: the firmware names this port and value for restarting the machine.
        unsafe { Port::new(port).write(value) };
    }
    // SAFETY: the keyboard controller restarts the machine, or there is none.
    unsafe { Port::new(KEYBOARD_CONTROLLER).write(PULSE_RESET) };
}

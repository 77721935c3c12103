//! Messages of the kernel: into its log, from where `dmesg` has them, and some of them on the serial line.

use crate::arch::machine::try_machine;
use crate::arch::memory::{BootMemory, OutOfMemory};
use crate::arch::percpu::PerCpu;
use crate::arch::serial;
use core::fmt::{self, Arguments, Write};
use core::sync::atomic::{AtomicBool, Ordering};
use kcore::base::addr::Nanos;
use kcore::base::cpu::{Cpu, CpuId};
use kcore::hardware::Hardware;
use kcore::log::Log;
use spin::Once;

/// What the lines of the kernel begin with, after the time.
const SOURCE: &[u8] = b"kernel";
/// Most bytes of log kept.
pub const BYTES_MAX: u64 = 64 << 10;
/// Bytes of log shown by a machine that is ending.
const TAIL_BYTES: usize = 1024;
/// And at most this part of the memory that is free when the log is made.
const PART: u64 = 256;

static LOG: Once<Log> = Once::new();
/// Whether the serial line shows everything, as the command line may ask.
static VERBOSE: AtomicBool = AtomicBool::new(false);

struct Serial;

impl Write for Serial {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        serial::send(text.as_bytes());
        Ok(())
    }
}

/// Makes the log. Lines printed before are on the serial line only.
///
/// # Errors
/// When there is no memory for it.
pub fn start(memory: &mut BootMemory, verbose: bool) -> Result<&'static Log, OutOfMemory> {
    VERBOSE.store(verbose, Ordering::Relaxed);
    let bytes = (memory.free_bytes() / PART).clamp(4096, BYTES_MAX);
    let bytes = memory.slice(bytes as usize, |_| 0)?;
    Ok(LOG.call_once(|| Log::new(bytes)))
}

/// For `dmesg`: the boot CPU says what it found.
pub fn detail(text: Arguments<'_>) {
    keep(text);
    if VERBOSE.load(Ordering::Relaxed) {
        show(text);
    }
}

/// For `dmesg`, and for who watches the machine start.
pub fn notice(text: Arguments<'_>) {
    keep(text);
    show(text);
}

/// A line of a machine that is ending: shown in any case, and kept if that needs no waiting.
pub fn last(text: Arguments<'_>) {
    show(text);
    if let Some(log) = LOG.get() {
        // Writing to the log never fails.
        let _ = writeln!(log.panic_writer(now(), SOURCE), "{text}");
    }
}

/// Shows the last lines of the log on the serial line, for a machine that is ending.
pub fn show_tail() {
    if let Some(log) = LOG.get() {
        serial::send(log.panic_tail(&mut [0; TAIL_BYTES]));
    }
}

/// For `dmesg` alone: the serial line is a program's by now, and slow.
pub fn keep(text: Arguments<'_>) {
    let Some(log) = LOG.get() else { return };
    // The token of the CPU that runs this: the lock of the log is the innermost, so that nothing else is held by it.
    let cpu = Cpu::new(PerCpu::try_current().map_or(CpuId(0), |cpu| cpu.id));
    // Writing to the log never fails.
    let _ = writeln!(log.writer(&cpu, now(), SOURCE), "{text}");
}

fn show(text: Arguments<'_>) {
    // Writing to a serial line does not fail.
    let _ = writeln!(Serial, "{text}");
}

/// Now; zero until the clock is known.
fn now() -> Nanos {
    try_machine().map_or(Nanos(0), Hardware::now)
}

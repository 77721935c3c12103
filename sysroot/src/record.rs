//! Calls that leave a record or bytes in the IPC buffer, or take them from there.

use ipc::abi::exit::ProcessStatus;
use ipc::abi::info::{CpuInfo, InfoKind, MemoryInfo};
use ipc::abi::inspect::{
    InterruptInfo, LineInfo, MappingInfo, PageInfo, ProcessInfo, StackInfo, StackKind, ThreadInfo,
    mapping_index, page_index, stack_index,
};
use ipc::abi::layout::{LOG_PART_MAX, NAME_MAX};
use ipc::abi::monitor::MonitorInfo;
use ipc::abi::profile::{EventSpec, ProfilerStatus, SampleCounters, SourceRequest};
use ipc::abi::trace::{TRACE_READ_MAX, TraceInfo, TraceRecord};
use ipc::abi::{Error, Handle};
use zerocopy::{FromBytes, IntoBytes};

use crate::{buffer, syscall};

/// State of a process; [`Handle::NONE`] is the caller.
///
/// # Errors
/// See the call `process_status`.
pub fn process_status(process: Handle) -> Result<ProcessStatus, Error> {
    syscall::process_status(process)?;
    Ok(buffer::record())
}

/// Where the machine's memory is.
///
/// # Errors
/// See the call `system_info`.
pub fn memory_info(system: Handle) -> Result<MemoryInfo, Error> {
    syscall::system_info(system, InfoKind::Memory as u64, 0)?;
    Ok(buffer::record())
}

/// One CPU since boot.
///
/// # Errors
/// `NotFound` if there is no such CPU.
pub fn cpu_info(system: Handle, cpu: u64) -> Result<CpuInfo, Error> {
    syscall::system_info(system, InfoKind::Cpu as u64, cpu)?;
    Ok(buffer::record())
}

/// What is in a slot of the processes' pool; `None` if nothing is.
///
/// # Errors
/// `NotFound` past the last slot.
pub fn process_info(system: Handle, slot: u64) -> Result<Option<ProcessInfo>, Error> {
    slot_info(system, InfoKind::Process, slot)
}

/// What is in a slot of the threads' pool; `None` if nothing is, or a thread that has ended.
///
/// # Errors
/// `NotFound` past the last slot.
pub fn thread_info(system: Handle, slot: u64) -> Result<Option<ThreadInfo>, Error> {
    slot_info(system, InfoKind::Thread, slot)
}

/// Mapping number `n` of the process in a slot, from 0 to `MAPPINGS_MAX` - 1; `None` if it has none of that number.
///
/// # Errors
/// `NotFound` past the last slot.
pub fn mapping_info(system: Handle, process: u64, n: u64) -> Result<Option<MappingInfo>, Error> {
    slot_info(system, InfoKind::Mapping, mapping_index(process, n))
}

/// Page number `page` of mapping number `n` of the process in a slot; `None` if there is no such page of RAM.
///
/// # Errors
/// `NotFound` past the last slot.
pub fn page_info(
    system: Handle,
    process: u64,
    n: u64,
    page: u32,
) -> Result<Option<PageInfo>, Error> {
    let index = page_index(mapping_index(process, n), page.into());
    slot_info(system, InfoKind::Page, index)
}

/// How deep a stack of a CPU was ever used.
///
/// # Errors
/// `NotFound` if there is no such CPU.
pub fn stack_info(system: Handle, cpu: u64, which: StackKind) -> Result<StackInfo, Error> {
    syscall::system_info(system, InfoKind::Stack as u64, stack_index(cpu, which))?;
    Ok(buffer::record())
}

/// What a CPU was interrupted by.
///
/// # Errors
/// `NotFound` if there is no such CPU.
pub fn interrupt_info(system: Handle, cpu: u64) -> Result<InterruptInfo, Error> {
    syscall::system_info(system, InfoKind::Interrupts as u64, cpu)?;
    Ok(buffer::record())
}

/// An interrupt line; `None` for one that nobody has and that was never signalled.
///
/// # Errors
/// `NotFound` past the last line.
pub fn line_info(system: Handle, line: u64) -> Result<Option<LineInfo>, Error> {
    slot_info(system, InfoKind::Line, line)
}

/// The trace as a whole.
///
/// # Errors
/// See the call `system_info`.
pub fn trace_info(system: Handle) -> Result<TraceInfo, Error> {
    syscall::system_info(system, InfoKind::Trace as u64, 0)?;
    Ok(buffer::record())
}

/// The record of a slot, if it is in use.
fn slot_info<T: FromBytes + IntoBytes>(
    system: Handle,
    kind: InfoKind,
    index: u64,
) -> Result<Option<T>, Error> {
    let len = syscall::system_info(system, kind as u64, index)?;
    Ok((len != 0).then(buffer::record))
}

/// Trace records of a CPU behind a position ([`TRACE_NEWEST`](ipc::abi::trace::TRACE_NEWEST): none, but the position to go on from): the
/// next position, how many were written to `out`, and how many were overwritten before they could be read.
///
/// # Errors
/// See the call `trace_read`.
pub fn trace_read(
    system: Handle,
    cpu: u64,
    position: u64,
    out: &mut [TraceRecord; TRACE_READ_MAX],
) -> Result<(u64, usize, u64), Error> {
    let (next, len, lost) = syscall::trace_read(system, cpu, position)?;
    let copied = copy_out(len, out.as_mut_bytes());
    Ok((next, copied / size_of::<TraceRecord>(), lost))
}

/// The boot command line or the version line: the bytes written to `out`.
///
/// # Errors
/// See the call `system_info`.
pub fn system_text(system: Handle, kind: InfoKind, out: &mut [u8]) -> Result<usize, Error> {
    let len = syscall::system_info(system, kind as u64, 0)?;
    Ok(copy_out(len, out))
}

/// Log bytes from a position: the position after them, how many were written to `out`, and how many were lost
/// before them. What does not fit `out` is not lost: the next position accounts for it.
///
/// # Errors
/// See the call `log_read`.
pub fn log_read(system: Handle, position: u64, out: &mut [u8]) -> Result<(u64, usize, u64), Error> {
    let (next, len, lost) = syscall::log_read(system, position)?;
    let copied = copy_out(len, out);
    Ok((next - len.saturating_sub(copied as u64), copied, lost))
}

/// Appends bytes to the kernel log.
///
/// # Errors
/// See the call `log_write`.
pub fn log_write(system: Handle, bytes: &[u8]) -> Result<(), Error> {
    for part in bytes.chunks(LOG_PART_MAX) {
        buffer::write(part);
        syscall::log_write(system, part.len() as u64)?;
    }
    Ok(())
}

/// Arms the profiling driver; returns the number of the source it uses.
///
/// # Errors
/// See the call `profiler_start`.
pub fn profiler_start(
    profiler: Handle,
    source: SourceRequest,
    specs: &[EventSpec],
) -> Result<u64, Error> {
    let bytes = specs.as_bytes();
    if bytes.len() > buffer::RECORD_MAX {
        return Err(Error::TooLarge);
    }
    buffer::write(bytes);
    syscall::profiler_start(profiler, source as u64, specs.len() as u64)
}

/// What the profiling driver is doing.
///
/// # Errors
/// See the call `profiler_status`.
pub fn profiler_status(profiler: Handle) -> Result<ProfilerStatus, Error> {
    syscall::profiler_status(profiler)?;
    Ok(buffer::record())
}

/// One CPU's counters, and the number of its last record.
///
/// # Errors
/// See the call `profiler_cpu`.
pub fn profiler_cpu(profiler: Handle, cpu: u64) -> Result<(u64, SampleCounters), Error> {
    let head = syscall::profiler_cpu(profiler, cpu)?;
    Ok((head, buffer::record()))
}

/// What one CPU's performance monitor claims, and what became of that.
///
/// # Errors
/// See the call `profiler_monitor`.
pub fn profiler_monitor(profiler: Handle, cpu: u64) -> Result<MonitorInfo, Error> {
    syscall::profiler_monitor(profiler, cpu)?;
    Ok(buffer::record())
}

/// Makes a process. Its name is cut at the longest there can be.
///
/// # Errors
/// See the call `process_create`.
pub(crate) fn process_create(
    system: Handle,
    name: &str,
    quota_pages: u64,
    image: u32,
    notification: Handle,
    bits: u64,
) -> Result<Handle, Error> {
    let mut padded = [0; NAME_MAX];
    for (slot, byte) in padded.iter_mut().zip(name.bytes()) {
        *slot = byte;
    }
    buffer::write(&padded);
    syscall::process_create(system, quota_pages, image.into(), notification, bits)
}

fn copy_out(len: u64, out: &mut [u8]) -> usize {
    let len = usize::try_from(len).unwrap_or(usize::MAX).min(out.len());
    let out = out.get_mut(..len).unwrap_or_default();
    buffer::read(out);
    out.len()
}

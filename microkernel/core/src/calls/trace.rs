//! Calls about the trace.

use super::{Caller, Stop};
use crate::hardware::Hardware;
use crate::kernel::Kernel;
use core::sync::atomic::Ordering::Relaxed;
use ipc::abi::trace::{TRACE_READ_MAX, TraceInfo, TraceRecord};
use ipc::abi::{Error, Handle, Rights};
use zerocopy::{FromZeros, IntoBytes};

impl<H: Hardware> Kernel<H> {
    pub(super) fn trace_control(
        &self,
        caller: &Caller<'_>,
        system: Handle,
        on: u64,
    ) -> Result<(), Stop> {
        self.system(caller, system, Rights::INSPECT)?;
        let on = match on {
            0 => false,
            1 => true,
            _ => return Err(Error::BadArgument.into()),
        };
        // Each CPU sees it in its own time; nothing depends on when.
        self.tracing.store(on, Relaxed);
        Ok(())
    }

    pub(super) fn trace_state(&self) -> TraceInfo {
        let on = self.tracing.load(Relaxed);
        TraceInfo { on: on.into() }
    }

    pub(super) fn trace_read(
        &self,
        caller: &Caller<'_>,
        system: Handle,
        cpu: u64,
        position: u64,
    ) -> Result<(u64, u64, u64), Stop> {
        self.system(caller, system, Rights::INSPECT)?;
        let there = self.cpu_at(cpu)?;
        let mut records = [TraceRecord::new_zeroed(); TRACE_READ_MAX];
        let reading = there.trace.read(position, &mut records);
        let bytes = records[..reading.copied].as_bytes();
        self.put(caller, bytes);
        Ok((reading.next, bytes.len() as u64, reading.lost))
    }
}

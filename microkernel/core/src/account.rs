//! Frames on a process's account. Each is charged before it is taken and until it is given back: as quotas are taken from what there is,
//! one that is charged is there, or on its way.

use crate::base::addr::Frame;
use crate::calls::Stop;
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::mem::supply::Supply;
use ipc::abi::Error;

/// Takes frames on a process's account.
pub(crate) struct Account<'a, H: Hardware + 'static> {
    kernel: &'a Kernel<H>,
    cpu: &'a CpuState,
    slot: u32,
    /// What was not to be had last is on its way.
    comes: bool,
}

impl<'a, H: Hardware> Account<'a, H> {
    pub(crate) const fn new(kernel: &'a Kernel<H>, cpu: &'a CpuState, slot: u32) -> Self {
        Self {
            kernel,
            cpu,
            slot,
            comes: false,
        }
    }

    /// What a call answers after this error of something that took from here: if a frame is on its way, it is made again.
    pub(crate) fn stop(&self, error: Error) -> Stop {
        match error {
            Error::QuotaExceeded | Error::OutOfMemory if self.comes => Stop::Restart,
            error => error.into(),
        }
    }

    /// A zeroed frame.
    pub(crate) fn take_page(&mut self) -> Result<Frame, Error> {
        let frame = self.take()?;
        self.kernel.hw.zero(frame);
        Ok(frame)
    }

    /// Gives back a page that may have been mapped.
    pub(crate) fn give_page(&mut self, frame: Frame) {
        self.give(frame);
    }

    /// Gives back a page that nobody has seen.
    pub(crate) fn put_back(&mut self, frame: Frame) {
        self.kernel.frames.free(&self.cpu.token, frame);
        self.kernel.process(self.slot).uncharge(1);
    }
}

impl<H: Hardware> Supply for Account<'_, H> {
    fn take(&mut self) -> Result<Frame, Error> {
        let process = self.kernel.process(self.slot);
        self.kernel.charge(process, 1).map_err(|stop| {
            self.comes = stop == Stop::Restart;
            Error::QuotaExceeded
        })?;
        self.kernel.take_frame(self.cpu).ok_or_else(|| {
            process.uncharge(1);
            self.comes = true;
            Error::OutOfMemory
        })
    }
    fn give(&mut self, frame: Frame) {
        self.kernel
            .frames
            .retire(&self.cpu.token, frame, self.kernel.grace.retire_epoch());
        self.kernel.process(self.slot).uncharge(1);
    }
}

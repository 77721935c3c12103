//! Taking what may have run out. Much of what is freed is not free at once: frames and slots wait for a grace period, objects for
//! the work that takes them apart. A call that finds nothing is made again while something is on its way back, so that "none
//! is left" is true when a program hears it. It is decided where nothing was found, before the call gives back
//! what it had: else two callers without enough could wait for each other's leavings for ever.

use crate::base::addr::Frame;
use crate::base::pool::{Pool, Ref};
use crate::calls::Stop;
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::mem::grace::Epoch;
use crate::object::Process;
use crate::object::process::Counted;
use core::sync::atomic::Ordering::Relaxed;
use ipc::abi::Error;

/// Frames that are made free at once for who found none.
const RECLAIM: u32 = 64;

impl<H: Hardware> Kernel<H> {
    /// A slot of a pool.
    ///
    /// # Errors
    /// `OutOfMemory`; `Restart` while there is work, which may free one.
    pub(crate) fn take_slot<T>(
        &self,
        cpu: &CpuState,
        pool: &Pool<T>,
    ) -> Result<(Ref<T>, &'static T), Stop> {
        // Looked at first: what is done in between has been freed.
        let busy = self.work.is_busy();
        pool.take(&cpu.token).ok_or(if busy {
            Stop::Restart
        } else {
            Error::OutOfMemory.into()
        })
    }

    /// A frame that is charged to somebody. `None` while it is only on its way: the call is made again.
    ///
    /// The machine has it, since quotas are taken from the frames that there are, and a frame is charged from before it is taken until
    /// it is free or waits.
    pub(crate) fn take_frame(&self, cpu: &CpuState) -> Option<Frame> {
        if let Some(frame) = self.frames.allocate(&cpu.token) {
            return Some(frame);
        }
        self.frames.reclaim(&cpu.token, &self.grace, RECLAIM);
        let usage = self.frames.usage(&cpu.token);
        debug_assert!(
            usage.free + usage.waiting > 0,
            "more frames are charged than there are"
        );
        self.hurry(cpu, self.grace.retire_epoch());
        None
    }

    /// Whether all frames that were retired until this epoch are free again. If not, it is made to be so soon.
    pub(crate) fn frames_are_back(&self, cpu: &CpuState, epoch: Epoch) -> bool {
        self.frames.reclaim(&cpu.token, &self.grace, RECLAIM);
        let back = self.frames.reclaimed(&cpu.token, epoch);
        if !back {
            self.hurry(cpu, epoch);
        }
        back
    }

    /// Charges pages to a process.
    ///
    /// # Errors
    /// `QuotaExceeded`; `Restart` while an object on its account is being freed.
    pub(crate) fn charge(&self, process: &Process, pages: u64) -> Result<(), Stop> {
        let freeing = process.is_freeing();
        if process.charge(pages) {
            return Ok(());
        }
        Err(if freeing {
            Stop::Restart
        } else {
            Error::QuotaExceeded.into()
        })
    }

    /// Counts an object to a process, which stays until the object is gone. A process may hold an eighth of each pool.
    ///
    /// # Errors
    /// `LimitReached`; `Restart` while an object on its account is being freed.
    pub(crate) fn count(&self, process: &Process, kind: Counted) -> Result<(), Stop> {
        let freeing = process.is_freeing();
        if process.count(kind, self.limit(kind)) {
            process.refs.fetch_add(1, Relaxed);
            return Ok(());
        }
        Err(if freeing {
            Stop::Restart
        } else {
            Error::LimitReached.into()
        })
    }

    /// Objects of a kind that a process may hold.
    pub(crate) const fn limit(&self, kind: Counted) -> u32 {
        let slots = match kind {
            Counted::Threads => self.pools.threads.len(),
            Counted::Endpoints => self.pools.endpoints.len(),
            Counted::Notifications => self.pools.notifications.len(),
            Counted::Memory => self.pools.memory.len(),
            Counted::Chunks => self.pools.chunks.len(),
            Counted::Badges => self.pools.badges.len(),
        };
        slots / 8
    }
}

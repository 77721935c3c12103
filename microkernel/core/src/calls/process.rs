//! Calls about processes.

use super::{Caller, Stop};
use crate::base::addr::PhysAddr;
use crate::handles::Grant;
use crate::hardware::Hardware;
use crate::kernel::Kernel;
use crate::object::process::Teardown;
use crate::object::thread::{State, ThreadId};
use crate::object::{Object, Process};
use core::sync::atomic::Ordering::Relaxed;
use ipc::abi::exit::{ExitReason, ProcessStatus};
use ipc::abi::info::ThreadState;
use ipc::abi::{Error, Handle, Rights};
use zerocopy::IntoBytes;

impl<H: Hardware> Kernel<H> {
    pub(super) fn process_create(
        &self,
        caller: &Caller<'_>,
        system: Handle,
        quota_pages: u64,
        image: u64,
        notification: Handle,
        bits: u64,
    ) -> Result<(Handle,), Stop> {
        self.system(caller, system, Rights::SPAWN)?;
        let image = u32::try_from(image).map_err(|_| Error::BadArgument)?;
        let watcher = self.hold(
            caller,
            notification,
            Object::as_notification,
            Rights::SIGNAL,
        )?;
        let notified = watcher.object;
        self.make_room(caller.cpu, caller.process, 1)?;
        let buffer = caller.thread.buffer();
        let name = [self.hw.read(buffer), self.hw.read(PhysAddr(buffer.0 + 8))];
        let reference =
            self.create_process(caller.cpu, Some(caller.slot), quota_pages, image, name)?;
        let process = self.process(reference.index());
        let watched = Grant::keeping(Object::Notification(notified));
        self.retain(caller.cpu, &watched);
        self.watch(caller.cpu, process, (notified, bits));
        let rights = Rights::MANAGE | Rights::INSPECT | Rights::DUPLICATE | Rights::TRANSFER;
        let grant = Grant {
            object: Object::Process(reference),
            rights,
        };
        self.retain(caller.cpu, &grant);
        match self.insert(caller.cpu, caller.process, grant) {
            Ok(handle) => Ok((handle,)),
            Err(error) => {
                // Nobody has heard of it, and nobody hears of its end.
                let watcher = process.life.lock(&caller.cpu.token).watcher.take();
                if watcher.is_some() {
                    self.release(caller.cpu, &watched);
                }
                self.release(caller.cpu, &grant);
                Err(error.into())
            }
        }
    }

    pub(super) fn process_exit(&self, caller: &Caller<'_>, code: u64) -> Result<(), Stop> {
        self.begin_death(caller.cpu, caller.slot, ExitReason::Exited, code, None);
        // The thread ends at this entry's exit.
        Err(Stop::Delivered)
    }

    pub(super) fn process_kill(
        &self,
        caller: &Caller<'_>,
        process: Handle,
        code: u64,
    ) -> Result<(), Stop> {
        let hold = self.hold(caller, process, Object::as_process, Rights::MANAGE)?;
        self.begin_death(
            caller.cpu,
            hold.object.index(),
            ExitReason::Killed,
            code,
            None,
        );
        Ok(())
    }

    pub(super) fn process_status(&self, caller: &Caller<'_>, process: Handle) -> Result<(), Stop> {
        let (slot, _hold) = self.target(caller, process, Rights::INSPECT)?;
        let status = self.status_of(caller, self.process(slot))?;
        self.put(caller, status.as_bytes());
        Ok(())
    }

    /// Looks at each thread, of which a process has no more than an eighth of the pool.
    fn status_of(&self, caller: &Caller<'_>, process: &Process) -> Result<ProcessStatus, Stop> {
        let life = process.life.lock(&caller.cpu.token);
        let mut ticks = process.cpu_ticks.load(Relaxed);
        let (mut state, mut cpu) = (
            if process.is_dead() {
                ThreadState::Dead
            } else {
                ThreadState::Held
            },
            u64::MAX,
        );
        let mut at = ThreadId::from_word(life.threads);
        while let Some(id) = at {
            let thread = self.thread(id);
            ticks += self.thread_time(id, thread)?.0;
            match thread.status().state() {
                State::Running => {
                    state = ThreadState::Running;
                    cpu = thread.last_cpu.load(Relaxed).into();
                }
                other if !matches!(state, ThreadState::Running | ThreadState::Ready) => {
                    state = other.public();
                }
                _ => {}
            }
            at = ThreadId::from_word(thread.sibling.load(Relaxed));
        }
        Ok(ProcessStatus {
            pid: process.pid.load(Relaxed).into(),
            reason: life.reason as u64,
            code: life.code,
            reclaimed: u64::from(matches!(life.teardown, Teardown::Done)),
            threads: life.live.into(),
            cpu_ns: self.hw.tsc_to_nanos(ticks),
            pages: process.pages.load(Relaxed),
            quota_pages: process.quota.load(Relaxed),
            state: state as u64,
            cpu,
            crash: life.crash,
        })
    }
}

//! Calls about threads and time.

use super::{Caller, Keeps, Stop};
use crate::base::cpu::CpuId;
use crate::base::regs::Reg;
use crate::handles::Grant;
use crate::hardware::Hardware;
use crate::kernel::Kernel;
use crate::life::create::Start;
use crate::object::Object;
use crate::object::thread::{ANY_CPU, PRIORITIES, State, Thread, ThreadId};
use core::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst, fence};
use ipc::abi::layout::USER_END;
use ipc::abi::trace::TraceKind;
use ipc::abi::{Error, Handle, NEVER, Rights};

impl<H: Hardware> Kernel<H> {
    #[expect(clippy::too_many_arguments, reason = "the system call has them")]
    pub(super) fn thread_create(
        &self,
        caller: &Caller<'_>,
        process: Handle,
        entry: u64,
        stack: u64,
        argument: u64,
        base: u64,
        buffer: Handle,
    ) -> Result<(Handle,), Stop> {
        let (slot, _target) = self.target(caller, process, Rights::MANAGE)?;
        if entry >= USER_END || stack > USER_END || base >= USER_END {
            return Err(Error::BadAddress.into());
        }
        let hold = self.hold(
            caller,
            buffer,
            Object::as_memory,
            Rights::READ | Rights::WRITE,
        )?;
        let memory = hold.object;
        let frame = self.page_of(caller.cpu, memory, 0)?;
        if !self.hw.is_ram(frame) {
            return Err(Error::BadArgument.into());
        }
        self.make_room(caller.cpu, caller.process, 1)?;
        let priority = caller.thread.base_priority.load(Relaxed);
        self.memory(memory).refs.fetch_add(1, Relaxed);
        let start = Start {
            entry,
            stack,
            argument,
            base,
        };
        let reference = self
            .create_thread(caller.cpu, slot, start, priority, (memory, frame.start().0))
            .inspect_err(|_| self.release_memory(caller.cpu, memory))?;
        let rights = Rights::MANAGE | Rights::INSPECT | Rights::DUPLICATE | Rights::TRANSFER;
        let grant = Grant {
            object: Object::Thread(reference),
            rights,
        };
        match self.insert(caller.cpu, caller.process, grant) {
            Ok(handle) => Ok((handle,)),
            Err(error) => {
                let id = ThreadId(reference.index());
                if self.thread(id).claim_held() {
                    self.unmake_thread(caller.cpu, id);
                }
                self.release(caller.cpu, &grant);
                Err(error.into())
            }
        }
    }

    /// The thread that a handle names, or the caller for no handle.
    fn subject<'a>(
        &'a self,
        caller: &Caller<'a>,
        handle: Handle,
        rights: Rights,
    ) -> Result<(ThreadId, &'static Thread, Keeps<'a, H, Thread>), Error> {
        if handle == Handle::NONE {
            return Ok((caller.id, caller.thread, None));
        }
        let hold = self.hold(caller, handle, Object::as_thread, rights)?;
        let id = ThreadId(hold.object.index());
        Ok((id, self.thread(id), Some(hold)))
    }

    pub(super) fn thread_start(&self, caller: &Caller<'_>, handle: Handle) -> Result<(), Stop> {
        let (id, thread, _hold) = self.subject(caller, handle, Rights::MANAGE)?;
        if !thread.claim_held() {
            return Err(Error::WrongState.into());
        }
        if self.is_tracing() {
            let regs = &thread.regs;
            self.record(
                caller.cpu,
                self.event(TraceKind::ThreadStart, id)
                    .words(regs.get(Reg::Rip), regs.get(Reg::Rsp)),
            );
        }
        self.make_ready(caller.cpu, id);
        Ok(())
    }

    pub(super) fn thread_set(
        &self,
        caller: &Caller<'_>,
        handle: Handle,
        priority: u64,
        cpu: u64,
    ) -> Result<(), Stop> {
        let (id, thread, _hold) = self.subject(caller, handle, Rights::MANAGE)?;
        if priority >= PRIORITIES as u64
            || priority > caller.thread.base_priority.load(Relaxed).into()
        {
            return Err(Error::BadArgument.into());
        }
        let pinned = match cpu {
            u64::MAX => ANY_CPU,
            cpu if cpu < self.cpus.len() as u64 => cpu as u8,
            _ => return Err(Error::BadArgument.into()),
        };
        thread.base_priority.store(priority as u8, Relaxed);
        thread.pinned.store(pinned, Relaxed);
        self.set_priority(caller.cpu, thread);
        // The partner of the fences in `enqueue` and `switch_to`.
        fence(SeqCst);
        if id == caller.id {
            self.reconsider(caller.cpu);
        } else if self.unqueue(caller.cpu, id) {
            self.make_ready(caller.cpu, id);
        } else if thread.status().state() == State::Running {
            // Its CPU looks again.
            let there = thread.last_cpu.load(Relaxed);
            self.hw.kick(CpuId(there));
        }
        Ok(())
    }

    pub(super) fn thread_exit(&self, caller: &Caller<'_>) -> Result<(), Stop> {
        self.set_current(caller.cpu, ThreadId::NONE);
        caller.cpu.priority.store(0, Relaxed);
        caller.thread.publish(State::Claimed);
        self.end_thread(caller.cpu, caller.id);
        Err(Stop::Blocked)
    }

    pub(super) fn thread_info(
        &self,
        caller: &Caller<'_>,
        handle: Handle,
    ) -> Result<(u64, u64, u64), Stop> {
        let (id, thread, _hold) = self.subject(caller, handle, Rights::INSPECT)?;
        let (ticks, _) = self.thread_time(id, thread)?;
        let nanos = self.hw.tsc_to_nanos(ticks);
        Ok((
            thread.tid().into(),
            thread.status().state().public() as u64,
            nanos,
        ))
    }

    pub(super) fn sleep(&self, caller: &Caller<'_>, deadline: u64) -> Result<(), Stop> {
        if self.is_past(deadline) {
            return Ok(());
        }
        if deadline == NEVER {
            return Err(Error::BadArgument.into());
        }
        caller.thread.blocked_on.store(0, Relaxed);
        self.block(caller.cpu, caller.id, State::Sleeping, deadline);
        Err(Stop::Blocked)
    }

    pub(super) fn yield_now(&self, caller: &Caller<'_>) -> Result<(), Stop> {
        caller.cpu.slice_over.store(true, Relaxed);
        caller.cpu.resched.store(true, Relaxed);
        Ok(())
    }
}

//! Calls about the profiling driver.

use super::{Caller, Stop};
use crate::base::pool::Ref;
use crate::handles::Grant;
use crate::hardware::Hardware;
use crate::kernel::Kernel;
use crate::object::memory::Backing;
use crate::object::{Memory, Object};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, SeqCst};
use ipc::abi::layout::PAGE_SIZE;
use ipc::abi::profile::{EventSpec, SourceRequest};
use ipc::abi::{Error, Handle, Rights};
use zerocopy::{FromZeros, IntoBytes};

/// Event specifications that are looked at; the driver says which it can take.
const SPECS_MAX: usize = 4;

impl<H: Hardware> Kernel<H> {
    fn profiler_handle(&self, caller: &Caller<'_>, handle: Handle) -> Result<(), Error> {
        let grant = self.lookup(caller, handle)?;
        let is_profiler = |object| (object == Object::Profiler).then_some(());
        grant.named(is_profiler, Rights::MANAGE)
    }

    pub(super) fn profiler_start(
        &self,
        caller: &Caller<'_>,
        profiler: Handle,
        source: u64,
        count: u64,
    ) -> Result<(u64,), Stop> {
        self.profiler_handle(caller, profiler)?;
        let request = SourceRequest::from_raw(source).ok_or(Error::BadArgument)?;
        let mut specs = [EventSpec::new_zeroed(); SPECS_MAX];
        let count = usize::try_from(count).map_err(|_| Error::BadArgument)?;
        let specs = specs.get_mut(..count).ok_or(Error::Unsupported)?;
        self.hw
            .read_bytes(caller.thread.buffer(), specs.as_mut_bytes());
        let process = caller.process;
        let (cpu, pid) = (&caller.cpu.token, process.pid.load(Relaxed));
        let source = self.profiler.start(cpu, pid, request, specs)?;
        // Who ends it from another CPU marks it first and then looks for its profile, under the driver's lock: either there is one by
        // then, or the mark is seen here.
        if process.dead.load(SeqCst) {
            self.profiler.process_ended(cpu, pid, self.hw.tsc());
        }
        Ok((source as u64,))
    }

    pub(super) fn profiler_stop(&self, caller: &Caller<'_>, profiler: Handle) -> Result<(), Stop> {
        self.profiler_handle(caller, profiler)?;
        self.profiler.stop(&caller.cpu.token, self.hw.tsc())?;
        Ok(())
    }

    pub(super) fn profiler_status(
        &self,
        caller: &Caller<'_>,
        profiler: Handle,
    ) -> Result<(), Stop> {
        self.profiler_handle(caller, profiler)?;
        self.put(caller, self.profiler.status(&caller.cpu.token).as_bytes());
        Ok(())
    }

    pub(super) fn profiler_cpu(
        &self,
        caller: &Caller<'_>,
        profiler: Handle,
        cpu: u64,
    ) -> Result<(u64,), Stop> {
        self.profiler_handle(caller, profiler)?;
        let index = usize::try_from(cpu).map_err(|_| Error::NotFound)?;
        let (head, counters) = self.profiler.cpu(index).ok_or(Error::NotFound)?;
        self.put(caller, counters.as_bytes());
        Ok((head,))
    }

    pub(super) fn profiler_monitor(
        &self,
        caller: &Caller<'_>,
        profiler: Handle,
        cpu: u64,
    ) -> Result<(), Stop> {
        self.profiler_handle(caller, profiler)?;
        let index = usize::try_from(cpu).map_err(|_| Error::NotFound)?;
        let info = self.profiler.monitor(index).ok_or(Error::NotFound)?;
        self.put(caller, info.as_bytes());
        Ok(())
    }

    pub(super) fn profiler_rings(
        &self,
        caller: &Caller<'_>,
        profiler: Handle,
    ) -> Result<(Handle, u64), Stop> {
        self.profiler_handle(caller, profiler)?;
        self.make_room(caller.cpu, caller.process, 1)?;
        let rings = self.rings(caller)?;
        let grant = Grant {
            object: Object::Memory(rings),
            rights: Rights::READ,
        };
        self.retain(caller.cpu, &grant);
        let handle = self
            .insert(caller.cpu, caller.process, grant)
            .inspect_err(|_| self.release(caller.cpu, &grant))?;
        Ok((handle, self.facts.ring_bytes))
    }

    /// The memory object of all rings. It is made once and never freed; so it is on the account of the first program, which never
    /// ends, and not of a profiler that may be restarted.
    fn rings(&self, caller: &Caller<'_>) -> Result<Ref<Memory>, Stop> {
        if let Some(rings) = Ref::unpack(self.rings_object.load(Acquire)) {
            return Ok(rings);
        }
        let pages = self.facts.ring_bytes / PAGE_SIZE * self.cpus.len() as u64;
        // No longer than there are processes: a parent is older than its children.
        let parent = |&slot: &u32| {
            let parent = self.process(slot).parent.load(Relaxed);
            (parent != u32::MAX).then_some(parent)
        };
        let line = core::iter::successors(Some(caller.slot), parent);
        let payer = line.last().unwrap_or(caller.slot);
        let made = self.new_memory(
            caller.cpu,
            payer,
            Backing::Borrowed(self.facts.rings, None),
            pages,
        )?;
        match self
            .rings_object
            .compare_exchange(0, made.pack(), AcqRel, Acquire)
        {
            Ok(_) => Ok(made),
            Err(other) => {
                self.release_memory(caller.cpu, made);
                Ref::unpack(other).ok_or(Error::WrongState.into())
            }
        }
    }

    pub(super) fn profiler_notify(
        &self,
        caller: &Caller<'_>,
        profiler: Handle,
        notification: Handle,
        bits: u64,
    ) -> Result<(), Stop> {
        self.profiler_handle(caller, profiler)?;
        let hold = self.hold(
            caller,
            notification,
            Object::as_notification,
            Rights::SIGNAL,
        )?;
        let reference = hold.object;
        self.retain(caller.cpu, &Grant::keeping(Object::Notification(reference)));
        let before = self
            .profiler_watcher
            .lock(&caller.cpu.token)
            .replace((reference, bits));
        if let Some((before, _)) = before {
            self.release(caller.cpu, &Grant::keeping(Object::Notification(before)));
        }
        Ok(())
    }
}

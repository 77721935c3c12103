//! The protocols `init` and `pci`, served from the supervisor's state.

use alloc::vec::Vec;

use ipc::abi::info::ThreadState;
use ipc::proto::init::{
    Event, ExitReport, InitError, Kill, Name, Next, NextEvent, NextProgram, ProcessInfo,
    ReadCommandLine, Release, Service, Spawn, SpawnProgram, Subscribe, Wait,
};
use ipc::proto::pci::{self, PciError};
use ipc::proto::system::INIT;
use ipc::proto::{Call, Responder, Served};

use crate::machine::Machine;
use crate::running::Running;
use crate::supervisor::{SUBSCRIBERS_MAX, Supervisor, WAITERS_MAX, kernel_refusal};

impl<M: Machine, P: Responder<Handle = M::Handle>> Supervisor<'_, M, P> {
    fn find(&mut self, pid: u32) -> Result<&mut Running<M, P>, InitError> {
        let ended = self.ended.iter().any(|report| report.pid == pid);
        let running = self.running.iter_mut().find(|running| running.pid == pid);
        running.ok_or(if ended {
            InitError::Ended
        } else {
            InitError::NoSuchProcess
        })
    }

    fn start_held(&mut self, pid: u32) -> Result<(), InitError> {
        let held = self.find(pid)?.held.take().ok_or(InitError::NotHeld)?;
        let started = self.machine.start(&held).map_err(kernel_refusal);
        if started.is_err() {
            self.find(pid)?.held = Some(held);
        }
        started
    }

    fn end(&mut self, pid: u32) -> Result<(), InitError> {
        self.find(pid)?;
        let named = self.running.iter().filter(|running| running.pid == pid);
        for running in named {
            self.machine
                .kill(&running.process)
                .map_err(kernel_refusal)?;
        }
        Ok(())
    }

    fn info(&mut self, pid: u32) -> Option<ProcessInfo> {
        let known = self.running.iter().find(|running| running.pid == pid);
        let (name, status) = match known {
            Some(running) => (running.name.clone(), self.machine.status(&running.process)),
            None => (Name::cut(INIT), self.machine.own_status()),
        };
        let mut status = status.ok()?;
        if pid == self.own {
            // The quotas of the others are charged to init; what they make of them is shown with them.
            let given = self.running.iter().map(|running| running.quota_pages);
            status.pages = status.pages.saturating_sub(given.sum());
        }
        Some(ProcessInfo {
            pid,
            name,
            state: u8::try_from(status.state).unwrap_or(ThreadState::Dead as u8),
            cpu: u32::try_from(status.cpu).ok(),
            threads: status.threads as u32,
            cpu_ns: status.cpu_ns,
            pages: status.pages as u32,
            quota_pages: status.quota_pages as u32,
        })
    }
}

impl<M: Machine, P: Responder<Handle = M::Handle>> Service<P> for Supervisor<'_, M, P> {
    fn spawn(
        &mut self,
        call: Call<'_, P, SpawnProgram>,
        request: Spawn,
        stdout: Option<P::Handle>,
    ) -> Served<SpawnProgram, P::Handle> {
        let args: Vec<&str> = request.args.iter().collect();
        let pid = self.launch(&request.program, &args, stdout, call.badge())?;
        if !request.held
            && let Err(error) = self.start_held(pid)
        {
            // Nobody would ever release it.
            let _ = self.end(pid);
            return Err(error);
        }
        Ok(call.reply(pid))
    }

    fn release(&mut self, call: Call<'_, P, Release>, pid: u32) -> Served<Release, P::Handle> {
        self.start_held(pid)?;
        Ok(call.reply(()))
    }

    fn wait(&mut self, call: Call<'_, P, Wait>, pid: u32) -> Served<Wait, P::Handle> {
        if let Some(report) = self.ended.iter().find(|report| report.pid == pid) {
            let report: ExitReport = report.clone();
            return Ok(call.reply(report));
        }
        let waiters = |running: &Running<M, P>| running.waiters.len();
        if self.running.iter().map(waiters).sum::<usize>() >= WAITERS_MAX {
            return Err(InitError::TooManyWait);
        }
        let running = self.find(pid)?;
        let (parked, outcome) = call.park().map_err(|_| InitError::TooManyWait)?;
        running.waiters.push(parked);
        Ok(outcome)
    }

    fn kill(&mut self, call: Call<'_, P, Kill>, pid: u32) -> Served<Kill, P::Handle> {
        if pid == self.own {
            return Err(InitError::Refused);
        }
        self.end(pid)?;
        Ok(call.reply(()))
    }

    fn next(&mut self, call: Call<'_, P, Next>, from: u32) -> Served<Next, P::Handle> {
        let others = self.running.iter().map(|running| running.pid);
        let pids = core::iter::once(self.own).chain(others);
        let next = pids.filter(|&pid| pid >= from).min();
        let info = next.and_then(|pid| self.info(pid));
        Ok(call.reply(info))
    }

    fn subscribe(
        &mut self,
        call: Call<'_, P, Subscribe>,
        (): (),
        [notification]: [P::Handle; 1],
    ) -> Served<Subscribe, P::Handle> {
        let badge = call.badge();
        self.closed(badge);
        if self.subscribers.len() == SUBSCRIBERS_MAX {
            return Err(InitError::TooManyWait);
        }
        self.subscribers.push((badge, notification));
        Ok(call.reply(()))
    }

    fn next_event(
        &mut self,
        call: Call<'_, P, NextEvent>,
        position: u64,
    ) -> Served<NextEvent, P::Handle> {
        let event: Option<Event> = self.events.at(position).cloned();
        Ok(call.reply(event))
    }

    fn next_program(
        &mut self,
        call: Call<'_, P, NextProgram>,
        after: Name,
    ) -> Served<NextProgram, P::Handle> {
        Ok(call.reply(self.program_after(&after)))
    }

    fn command_line(
        &mut self,
        call: Call<'_, P, ReadCommandLine>,
        (): (),
    ) -> Served<ReadCommandLine, P::Handle> {
        let line = self.machine.command_line().map_err(kernel_refusal)?;
        Ok(call.reply(line))
    }
}

impl<M: Machine, P: Responder<Handle = M::Handle>> pci::Service<P> for Supervisor<'_, M, P> {
    fn read(&mut self, call: Call<'_, P, pci::Read>, offset: u8) -> Served<pci::Read, P::Handle> {
        let device = self.devices.with_badge(call.badge());
        let function = &device.ok_or(PciError::Gone)?.function;
        let value = function.read(&mut self.machine, offset)?;
        Ok(call.reply(value))
    }

    fn write(
        &mut self,
        call: Call<'_, P, pci::Write>,
        (offset, value): (u8, u32),
    ) -> Served<pci::Write, P::Handle> {
        let device = self.devices.with_badge(call.badge());
        let function = &device.ok_or(PciError::Gone)?.function;
        function.write(&mut self.machine, offset, value)?;
        Ok(call.reply(()))
    }
}

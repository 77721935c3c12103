//! The system as commands see it, over the handles of this program.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::inspect::{Inspect, TracePart};
use crate::pieces;
use crate::protocol::PROGRAMS;
use crate::system::{InitResult, LogPart, Network, System};
use ipc::abi::info::{CpuInfo, InfoKind, MemoryInfo};
use ipc::abi::inspect::{
    InterruptInfo, LineInfo, MappingInfo, PageInfo, ProcessInfo as Slot, StackInfo, StackKind,
    ThreadInfo,
};
use ipc::abi::layout::LOG_PART_MAX;
use ipc::abi::trace::{TRACE_READ_MAX, TraceRecord};
use ipc::abi::{Error, NEVER, PowerAction, Rights};
use ipc::proto::init::{self, Args, ExitReport, Name, ProcessInfo, Spawn};
use ipc::proto::net::{self, NetError, Ping, Pong, SocketInfo};
use ipc::proto::profd::{self, Refusal, Request, Spot, Start};
use ipc::proto::remote::{self, Status};
use ipc::proto::{CallError, ProtocolError, stream};
use sysroot::{
    Connection, Mapping, OwnedHandle, clock, handle, mapping, record, startup, syscall, time,
};
use zerocopy::FromZeros;

use super::wiring::{Whose, Wiring};

/// Longest version line.
const VERSION_MAX: usize = 256;
/// What profd gets to name a place, in nanoseconds: a report of a crash must not hang because profd does.
const LOCATE_TIMEOUT: u64 = 500 * time::MILLISECOND;
/// What profd gets to say what the processors are, in nanoseconds: for the first time it takes a turn of each of them.
const PROCESSORS_TIMEOUT: u64 = 10_000 * time::MILLISECOND;
/// What the net server gets for an answer, in nanoseconds.
const NET_TIMEOUT: u64 = 1000 * time::MILLISECOND;
/// What output gets to leave the machine, in nanoseconds, before the power goes or somebody goes on without it.
pub const FLUSH_TIMEOUT: u64 = 1000 * time::MILLISECOND;

/// Profiles that this program's sessions have asked for.
static PROFILES: AtomicU64 = AtomicU64::new(0);

/// The system, for one session.
pub struct Machine {
    wiring: Wiring,
    /// When calls to init fail, in nanoseconds since boot.
    deadline: u64,
    profd: profd::Client<Connection>,
    /// Badge of the next program's output.
    next_badge: u64,
}

impl Machine {
    /// The system behind these handles.
    pub const fn new(wiring: Wiring) -> Self {
        Self {
            wiring,
            deadline: NEVER,
            profd: profd::Client::new(Connection::new(wiring.profd)),
            next_badge: PROGRAMS,
        }
    }

    /// The same for one who must not wait: calls to init fail at this time.
    pub fn until(wiring: Wiring, deadline: u64) -> Self {
        Self {
            deadline,
            ..Self::new(wiring)
        }
    }

    fn init(&self) -> init::Client<Connection> {
        self.init_until(self.deadline)
    }

    fn init_until(&self, deadline: u64) -> init::Client<Connection> {
        let connection = Connection::new(self.wiring.init);
        init::Client::new(match deadline {
            NEVER => connection,
            deadline => connection.timeout(deadline.saturating_sub(time::now())),
        })
    }

    /// Ends the machine, or begins it anew. Returns only if that is refused.
    fn power(&mut self, action: PowerAction) -> Error {
        // Whatever comes of it: the machine is to go off, also if nobody reads its last words.
        let stream = Connection::new(self.wiring.stream).timeout(FLUSH_TIMEOUT);
        if let Whose::Remote(_) = self.wiring.whose {
            // Who asks from elsewhere would hear of it by silence alone.
            let _ = remote::Client::new(stream).finish(&Status::Success);
        }
        let _ = stream::Client::new(stream).flush(&());
        match syscall::system_power(self.wiring.system, action as u64) {
            Err(error) => error,
            // It does not return then.
            Ok(()) => Error::Unsupported,
        }
    }
}

/// The net server, which gets so many milliseconds for a call, beside those that it needs itself.
fn net_client(ms: u32) -> Result<net::Client<Connection>, CallError<NetError>> {
    let connection = Connection::named("net").ok_or(CallError::Transport(Error::NotFound))?;
    let timeout = NET_TIMEOUT + u64::from(ms) * time::MILLISECOND;
    Ok(net::Client::new(connection.timeout(timeout)))
}

/// Shows the text that a memory object of profd's holds.
fn show_text(
    memory: &OwnedHandle,
    start: u32,
    len: u32,
    show: &mut dyn FnMut(&str),
) -> Result<(), CallError<Refusal>> {
    let mapping = Mapping::whole(memory.raw()).map_err(CallError::Transport)?;
    let (start, len) = (start as usize, len as usize);
    if start.saturating_add(len) > mapping.len() {
        return Err(CallError::Protocol(ProtocolError::BadReply));
    }
    pieces::show(len, |offset, out| mapping.read(start + offset, out), show);
    Ok(())
}

impl Inspect for Machine {
    fn process_slot(&mut self, slot: u64) -> Result<Option<Slot>, Error> {
        record::process_info(self.wiring.system, slot)
    }

    fn thread_slot(&mut self, slot: u64) -> Result<Option<ThreadInfo>, Error> {
        record::thread_info(self.wiring.system, slot)
    }

    fn mapping(&mut self, process: u64, n: u64) -> Result<Option<MappingInfo>, Error> {
        record::mapping_info(self.wiring.system, process, n)
    }

    fn page(&mut self, process: u64, n: u64, page: u32) -> Result<Option<PageInfo>, Error> {
        record::page_info(self.wiring.system, process, n, page)
    }

    fn stack(&mut self, cpu: u64, which: StackKind) -> Result<StackInfo, Error> {
        record::stack_info(self.wiring.system, cpu, which)
    }

    fn interrupts(&mut self, cpu: u64) -> Result<InterruptInfo, Error> {
        record::interrupt_info(self.wiring.system, cpu)
    }

    fn line(&mut self, line: u64) -> Result<Option<LineInfo>, Error> {
        record::line_info(self.wiring.system, line)
    }

    fn is_traced(&mut self) -> Result<bool, Error> {
        Ok(record::trace_info(self.wiring.system)?.on != 0)
    }

    fn set_trace(&mut self, on: bool) -> Result<(), Error> {
        syscall::trace_control(self.wiring.system, on.into())
    }

    fn trace(&mut self, cpu: u64, position: u64) -> Result<TracePart, Error> {
        let mut records = [TraceRecord::new_zeroed(); TRACE_READ_MAX];
        let (next, len, lost) =
            record::trace_read(self.wiring.system, cpu, position, &mut records)?;
        let records = records[..len].to_vec();
        Ok(TracePart {
            records,
            next,
            lost,
        })
    }

    fn time_at(&self, tsc: u64) -> u64 {
        clock::nanoseconds(&startup::info(), tsc)
    }
}

impl System for Machine {
    fn own_pid(&self) -> u32 {
        self.wiring.pid
    }

    fn programs(&mut self) -> InitResult<Vec<Name>> {
        let mut programs = Vec::new();
        let mut last = Name::new();
        while let Some(next) = self.init().next_program(&last)? {
            last = next.clone();
            programs.push(next);
        }
        Ok(programs)
    }

    fn spawn(&mut self, program: Name, args: Args) -> InitResult<u32> {
        let badge = self.next_badge;
        self.next_badge += 1;
        let rights = Rights::CALL | Rights::TRANSFER;
        let output =
            handle::mint(self.wiring.terminal, badge, rights).map_err(CallError::Transport)?;
        let spawn = Spawn {
            program,
            args,
            held: false,
        };
        self.init().spawn(&spawn, Some(output))
    }

    fn wait(&mut self, pid: u32) -> InitResult<ExitReport> {
        self.init().wait(&pid)
    }

    fn wait_until(&mut self, pid: u32, deadline: u64) -> InitResult<ExitReport> {
        self.init_until(deadline).wait(&pid)
    }

    fn kill(&mut self, pid: u32) -> InitResult<()> {
        self.init().kill(&pid)
    }

    fn process(&mut self, pid: u32) -> InitResult<Option<ProcessInfo>> {
        self.init().next(&pid)
    }

    fn locate(&mut self, pid: u32, address: u64, is_return: bool) -> Option<String> {
        let spot = Spot {
            pid,
            address,
            is_return,
        };
        let connection = Connection::new(self.wiring.profd).timeout(LOCATE_TIMEOUT);
        let name = profd::Client::new(connection).locate(&spot).ok()??;
        Some(name.as_str().into())
    }

    fn profile_number(&mut self) -> u64 {
        PROFILES.fetch_add(1, Ordering::Relaxed)
    }

    fn profile(
        &mut self,
        number: u64,
        request: Request,
        show: &mut dyn FnMut(&str),
    ) -> Result<(), CallError<Refusal>> {
        let start = Start {
            request,
            number,
            session: self.wiring.whose.name(),
        };
        let (answer, [memory]) = self.profd.measure(&start)?;
        show_text(&memory, answer.text_start, answer.text, show)
    }

    fn processors(
        &mut self,
        verbose: bool,
        show: &mut dyn FnMut(&str),
    ) -> Result<(), CallError<Refusal>> {
        let connection = Connection::new(self.wiring.profd).timeout(PROCESSORS_TIMEOUT);
        let (len, [memory]) = profd::Client::new(connection).processors(&verbose)?;
        show_text(&memory, 0, len, show)
    }

    fn network(&mut self) -> Result<Network, CallError<NetError>> {
        let mut net = net_client(0)?;
        Ok(Network {
            interface: net.status(&())?,
            counters: net.count(&())?,
            remote: net.remote(&())?,
        })
    }

    fn sockets(&mut self) -> Result<Vec<SocketInfo>, CallError<NetError>> {
        let mut net = net_client(0)?;
        let mut sockets = Vec::new();
        while let Some(socket) = net.next_socket(&(sockets.len() as u16))? {
            sockets.push(socket);
        }
        Ok(sockets)
    }

    fn ping(&mut self, ping: Ping) -> Result<Pong, CallError<NetError>> {
        net_client(ping.timeout_ms)?.ping(&ping)
    }

    fn memory(&mut self) -> Result<MemoryInfo, Error> {
        record::memory_info(self.wiring.system)
    }

    fn cpus(&self) -> u64 {
        startup::info().cpus
    }

    fn cpu(&mut self, cpu: u64) -> Result<CpuInfo, Error> {
        record::cpu_info(self.wiring.system, cpu)
    }

    fn now(&self) -> u64 {
        time::now()
    }

    fn rest(&mut self, until: u64) {
        // Whatever it says, who waits looks at the time and at the terminal.
        let _ = syscall::wait(self.wiring.wake, until);
    }

    fn tsc_hz(&self) -> u64 {
        startup::info().tsc_hz
    }

    fn log(&mut self, position: u64) -> Result<LogPart, Error> {
        let mut bytes = vec![0; LOG_PART_MAX];
        let (next, len, lost) = record::log_read(self.wiring.system, position, &mut bytes)?;
        bytes.truncate(len);
        Ok(LogPart { bytes, next, lost })
    }

    fn version(&mut self) -> Result<String, Error> {
        let mut bytes = [0; VERSION_MAX];
        let len = record::system_text(self.wiring.system, InfoKind::Version, &mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes[..len]).into_owned())
    }

    fn archive(&mut self) -> Result<&'static [u8], Error> {
        mapping::bootfs()
    }

    fn power_off(&mut self) -> Error {
        self.power(PowerAction::Off)
    }

    fn reboot(&mut self) -> Error {
        self.power(PowerAction::Reboot)
    }
}

//! The system as commands see it: a trait over the servers and kernel objects that the shell holds, so that every command
//! is tested against a fake.

use alloc::string::String;
use alloc::vec::Vec;

use ipc::abi::Error;
use ipc::abi::info::{CpuInfo, MemoryInfo};
use ipc::proto::CallError;
use ipc::proto::init::{Args, ExitReport, InitError, Name, ProcessInfo};
use ipc::proto::net::{Counters, Interface, NetError, Ping, Pong, SocketInfo};
use ipc::proto::profd::{Refusal, Request};
use ipc::proto::remote::Statistics;

use crate::inspect::Inspect;

/// A call to init.
pub type InitResult<T> = Result<T, CallError<InitError>>;

/// Part of the kernel log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogPart {
    /// The bytes; none at the end of the log.
    pub bytes: Vec<u8>,
    /// Position behind them, to go on from.
    pub next: u64,
    /// Bytes between the position asked for and these that are no longer kept.
    pub lost: u64,
}

/// The network, as the net server tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// What it is.
    pub interface: Interface,
    /// What went over it.
    pub counters: Counters,
    /// What came of the datagrams to the remote shell; `None` if that is off.
    pub remote: Option<Statistics>,
}

/// What commands can do to the system.
pub trait System: Inspect {
    /// Process id of this shell.
    fn own_pid(&self) -> u32;

    /// The programs that can be started, by name.
    ///
    /// # Errors
    /// init's.
    fn programs(&mut self) -> InitResult<Vec<Name>>;

    /// Starts a program whose output goes to this session; answers its process id.
    ///
    /// # Errors
    /// init's.
    fn spawn(&mut self, program: Name, args: Args) -> InitResult<u32>;

    /// Waits until a process has ended.
    ///
    /// # Errors
    /// init's; a process that ended long ago is forgotten.
    fn wait(&mut self, pid: u32) -> InitResult<ExitReport>;

    /// Waits until a process has ended, or until this time since boot in nanoseconds.
    ///
    /// # Errors
    /// init's, and that the time is over.
    fn wait_until(&mut self, pid: u32, deadline: u64) -> InitResult<ExitReport>;

    /// Ends a process.
    ///
    /// # Errors
    /// init's.
    fn kill(&mut self, pid: u32) -> InitResult<()>;

    /// The process with the lowest id that is at least `pid`.
    ///
    /// # Errors
    /// init's.
    fn process(&mut self, pid: u32) -> InitResult<Option<ProcessInfo>>;

    /// Name of a place in a process's code, such as ``crash`null+0x12``; `is_return` if the address is one past a call.
    /// `None` if nobody knows a name.
    fn locate(&mut self, pid: u32, address: u64, is_return: bool) -> Option<String>;

    /// A number for a profile, which no other profile of this program gets.
    fn profile_number(&mut self) -> u64;

    /// Measures, and hands the report to `show`. Returns when the window has closed, by its time or by a stop of the
    /// profile with this number.
    ///
    /// # Errors
    /// profd's.
    fn profile(
        &mut self,
        number: u64,
        request: Request,
        show: &mut dyn FnMut(&str),
    ) -> Result<(), CallError<Refusal>>;

    /// Hands `show` what the processors are, in words; `verbose`: with registers and all that CPUID answers.
    ///
    /// # Errors
    /// profd's, and that it does not answer in time.
    fn processors(
        &mut self,
        verbose: bool,
        show: &mut dyn FnMut(&str),
    ) -> Result<(), CallError<Refusal>>;

    /// The network.
    ///
    /// # Errors
    /// The net server's.
    fn network(&mut self) -> Result<Network, CallError<NetError>>;

    /// The sockets of all programs.
    ///
    /// # Errors
    /// The net server's.
    fn sockets(&mut self) -> Result<Vec<SocketInfo>, CallError<NetError>>;

    /// Asks a host for an echo, and waits for it.
    ///
    /// # Errors
    /// The net server's.
    fn ping(&mut self, ping: Ping) -> Result<Pong, CallError<NetError>>;

    /// Where the machine's memory is.
    ///
    /// # Errors
    /// The kernel's.
    fn memory(&mut self) -> Result<MemoryInfo, Error>;

    /// CPUs that run, numbered from 0.
    fn cpus(&self) -> u64;

    /// What a CPU did since boot.
    ///
    /// # Errors
    /// The kernel's.
    fn cpu(&mut self, cpu: u64) -> Result<CpuInfo, Error>;

    /// Nanoseconds since boot.
    fn now(&self) -> u64;

    /// Waits until a time, in nanoseconds since boot; returns earlier when the reader of a [`Stop::Wait`] was told to, and may for no
    /// reason at all. See [`pause`](crate::pause::pause).
    ///
    /// [`Stop::Wait`]: crate::protocol::Stop::Wait
    fn rest(&mut self, until: u64);

    /// TSC ticks in a second.
    fn tsc_hz(&self) -> u64;

    /// The kernel log from a position on; positions count bytes since boot.
    ///
    /// # Errors
    /// The kernel's.
    fn log(&mut self, position: u64) -> Result<LogPart, Error>;

    /// The kernel's version, one line.
    ///
    /// # Errors
    /// The kernel's.
    fn version(&mut self) -> Result<String, Error>;

    /// The boot archive.
    ///
    /// # Errors
    /// `NotFound` if the shell was not given it, or the kernel's.
    fn archive(&mut self) -> Result<&'static [u8], Error>;

    /// Powers off. Returns only if that is refused.
    fn power_off(&mut self) -> Error;

    /// Boots the machine again. Returns only if that is refused.
    fn reboot(&mut self) -> Error;
}

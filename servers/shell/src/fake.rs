//! A system for tests: what commands ask is answered from fields, and what they do is remembered. The kernel and the session are
//! apart.

mod kernel;
mod session;

use std::collections::{BTreeMap, VecDeque};

use ipc::abi::Error;
use ipc::abi::info::{CpuInfo, MemoryInfo};
use ipc::proto::CallError;
use ipc::proto::init::{Args, Ending, ExitReport, InitError, Name, ProcessInfo};
use ipc::proto::net::{NetError, Ping, Pong, SocketInfo};
use ipc::proto::profd::{Refusal, Request};

use crate::system::{InitResult, LogPart, Network, System};

pub use kernel::FakeKernel;
pub use session::FakeSession;

/// The system. Programs that it starts get pids from 7 on and run until they are in `ended`.
#[derive(Default)]
pub struct FakeSystem {
    pub spawned: Vec<(String, Vec<String>)>,
    pub own_pid: u32,
    /// If there are none, every program can be run.
    pub programs: Vec<&'static str>,
    /// Why the next program does not start, or is not killed.
    pub refuse: Option<CallError<InitError>>,
    /// Programs that start before that one.
    pub spare: usize,
    pub processes: BTreeMap<u32, ProcessInfo>,
    pub ended: BTreeMap<u32, ExitReport>,
    /// init does not say what there is.
    pub silent: bool,
    pub killed: Vec<u32>,
    /// A process that was killed is not gone before a deadline.
    pub lingering: bool,
    pub names: BTreeMap<u64, String>,
    /// With their numbers.
    pub requests: Vec<(u64, Request)>,
    pub profiles: u64,
    pub profile: Option<Result<String, CallError<Refusal>>>,
    /// In few words, and in all.
    pub processors: Option<[&'static str; 2]>,
    /// If there is a device.
    pub network: Option<Network>,
    /// What there is each time that somebody looks; nothing after that.
    pub sockets: VecDeque<Vec<SocketInfo>>,
    /// What is answered to each ping; without a device, after that.
    pub pongs: VecDeque<Result<Pong, CallError<NetError>>>,
    pub memory: MemoryInfo,
    pub cpus: Vec<CpuInfo>,
    pub now: u64,
    /// Nanoseconds that each wait takes.
    pub per_wait: u64,
    pub kernel: FakeKernel,
    /// What the CPUs and the kernel are once a time has been waited for.
    pub later: Option<(Vec<CpuInfo>, FakeKernel)>,
    pub archive: Option<&'static [u8]>,
    pub rebooted: bool,
    pub log: VecDeque<LogPart>,
    pub powered_off: bool,
    pub version: String,
}

impl FakeSystem {
    pub fn report(pid: u32, name: &str, ending: Ending, code: u64) -> ExitReport {
        ExitReport {
            pid,
            name: Name::try_from(name).unwrap(),
            ending,
            code,
            crash: None,
            cpu_ns: 0,
        }
    }
    pub fn add(&mut self, pid: u32, name: &str) -> &mut ProcessInfo {
        let info = ProcessInfo {
            pid,
            name: Name::try_from(name).unwrap(),
            state: 3,
            cpu: None,
            threads: 1,
            cpu_ns: 0,
            pages: 21,
            quota_pages: 100,
        };
        self.processes.entry(pid).insert_entry(info).into_mut()
    }
    pub fn end(&mut self, pid: u32, name: &str, ending: Ending, code: u64) {
        self.processes.remove(&pid);
        self.ended
            .insert(pid, Self::report(pid, name, ending, code));
    }
}

impl System for FakeSystem {
    fn own_pid(&self) -> u32 {
        self.own_pid
    }
    fn programs(&mut self) -> InitResult<Vec<Name>> {
        if self.silent {
            return Err(CallError::Transport(Error::TimedOut));
        }
        let programs = self.programs.iter();
        Ok(programs.map(|name| Name::cut(name)).collect())
    }
    fn spawn(&mut self, program: Name, args: Args) -> InitResult<u32> {
        if self.spare > 0 {
            self.spare -= 1;
        } else if let Some(error) = self.refuse.take() {
            return Err(error);
        }
        if !self.programs.is_empty() && !self.programs.contains(&program.as_str()) {
            return Err(CallError::Service(InitError::NoSuchProgram));
        }
        let args = args.iter().map(String::from).collect();
        self.spawned.push((program.as_str().into(), args));
        let pid = 6 + self.spawned.len() as u32;
        if !self.ended.contains_key(&pid) {
            self.add(pid, &program);
        }
        Ok(pid)
    }
    fn wait(&mut self, pid: u32) -> InitResult<ExitReport> {
        self.now += self.per_wait;
        let report = self.ended.get(&pid).cloned();
        report.ok_or(CallError::Service(InitError::NoSuchProcess))
    }
    fn wait_until(&mut self, pid: u32, _: u64) -> InitResult<ExitReport> {
        match self.lingering {
            true => Err(CallError::Transport(Error::TimedOut)),
            false => self.wait(pid),
        }
    }
    fn kill(&mut self, pid: u32) -> InitResult<()> {
        if let Some(error) = self.refuse.take() {
            return Err(error);
        }
        let Some(process) = self.processes.remove(&pid) else {
            return Err(CallError::Service(InitError::NoSuchProcess));
        };
        self.killed.push(pid);
        self.end(pid, &process.name, Ending::Killed, 0);
        Ok(())
    }
    fn process(&mut self, pid: u32) -> InitResult<Option<ProcessInfo>> {
        if self.silent {
            return Err(CallError::Transport(Error::TimedOut));
        }
        Ok(self
            .processes
            .range(pid..)
            .next()
            .map(|(_, info)| info.clone()))
    }
    fn locate(&mut self, _: u32, address: u64, is_return: bool) -> Option<String> {
        self.names.get(&(address - u64::from(is_return))).cloned()
    }
    fn profile_number(&mut self) -> u64 {
        self.profiles += 1;
        self.profiles
    }
    fn profile(
        &mut self,
        number: u64,
        request: Request,
        show: &mut dyn FnMut(&str),
    ) -> Result<(), CallError<Refusal>> {
        self.requests.push((number, request));
        let text = self
            .profile
            .clone()
            .expect("the test said what profd answers")?;
        show(&text);
        Ok(())
    }
    fn processors(
        &mut self,
        verbose: bool,
        show: &mut dyn FnMut(&str),
    ) -> Result<(), CallError<Refusal>> {
        let silent = CallError::Transport(Error::TimedOut);
        show(self.processors.ok_or(silent)?[usize::from(verbose)]);
        Ok(())
    }
    fn network(&mut self) -> Result<Network, CallError<NetError>> {
        self.network.ok_or(CallError::Service(NetError::NoDevice))
    }
    fn sockets(&mut self) -> Result<Vec<SocketInfo>, CallError<NetError>> {
        Ok(self.sockets.pop_front().unwrap_or_default())
    }
    fn ping(&mut self, _: Ping) -> Result<Pong, CallError<NetError>> {
        let pong = self.pongs.pop_front();
        pong.unwrap_or(Err(CallError::Service(NetError::NoDevice)))
    }
    fn memory(&mut self) -> Result<MemoryInfo, Error> {
        Ok(self.memory)
    }
    fn cpus(&self) -> u64 {
        self.cpus.len() as u64
    }
    fn cpu(&mut self, cpu: u64) -> Result<CpuInfo, Error> {
        self.cpus.get(cpu as usize).copied().ok_or(Error::NotFound)
    }
    fn now(&self) -> u64 {
        self.now
    }
    fn rest(&mut self, until: u64) {
        self.now = until;
        if let Some((cpus, kernel)) = self.later.take() {
            (self.cpus, self.kernel) = (cpus, kernel);
        }
    }
    fn tsc_hz(&self) -> u64 {
        2_000_000_000
    }
    fn log(&mut self, _: u64) -> Result<LogPart, Error> {
        Ok(self.log.pop_front().unwrap_or_default())
    }
    fn version(&mut self) -> Result<String, Error> {
        Ok(self.version.clone())
    }
    fn archive(&mut self) -> Result<&'static [u8], Error> {
        self.archive.ok_or(Error::NotFound)
    }
    fn reboot(&mut self) -> Error {
        self.rebooted = true;
        Error::MissingRight
    }
    fn power_off(&mut self) -> Error {
        self.powered_off = true;
        Error::MissingRight
    }
}

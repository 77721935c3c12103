//! Running the simulated CPUs: kernel entries one at a time, and system calls from threads whose user code is the test.

use super::Sim;
use super::build::CODE;
use crate::base::cpu::CpuId;
use crate::base::regs::Reg;
use crate::kernel::CpuState;
use crate::object::thread::{State, Thread, ThreadId};
use crate::profile::Interrupted;
use crate::sched::leave::Next;
use ipc::abi::trace::InterruptKind;
use ipc::abi::{Error, Syscall};

/// A thread as the test plays it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User(pub ThreadId);

/// Why a CPU enters the kernel.
#[derive(Clone, Copy, Debug)]
pub enum Entry {
    Syscall,
    Tick,
    Timer,
    Kick,
    Line(u32),
    Fault(u8),
    /// An interrupt that is about nothing.
    Spurious,
}

/// How a system call went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It returned: its error, or its results.
    Returned(Result<[u64; 3], Error>),
    /// It is to be made again.
    Restarts,
    /// The thread waits.
    Blocked,
    /// The thread has ended.
    Ended,
}

/// Registers of arguments.
const ARGUMENTS: [Reg; 6] = [Reg::Rdi, Reg::Rsi, Reg::Rdx, Reg::R10, Reg::R8, Reg::R9];
/// Length of the SYSCALL instruction.
const SYSCALL_BYTES: u64 = 2;
/// Entries after which a system that should have come to rest never will.
const PATIENCE: usize = 20_000;

impl Sim {
    pub fn cpu(&self, index: usize) -> &'static CpuState {
        &self.kernel.cpus[index]
    }
    pub fn thread(&self, user: User) -> &'static Thread {
        self.kernel.thread(user.0)
    }
    pub fn state(&self, user: User) -> State {
        self.thread(user).status().state()
    }

    /// One entry of a CPU and what it does after.
    pub fn enter(&mut self, index: usize, entry: Entry) {
        self.come_in(index, entry);
        self.leave(index);
        self.check();
    }

    /// The way into the kernel.
    pub fn come_in(&self, index: usize, entry: Entry) {
        let cpu = self.cpu(index);
        self.machine.play(CpuId(index as u8));
        let interrupted = match entry {
            Entry::Syscall | Entry::Fault(_) => None,
            Entry::Tick | Entry::Timer => Some((InterruptKind::Timer, 0)),
            Entry::Kick => Some((InterruptKind::Kick, 0)),
            Entry::Line(line) => Some((InterruptKind::Line, line)),
            Entry::Spurious => Some((InterruptKind::Spurious, 0)),
        };
        if let Some((kind, line)) = interrupted {
            self.kernel.interrupted(cpu, kind, line);
        }
        match entry {
            Entry::Syscall => self.kernel.syscall(cpu),
            Entry::Tick => self.kernel.tick(cpu, &self.interrupted(index), 0),
            Entry::Timer => self.kernel.timer(cpu),
            Entry::Kick => self.kernel.kicked(cpu),
            Entry::Line(line) => self.kernel.interrupt(cpu, line),
            Entry::Fault(vector) => self.kernel.fault(cpu, vector, 6, 0xdead),
            Entry::Spurious => {}
        }
    }

    /// The way out of the kernel.
    pub fn leave(&mut self, index: usize) {
        self.machine.play(CpuId(index as u8));
        self.next[index] = self.kernel.leave(self.cpu(index));
        assert!(self.cpu(index).token.holds_nothing());
    }

    pub fn interrupted(&self, index: usize) -> Interrupted {
        let idle = matches!(self.next[index], Next::Idle);
        Interrupted {
            rip: CODE,
            rsp: 0,
            rbp: 0,
            rflags: 0x202,
            rcx: 0,
            scratch: 0,
            entered: 0,
            user: !idle,
            idle,
        }
    }

    /// Delivers a kick or a timer that waits for this CPU. False if there is none.
    pub fn deliver(&mut self, index: usize) -> bool {
        let id = CpuId(index as u8);
        if self.machine.take_kick(id) {
            self.enter(index, Entry::Kick);
        } else if self.machine.take_timer(id) {
            self.enter(index, Entry::Timer);
        } else {
            return false;
        }
        true
    }

    /// Delivers everything that waits, on all CPUs, until nothing does.
    pub fn settle(&mut self) {
        for _ in 0..PATIENCE {
            if !(0..self.next.len()).fold(false, |any, cpu| self.deliver(cpu) | any) {
                return;
            }
        }
        panic!("the system does not come to rest");
    }

    /// A tick on each CPU, with 10 ms between two.
    pub fn ticks(&mut self, count: usize) {
        for _ in 0..count {
            self.machine.advance(10_000_000);
            for cpu in 0..self.next.len() {
                self.enter(cpu, Entry::Tick);
            }
            self.settle();
        }
    }

    /// The CPU that runs a thread.
    pub fn runs_on(&self, user: User) -> Option<usize> {
        (0..self.next.len()).find(|&cpu| self.cpu(cpu).current() == Some(user.0))
    }

    /// Lets time pass until a CPU runs the thread.
    pub fn schedule(&mut self, user: User) -> usize {
        for _ in 0..500 {
            if let Some(cpu) = self.runs_on(user) {
                return cpu;
            }
            self.ticks(1);
        }
        panic!("{user:?} never runs: {:?}", self.state(user));
    }

    /// Puts a call into a thread's registers.
    pub fn prepare(&self, user: User, what: Syscall, arguments: &[u64]) {
        let regs = &self.thread(user).regs;
        regs.set(Reg::Rax, what as u64);
        regs.set(Reg::Rip, CODE);
        for (reg, &value) in ARGUMENTS.into_iter().zip(arguments) {
            regs.set(reg, value);
        }
    }

    /// One kernel entry by a system call, with nothing delivered and no restart.
    pub fn step(&mut self, user: User, what: Syscall, arguments: &[u64]) -> Outcome {
        let cpu = self.schedule(user);
        self.prepare(user, what, arguments);
        self.enter(cpu, Entry::Syscall);
        self.outcome(user)
    }

    /// Whether the thread's last call is to be made again.
    pub fn restarts(&self, user: User) -> bool {
        let regs = &self.thread(user).regs;
        regs.get(Reg::Rip) == CODE - SYSCALL_BYTES
            && matches!(self.state(user), State::Running | State::Ready)
    }

    /// Makes the call again that is to be made again.
    pub fn again(&mut self, user: User) -> Outcome {
        let cpu = self.schedule(user);
        self.thread(user).regs.set(Reg::Rip, CODE);
        self.enter(cpu, Entry::Syscall);
        self.outcome(user)
    }

    /// A system call from beginning to end, with everything delivered that it causes.
    pub fn issue(&mut self, user: User, what: Syscall, arguments: &[u64]) -> Outcome {
        self.step(user, what, arguments);
        self.settle();
        for _ in 0..PATIENCE {
            if !self.restarts(user) {
                return self.outcome(user);
            }
            self.again(user);
            self.settle();
        }
        panic!("{what:?} restarts for ever");
    }

    /// How the last call of a thread went.
    pub fn outcome(&self, user: User) -> Outcome {
        let regs = &self.thread(user).regs;
        match self.state(user) {
            _ if self.restarts(user) => Outcome::Restarts,
            State::Running | State::Ready => Outcome::Returned(match regs.get(Reg::Rax) {
                0 => Ok([Reg::Rdi, Reg::Rsi, Reg::Rdx].map(|reg| regs.get(reg))),
                error => Err(Error::from_raw(error).expect("a status is an error number")),
            }),
            State::Dead => Outcome::Ended,
            _ => Outcome::Blocked,
        }
    }
}

impl Outcome {
    /// The results of a call that succeeded.
    #[track_caller]
    pub fn results(self) -> [u64; 3] {
        match self {
            Self::Returned(Ok(results)) => results,
            other => panic!("{other:?}"),
        }
    }
    /// The error of a call that failed.
    #[track_caller]
    pub fn error(self) -> Error {
        match self {
            Self::Returned(Err(error)) => error,
            other => panic!("{other:?}"),
        }
    }
}

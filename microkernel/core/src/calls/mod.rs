//! The system calls. The table in `ipc::abi::syscall` says what each is called and takes; this module decodes, calls the
//! method of that name, and writes the results.

mod device;
mod info;
mod inspect;
mod memory;
mod objects;
mod process;
mod profiler;
mod thread;
mod trace;

use crate::authority::Hold;
use crate::base::pool::Ref;
use crate::base::regs::{Reg, SavedRegs};
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::object::{Object, Process, Thread, ThreadId};
use crate::sched::load::add;
use core::sync::atomic::Ordering::Relaxed;
use ipc::abi::syscall::Register;
use ipc::abi::{Error, Handle, Rights, Tag};

/// What keeps an object that a call is about; none if it is the caller's own.
type Keeps<'a, H, T> = Option<Hold<'a, H, Ref<T>>>;

/// Who made a call, and where.
pub(crate) struct Caller<'a> {
    pub(crate) cpu: &'a CpuState,
    pub(crate) id: ThreadId,
    pub(crate) thread: &'static Thread,
    pub(crate) slot: u32,
    pub(crate) process: &'static Process,
}

/// Why a call has no results to write now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It failed.
    Error(Error),
    /// The thread waits, or has ended. It is no longer this CPU's to touch.
    Blocked,
    /// It has results, which are written already.
    Delivered,
    /// A step is done; the call is made again.
    Restart,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Length of the SYSCALL instruction: what a restarted call goes back by (Intel SDM volume 2, SYSCALL: opcode 0F 05).
pub(crate) const SYSCALL_BYTES: u64 = 2;

/// Results as they go into registers.
trait Results {
    fn write(self, regs: &SavedRegs);
}

impl Results for () {
    fn write(self, _: &SavedRegs) {}
}
impl<A: Register> Results for (A,) {
    fn write(self, regs: &SavedRegs) {
        regs.set(Reg::Rdi, self.0.to_raw());
    }
}
impl<A: Register, B: Register> Results for (A, B) {
    fn write(self, regs: &SavedRegs) {
        (self.0,).write(regs);
        regs.set(Reg::Rsi, self.1.to_raw());
    }
}
impl<A: Register, B: Register, C: Register> Results for (A, B, C) {
    fn write(self, regs: &SavedRegs) {
        (self.0, self.1).write(regs);
        regs.set(Reg::Rdx, self.2.to_raw());
    }
}

/// Registers of the arguments, in order.
const ARGUMENTS: [Reg; 6] = [Reg::Rdi, Reg::Rsi, Reg::Rdx, Reg::R10, Reg::R8, Reg::R9];

/// The first `N` arguments.
fn arguments<const N: usize>(regs: &SavedRegs) -> [u64; N] {
    const {
        assert!(
            N <= ARGUMENTS.len(),
            "a call has no more arguments than registers for them"
        )
    };
    core::array::from_fn(|index| regs.get(ARGUMENTS[index]))
}

/// Builds the dispatch from the table. A bad argument value is the caller's fault before the call begins.
macro_rules! dispatch {
    ($($number:literal $name:ident($($arg:ident: $type:ty),*) -> ($($ret:ident: $ret_type:ty),*) $text:literal;)*) => {
        impl<H: Hardware> Kernel<H> {
            fn dispatch(&self, caller: &Caller<'_>, number: u64) -> Result<(), Stop> {
                let regs = &caller.thread.regs;
                match number {
                    $($number => {
                        let [$($arg),*] = arguments(regs);
                        $(let $arg = <$type as Register>::from_raw($arg).ok_or(Error::BadArgument)?;)*
                        let results = self.$name(caller, $($arg),*)?;
                        Results::write(results, regs);
                        Ok(())
                    })*
                    _ => Err(Error::BadSyscall.into()),
                }
            }
        }
    };
}
ipc::for_each_syscall!(dispatch);

impl<H: Hardware> Kernel<H> {
    /// A thread made a system call; its registers are saved.
    ///
    /// # Panics
    /// If the CPU has no current thread: a system call comes from one.
    pub fn syscall(&self, cpu: &CpuState) {
        let id = cpu
            .current()
            .expect("a system call comes from the current thread");
        self.entered(cpu);
        add(&cpu.load.syscalls, 1);
        let thread = self.thread(id);
        let slot = thread.process.load(Relaxed);
        let caller = Caller {
            cpu,
            id,
            thread,
            slot,
            process: self.process(slot),
        };
        let regs = &thread.regs;
        match self.dispatch(&caller, regs.get(Reg::Rax)) {
            Ok(()) => regs.set(Reg::Rax, 0),
            Err(Stop::Error(error)) => regs.set(Reg::Rax, error as u64),
            Err(Stop::Restart) => regs.set(Reg::Rip, regs.get(Reg::Rip) - SYSCALL_BYTES),
            Err(Stop::Blocked | Stop::Delivered) => {}
        }
    }

    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "it has the shape of every call"
    )]
    fn null(&self, _: &Caller<'_>) -> Result<(), Stop> {
        Ok(())
    }

    /// The process that a handle names, or the caller's own for no handle: its slot, and a hold that keeps it.
    fn target<'a>(
        &'a self,
        caller: &Caller<'a>,
        handle: Handle,
        rights: Rights,
    ) -> Result<(u32, Keeps<'a, H, Process>), Error> {
        if handle == Handle::NONE {
            return Ok((caller.slot, None));
        }
        let hold = self.hold(caller, handle, Object::as_process, rights)?;
        Ok((hold.object.index(), Some(hold)))
    }

    /// Checks that a handle names the system and allows this.
    fn system(&self, caller: &Caller<'_>, handle: Handle, rights: Rights) -> Result<(), Error> {
        let grant = self.lookup(caller, handle)?;
        grant.named(|object| (object == Object::System).then_some(()), rights)
    }

    /// Writes a structure to the start of the caller's IPC buffer.
    fn put(&self, caller: &Caller<'_>, bytes: &[u8]) {
        self.hw.write_bytes(caller.thread.buffer(), bytes);
    }
}

//! Programs as the first one makes them: by system calls alone.

use super::Sim;
use super::build::CODE;
use super::run::User;
use crate::base::addr::PhysAddr;
use crate::object::Object;
use crate::object::thread::ThreadId;
use ipc::abi::message::{HANDLES_OFFSET, SLOT_BYTES, SLOT_MOVE};
use ipc::abi::{Handle, Rights, Syscall};

/// A program, as the first one knows it.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its pool slot.
    pub slot: u32,
    /// The first program's handle to it.
    pub handle: Handle,
    /// The first program's notification that its end signals.
    pub ended: Handle,
}

/// A handle from its register form.
pub fn handle(raw: u64) -> Handle {
    Handle::from_raw(u32::try_from(raw).unwrap())
}

impl Sim {
    /// What a handle of a thread's process names.
    pub fn object(&self, user: User, named: Handle) -> Object {
        let process = self.kernel.process_of(self.thread(user));
        let table = process.handles.lock(&self.cpu(0).token);
        table.get(&self.kernel.pools.chunks, named).unwrap().object
    }

    /// Makes something with a call of one result, a handle.
    #[track_caller]
    pub fn make(&mut self, user: User, what: Syscall, arguments: &[u64]) -> Handle {
        handle(self.issue(user, what, arguments).results()[0])
    }

    /// A program without threads.
    pub fn program(&mut self, quota: u64) -> Program {
        let root = self.root;
        let ended = self.make(root, Syscall::notification_create, &[]);
        let made = [self.system.raw().into(), quota, 7, ended.raw().into(), 1];
        let made = self.make(root, Syscall::process_create, &made);
        let Object::Process(reference) = self.object(root, made) else {
            panic!("{made:?} is no process");
        };
        Program {
            slot: reference.index(),
            handle: made,
            ended,
        }
    }

    /// A held thread of a program, and the first program's handle to it.
    pub fn held(&mut self, program: Program) -> (User, Handle) {
        let root = self.root;
        let process = program.handle.raw().into();
        let buffer = self.make(root, Syscall::memory_create, &[process, 1, 0]);
        let made = [process, CODE, 0x7000_0000, 5, 0, buffer.raw().into()];
        let made = self.make(root, Syscall::thread_create, &made);
        self.close(root, buffer);
        let Object::Thread(reference) = self.object(root, made) else {
            panic!("{made:?} is no thread");
        };
        (User(ThreadId(reference.index())), made)
    }

    /// A thread of a program, started.
    pub fn started(&mut self, program: Program) -> User {
        let (user, made) = self.held(program);
        self.issue(self.root, Syscall::thread_start, &[made.raw().into()])
            .results();
        self.close(self.root, made);
        user
    }

    /// A program with one thread.
    pub fn alone(&mut self, quota: u64) -> (Program, User) {
        let program = self.program(quota);
        (program, self.started(program))
    }

    #[track_caller]
    pub fn close(&mut self, user: User, closed: Handle) {
        self.issue(user, Syscall::handle_close, &[closed.raw().into()])
            .results();
    }

    /// Gives a program a copy of a handle of the first one.
    #[track_caller]
    pub fn give(&mut self, program: Program, named: Handle, rights: Rights) -> Handle {
        let copied = [
            named.raw().into(),
            (rights | Rights::TRANSFER).bits().into(),
        ];
        let copy = self.make(self.root, Syscall::handle_duplicate, &copied);
        let (process, copy) = (program.handle.raw().into(), copy.raw().into());
        self.make(
            self.root,
            Syscall::handle_give,
            &[process, copy, rights.bits().into()],
        )
    }

    /// Writes a handle slot of a thread's buffer.
    pub fn attach(&self, user: User, slot: usize, named: Handle, keep: Rights, moves: bool) {
        let flags = keep.bits() | if moves { SLOT_MOVE } else { 0 };
        self.write(
            user,
            HANDLES_OFFSET + SLOT_BYTES * slot,
            u64::from(named.raw()) | u64::from(flags) << 32,
        );
    }
    /// The handle in a slot of a thread's buffer.
    pub fn attached(&self, user: User, slot: usize) -> (Handle, Rights) {
        let word = self.read(user, HANDLES_OFFSET + SLOT_BYTES * slot);
        let rights = Rights::from_bits_truncate((word >> 32) as u32);
        (Handle::from_raw(word as u32), rights)
    }
    fn place(&self, user: User, offset: usize) -> PhysAddr {
        self.thread(user).buffer().offset(offset as u64)
    }
    /// Writes a word of a thread's buffer.
    pub fn write(&self, user: User, offset: usize, word: u64) {
        use crate::hardware::PhysMemory;
        self.machine.write(self.place(user, offset), word);
    }
    /// Reads a word of a thread's buffer.
    pub fn read(&self, user: User, offset: usize) -> u64 {
        use crate::hardware::PhysMemory;
        self.machine.read(self.place(user, offset))
    }
}

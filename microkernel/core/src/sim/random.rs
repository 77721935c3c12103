//! Programs that make any call at any time, with arguments that are right more often than chance has it.

use super::Sim;
use super::machine::LINES;
use super::program::Program;
use super::run::{Entry, User};
use crate::base::addr::PhysAddr;
use crate::base::cpu::{Cpu, CpuId};
use crate::base::regs::Reg;
use crate::handles::Grant;
use crate::hardware::PhysMemory;
use ipc::abi::exit::ExitReason;
use ipc::abi::info::InfoKind;
use ipc::abi::inspect::{mapping_index, page_index};
use ipc::abi::trace::TRACE_NEWEST;
use ipc::abi::{Handle, NEVER, ObjectType, Rights, Syscall, Tag};

/// One step: what is done, on which CPU, and numbers to make arguments of.
pub type Step = (u8, u8, u8, [u16; 6]);

/// Calls and how often they are made.
const CALLS: &[(Syscall, usize)] = &[
    (Syscall::null, 1),
    (Syscall::call, 14),
    (Syscall::receive, 12),
    (Syscall::reply, 8),
    (Syscall::reply_receive, 12),
    (Syscall::reply_park, 4),
    (Syscall::reply_take, 5),
    (Syscall::signal, 5),
    (Syscall::wait, 4),
    (Syscall::bind, 3),
    (Syscall::timer_set, 4),
    (Syscall::sleep, 3),
    (Syscall::yield_now, 2),
    (Syscall::handle_close, 4),
    (Syscall::handle_duplicate, 3),
    (Syscall::handle_mint, 4),
    (Syscall::handle_info, 1),
    (Syscall::handle_give, 4),
    (Syscall::endpoint_create, 2),
    (Syscall::notification_create, 2),
    (Syscall::memory_create, 5),
    (Syscall::memory_physical, 1),
    (Syscall::memory_part, 2),
    (Syscall::memory_info, 1),
    (Syscall::map, 8),
    (Syscall::unmap, 8),
    (Syscall::protect, 4),
    (Syscall::process_create, 1),
    (Syscall::process_kill, 1),
    (Syscall::process_status, 1),
    (Syscall::thread_create, 4),
    (Syscall::thread_start, 4),
    (Syscall::thread_set, 5),
    (Syscall::thread_exit, 1),
    (Syscall::thread_info, 1),
    (Syscall::interrupt_create, 2),
    (Syscall::interrupt_ack, 1),
    (Syscall::ports_create, 1),
    (Syscall::port_read, 1),
    (Syscall::log_write, 1),
    (Syscall::log_read, 1),
    (Syscall::system_info, 4),
    (Syscall::profiler_notify, 1),
    (Syscall::trace_control, 1),
    (Syscall::trace_read, 1),
];

/// Calls that are made more often while the thread serves one.
const ANSWERS: &[Syscall] = &[
    Syscall::reply,
    Syscall::reply_receive,
    Syscall::reply_receive,
    Syscall::reply_park,
    Syscall::call,
];

/// Threads of each program at the start.
const THREADS: usize = 4;

fn pick<T: Copy>(from: &[T], number: u16) -> T {
    from[usize::from(number) % from.len()]
}

/// One of a few addresses; 40 pages from the first one need two page tables.
fn address(number: u16) -> u64 {
    pick(&[0x1e_8000, 0x1e_9000, 0x40_0000, 0x7f00_0000_0000], number)
}

impl Sim {
    /// Programs that share two endpoints and two notifications, and have the first one asleep above them.
    pub fn crowd(&mut self, programs: usize) -> Vec<Program> {
        let root = self.root;
        let endpoints = [(); 2].map(|()| self.make(root, Syscall::endpoint_create, &[]));
        let bits = [(); 2].map(|()| self.make(root, Syscall::notification_create, &[]));
        let all = Rights::all() - Rights::MANAGE;
        let made: Vec<_> = (0..programs).map(|_| self.program(60)).collect();
        for &program in &made {
            for endpoint in endpoints {
                let rights = Rights::CALL | Rights::RECEIVE | Rights::MINT;
                self.give(
                    program,
                    endpoint,
                    rights | Rights::DUPLICATE | Rights::TRANSFER,
                );
            }
            for notification in bits {
                let rights = Rights::SIGNAL | Rights::WAIT | Rights::DUPLICATE | Rights::TRANSFER;
                self.give(program, notification, rights);
            }
            self.give(program, self.system, all - Rights::POWER);
            self.give(program, program.handle, super::build::OWN);
            for index in 0..THREADS {
                let (_, thread) = self.held(program);
                let set = [thread.raw().into(), 5 + 3 * index as u64, u64::MAX];
                self.issue(root, Syscall::thread_set, &set).results();
                self.issue(root, Syscall::thread_start, &[thread.raw().into()]);
                self.give(program, thread, super::build::OWN);
                self.close(root, thread);
            }
        }
        for handle in endpoints.into_iter().chain(bits) {
            self.close(root, handle);
        }
        self.issue(root, Syscall::sleep, &[1 << 50]);
        made
    }

    /// Does one random step.
    pub fn random_step(&mut self, (what, cpu, call, numbers): Step) {
        let cpu = usize::from(cpu) % self.next.len();
        match what % 24 {
            0 | 1 => {
                self.machine.advance(u64::from(numbers[0]) * 100);
                self.enter(cpu, Entry::Tick);
            }
            2..=5 => drop(self.deliver(cpu)),
            6 if call.is_multiple_of(4) => self.enter(cpu, Entry::Spurious),
            6 => self.machine.advance(u64::from(numbers[0] % 1000)),
            7 => {
                let line = u32::from(numbers[0]) % LINES;
                if self.machine.is_unmasked(line) {
                    self.enter(cpu, Entry::Line(line));
                }
            }
            8 if call.is_multiple_of(64) && self.cpu(cpu).current().is_some() => {
                self.enter(cpu, Entry::Fault(14));
            }
            8..=10 => self.random_touch(cpu, numbers),
            _ => {
                if let Some(id) = self.cpu(cpu).current() {
                    self.random_call(User(id), usize::from(call), numbers);
                    self.enter(cpu, Entry::Syscall);
                } else {
                    self.deliver(cpu);
                }
            }
        }
    }

    /// Lets the current thread of a CPU touch a page, most likely one that it has mapped.
    pub fn random_touch(&self, cpu: usize, numbers: [u16; 6]) {
        let cpu = self.cpu(cpu);
        let Some(id) = cpu.current() else { return };
        let process = self.kernel.process_of(self.kernel.thread(id));
        let mapped = process.space.lock(&Cpu::new(CpuId(0))).mapped();
        let at = if mapped.is_empty() {
            address(numbers[0])
        } else {
            pick(&mapped, numbers[0]).0.address()
        };
        let at = at + u64::from(numbers[1] % 3) * 4096;
        let write = numbers[2].is_multiple_of(2);
        let found = self.machine.touch(cpu.token.id(), at, write);
        if let Some(found) = found.filter(|_| write) {
            // What may be a frame.
            let frame = address(numbers[3]) + u64::from(numbers[4] % 512) * 8;
            self.machine.write(PhysAddr(found.0 & !7), frame);
        }
    }

    /// Puts a random call into a running thread's registers, or the one that it has to make again.
    pub fn random_call(&self, user: User, call: usize, numbers: [u16; 6]) {
        if self.restarts(user) {
            let regs = &self.thread(user).regs;
            regs.set(crate::base::regs::Reg::Rip, super::build::CODE);
            return;
        }
        let total: usize = CALLS.iter().map(|row| row.1).sum();
        let mut at = (call * 251 + usize::from(numbers[5] % 251)) % total;
        let what = CALLS.iter().find_map(|row| {
            let found = at < row.1;
            at = at.wrapping_sub(row.1);
            found.then_some(row.0)
        });
        let Some(what) = what else { return };
        let ends = matches!(what, Syscall::process_kill | Syscall::thread_exit);
        if ends && !self.patient && !numbers[3].is_multiple_of(32) {
            self.prepare(user, Syscall::yield_now, &[]);
            return;
        }
        let serves = self.thread(user).served().is_some();
        let what = if serves && numbers[4].is_multiple_of(2) {
            pick(ANSWERS, numbers[4] / 2)
        } else {
            what
        };
        // A look from outside: no CPU that is simulated holds what is locked here.
        let token = &Cpu::new(CpuId(0));
        let process = self.kernel.process_of(self.thread(user));
        let grants = process
            .handles
            .lock(token)
            .grants(&self.kernel.pools.chunks);
        for slot in 0..2 {
            let (named, keep) = (numbers[slot], numbers[slot + 2]);
            if !grants.is_empty() {
                let keep = if keep.is_multiple_of(3) {
                    Rights::from_bits_truncate(u32::from(keep))
                } else {
                    Rights::all()
                };
                let (chosen, _) = pick(&grants, named);
                self.attach(user, slot, chosen, keep, named.is_multiple_of(2));
            }
        }
        let mut arguments: Vec<u64> = what
            .arguments()
            .iter()
            .zip(numbers)
            .map(|(name, number)| self.argument(what, name, number, &grants))
            .collect();
        if matches!(what, Syscall::unmap | Syscall::protect) && !numbers[5].is_multiple_of(4) {
            let mapped = process.space.lock(token).mapped();
            if !mapped.is_empty() {
                let (pages, _) = pick(&mapped, numbers[1]);
                arguments[..3].copy_from_slice(&[0, pages.address(), pages.count()]);
            }
        }
        self.prepare(user, what, &arguments);
        let (regs, top) = (&self.thread(user).regs, address(numbers[4]));
        regs.set(Reg::Rsp, top);
        regs.set(Reg::Rbp, top + u64::from(numbers[5] % 512) * 8);
    }

    fn argument(&self, what: Syscall, name: &str, number: u16, grants: &[(Handle, Grant)]) -> u64 {
        let of = |kind: ObjectType| {
            let fit: Vec<_> = grants
                .iter()
                .filter(|(_, grant)| grant.object.kind() == kind)
                .collect();
            if fit.is_empty() || number.is_multiple_of(11) {
                return grants
                    .get(usize::from(number) % (grants.len() + 1))
                    .map_or(0, |(named, _)| named.raw().into());
            }
            pick(&fit, number / 11).0.raw().into()
        };
        let now = crate::hardware::Hardware::now(self.machine).0;
        match (name, what) {
            ("endpoint", Syscall::receive | Syscall::reply_receive) if number.is_multiple_of(7) => {
                0
            }
            ("endpoint", _) => of(ObjectType::Endpoint),
            ("reply", _) => of(ObjectType::Reply),
            ("notification", _) => of(ObjectType::Notification),
            ("thread", Syscall::bind | Syscall::thread_set) if number.is_multiple_of(3) => 0,
            ("thread", _) => of(ObjectType::Thread),
            ("process", Syscall::process_kill | Syscall::handle_give) => of(ObjectType::Process),
            ("process", _) if !number.is_multiple_of(3) => 0,
            ("process", _) => of(ObjectType::Process),
            ("memory" | "buffer", _) => of(ObjectType::Memory),
            ("system", _) => of(ObjectType::System),
            ("interrupt", _) => of(ObjectType::Interrupt),
            ("ports", _) => of(ObjectType::Ports),
            ("profiler", _) => of(ObjectType::Profiler),
            ("handle", _) => of(pick(
                &[
                    ObjectType::Reply,
                    ObjectType::Endpoint,
                    ObjectType::Memory,
                    ObjectType::Notification,
                    ObjectType::Thread,
                    ObjectType::Interrupt,
                ],
                number,
            )),
            ("deadline", _) => match number % 5 {
                0 => 0,
                1 | 2 => now + u64::from(number) * 10,
                _ if self.patient => NEVER,
                _ => now + 50_000,
            },
            ("address", _) => address(number),
            ("pages", Syscall::map | Syscall::unmap | Syscall::protect) => {
                pick(&[1, 2, 40], number)
            }
            ("pages", _) => pick(&[1, 2, 3, 40, 70], number),
            ("quota_pages", _) => pick(&[4, 8, 12], number),
            ("contiguous" | "first", _) => u64::from(number % 2),
            ("rights", Syscall::map | Syscall::protect) => {
                let write = Rights::READ | Rights::WRITE;
                pick(&[Rights::READ, write, Rights::EXECUTE], number)
                    .bits()
                    .into()
            }
            ("rights", Syscall::handle_mint) => {
                let all = Rights::CALL | Rights::DUPLICATE | Rights::TRANSFER;
                all.bits().into()
            }
            ("rights", _) => {
                let held = grants
                    .get(usize::from(number) % (grants.len() + 1))
                    .map_or(Rights::all(), |(_, grant)| grant.rights);
                (held & pick(&[Rights::all(), Rights::all() - Rights::RECEIVE], number))
                    .bits()
                    .into()
            }
            ("tag", _) => {
                let lengths = [0, 0, 16, 2048, 0, 0, 0, 3000];
                let handles = [0, 0, 0, 1, 2, 0, 0, 9];
                Tag::new(number, pick(&lengths, number), pick(&handles, number / 5)).raw()
            }
            ("priority", _) => u64::from(number % 18),
            ("cpu", _) => pick(&[u64::MAX, 0, 1, u64::MAX, 3], number),
            ("entry" | "stack" | "base", _) => super::build::CODE,
            ("line", _) => u64::from(number % 4),
            ("kind", _) => u64::from(number) % (InfoKind::ALL.len() as u64 + 1),
            ("index", _) => match number % 3 {
                0 => u64::from(number % 200),
                1 => mapping_index(u64::from(number % 17), u64::from(number / 17 % 3)),
                _ => page_index(
                    mapping_index(u64::from(number % 17), u64::from(number / 17 % 3)),
                    u64::from(number / 51 % 3),
                ),
            },
            ("on", _) => u64::from(number % 3),
            ("position", Syscall::trace_read) if number.is_multiple_of(2) => TRACE_NEWEST,
            _ => u64::from(number % 64),
        }
    }

    /// Ends everything but the first program, and waits until all is as it was.
    pub fn tear_down(&mut self) {
        self.machine.play(CpuId(0));
        self.kernel.entered(self.cpu(0));
        let first = self.kernel.process_of(self.thread(self.root)).pid.as_ptr();
        let cpu = self.cpu(0);
        for slot in 0..self.kernel.pools.processes.len() {
            let process = self.kernel.process(slot);
            let used = self.kernel.pools.processes.reference(slot).is_some();
            if used && process.pid.as_ptr() != first {
                self.kernel
                    .begin_death(cpu, slot, ExitReason::Killed, 9, None);
            }
        }
        self.leave(0);
        self.machine.advance(1 << 50);
        self.settle();
        let root = self.root;
        let process = self.kernel.process_of(self.thread(root));
        let handles = process
            .handles
            .lock(&cpu.token)
            .grants(&self.kernel.pools.chunks);
        for &(handle, _) in handles.iter().skip(4) {
            self.close(root, handle);
        }
        for _ in 0..60 {
            if self.totals() == self.baseline {
                return;
            }
            self.ticks(1);
        }
        assert_eq!(self.totals(), self.baseline, "something was lost");
    }
}

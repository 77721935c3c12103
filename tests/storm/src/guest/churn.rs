//! Processes that come and go: a few threads each make one, let it live for a moment, and kill it, again and again.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use ipc::abi::layout::PAGE_SIZE;
use ipc::abi::startup::names;
use ipc::abi::{Handle, Rights, Syscall};
use ipc::bootfs::Bootfs;
use sysroot::process::{FirstThread, Process};
use sysroot::sync::Mutex;
use sysroot::thread::{self, JoinHandle};
use sysroot::{OwnedHandle, mapping, syscall, time};

use super::failure::{Failure, kernel};
use super::given;
use crate::code::{self, Code, SPARE_PAGES};
use crate::watch::{Number, Pids};

/// Where each has its stack: of two pages, of which the outermost frames are in the second.
const STACK: u64 = 0x2000_0000_0000;
const STACK_PAGES: u64 = 2;
const STACK_TOP: u64 = STACK + PAGE_SIZE + 64;
/// Threads of a server, each with a stack: so far apart.
const SERVERS: u64 = 2;
/// Pages that a process may use, page tables included.
const QUOTA: u64 = 48;
/// How long one may live, at most.
const LIFE: u64 = 4 * time::MILLISECOND;
/// Of so many there is a server, and one between clients and servers.
const KINDS: u32 = 8;
/// See [`KINDS`].
const SERVER: u32 = 0;
/// See [`KINDS`].
const RELAY: u32 = 4;
/// Priorities of those that make them, and of the processes: all below the thread that judges, whose rings run full.
const MAKERS: u64 = 8;
const PRIORITY: u64 = 5;
/// How long the kernel may take to end one.
const PATIENCE: u64 = 60_000 * time::MILLISECOND;

/// What the threads share.
struct Shared {
    system: Handle,
    pids: &'static Pids,
    /// What servers receive from.
    endpoint: OwnedHandle,
    /// What the newest relay receives from, and it alone: its end closes the endpoint in the middle of calls.
    relay: Mutex<Option<Arc<OwnedHandle>>>,
    /// The boot archive, and the page of it that has the code.
    bootfs: Handle,
    code: u64,
    numbers: AtomicU32,
    is_over: AtomicBool,
    has_failed: AtomicBool,
}

/// All of it.
pub struct Churn {
    shared: Arc<Shared>,
    makers: Vec<JoinHandle<Result<(), Failure>>>,
    /// Lives for all of the storm: else calls would fail at once whenever the others are gone.
    server: Being,
}

/// A process and what tells of its end.
struct Being {
    process: Process,
    ended: OwnedHandle,
}

impl Churn {
    /// Starts it, with so many processes at a time.
    pub fn start(
        system: Handle,
        pids: &'static Pids,
        at_a_time: usize,
        seed: u64,
    ) -> Result<Self, Failure> {
        let endpoint = syscall::endpoint_create().map_err(kernel(Syscall::endpoint_create))?;
        let shared = Arc::new(Shared {
            system,
            pids,
            endpoint: OwnedHandle::new(endpoint),
            relay: Mutex::new(None),
            bootfs: given(names::BOOTFS)?,
            code: code_page().ok_or(Failure::NoCode)?,
            numbers: AtomicU32::new(0),
            is_over: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
        });
        let ended = notification()?;
        let process = shared.make(shared.number(), SERVER, &ended)?;
        let mut makers = Vec::new();
        for index in 0..at_a_time as u64 {
            let shared = Arc::clone(&shared);
            let dice = Dice(seed ^ (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
            let maker = thread::spawn(move || {
                let result = shared.churn(dice);
                shared.has_failed.fetch_or(result.is_err(), Relaxed);
                result
            });
            let maker = maker.map_err(kernel(Syscall::thread_create))?;
            syscall::thread_set(maker.handle(), MAKERS, u64::MAX)
                .map_err(kernel(Syscall::thread_set))?;
            makers.push(maker);
        }
        Ok(Self {
            shared,
            makers,
            server: Being { process, ended },
        })
    }

    /// Whether a maker has ended early.
    pub fn has_failed(&self) -> bool {
        self.shared.has_failed.load(Relaxed)
    }

    /// Ends all of it, also if a part has failed, and says how many there were.
    pub fn stop(self) -> Result<u32, Failure> {
        self.shared.is_over.store(true, Relaxed);
        let mut result = Ok(());
        for maker in self.makers {
            let joined = maker.join().map_err(kernel(Syscall::thread_exit));
            result = result.and(joined.flatten());
        }
        // It calls nobody's server but its own, so nothing else ends it.
        result.and(self.server.end().map(drop))?;
        Ok(self.shared.numbers.load(Relaxed))
    }
}

impl Shared {
    fn number(&self) -> Number {
        Number(self.numbers.fetch_add(1, Relaxed))
    }

    fn churn(&self, mut dice: Dice) -> Result<(), Failure> {
        let mut ended = notification()?;
        while !self.is_over.load(Relaxed) {
            let number = self.number();
            let process = self.make(number, number.0 % KINDS, &ended)?;
            time::sleep(dice.roll() % LIFE);
            let being = Being { process, ended };
            ended = being.end()?;
        }
        Ok(())
    }

    /// Makes a process and starts its threads.
    fn make(&self, number: Number, kind: u32, ended: &OwnedHandle) -> Result<Process, Failure> {
        let process = Process::create(
            self.system,
            "storm-child",
            QUOTA,
            number.image(),
            ended.raw(),
            1,
        )
        .map_err(kernel(Syscall::process_create))?;
        // One that is not whole may have a thread that runs; without a handle nobody could end it.
        let filled = self.fill(&process, number, kind);
        if let Err(failure) = filled {
            process.kill(0).map_err(kernel(Syscall::process_kill))?;
            return Err(failure);
        }
        Ok(process)
    }

    /// Gives a process its code and what it needs, and starts its threads.
    fn fill(&self, process: &Process, number: Number, kind: u32) -> Result<(), Failure> {
        let status = process.status().map_err(kernel(Syscall::process_status))?;
        self.pids.set(number, status.pid as u32);
        let text = Rights::READ | Rights::EXECUTE;
        process
            .map(self.bootfs, number.base(), self.code, 1, text)
            .map_err(kernel(Syscall::map))?;
        let [client, server, relay] = Code::new().entries();
        let (entry, argument, threads) = match kind {
            SERVER => (server, self.serve(process)?, SERVERS),
            RELAY => (relay, self.pass(process, number)?, 1),
            _ => (client, self.call(process, number)?, 1),
        };
        for index in 0..threads {
            start(process, number.base() + entry, argument, index)?;
        }
        Ok(())
    }

    /// What a server needs.
    fn serve(&self, process: &Process) -> Result<u64, Failure> {
        let rights = Rights::RECEIVE | Rights::TRANSFER;
        let copy = self
            .endpoint
            .duplicate(rights)
            .map_err(kernel(Syscall::handle_duplicate))?;
        let there = process
            .give(copy, rights)
            .map_err(kernel(Syscall::handle_give))?;
        Ok(there.raw().into())
    }

    /// What one in the middle needs: an endpoint of its own, and that of the servers with its number for a badge.
    fn pass(&self, process: &Process, number: Number) -> Result<u64, Failure> {
        let own = syscall::endpoint_create().map_err(kernel(Syscall::endpoint_create))?;
        let own = OwnedHandle::new(own);
        let rights = Rights::RECEIVE | Rights::TRANSFER;
        let receives = own
            .duplicate(rights)
            .map_err(kernel(Syscall::handle_duplicate))?;
        let there = process
            .give(receives, rights)
            .map_err(kernel(Syscall::handle_give))?;
        let onward = self.mint(&self.endpoint, process, number)?;
        let rights = Rights::CALL | Rights::MINT | Rights::TRANSFER;
        let called = own
            .duplicate(rights)
            .map_err(kernel(Syscall::handle_duplicate))?;
        *self.relay.lock() = Some(Arc::new(called));
        Ok(u64::from(there.raw()) | u64::from(onward.raw()) << 32)
    }

    /// Gives a process a way to call this endpoint, with its number for a badge.
    fn mint(
        &self,
        endpoint: &OwnedHandle,
        process: &Process,
        number: Number,
    ) -> Result<Handle, Failure> {
        let rights = Rights::CALL | Rights::TRANSFER;
        let minted = syscall::handle_mint(endpoint.raw(), number.0.into(), rights)
            .map_err(kernel(Syscall::handle_mint))?;
        process
            .give(OwnedHandle::new(minted), rights)
            .map_err(kernel(Syscall::handle_give))
    }

    /// What a client needs: an endpoint with its number for a badge, and memory to map. Every second one calls through a relay.
    fn call(&self, process: &Process, number: Number) -> Result<u64, Failure> {
        let relay = self.relay.lock().clone();
        let relay = relay.filter(|_| number.0 % 2 == 1);
        let called = relay.as_deref().unwrap_or(&self.endpoint);
        let endpoint = self.mint(called, process, number)?;
        let spare = process
            .memory(SPARE_PAGES)
            .map_err(kernel(Syscall::memory_create))?;
        let rights = Rights::READ | Rights::WRITE;
        let spare = process
            .give(spare, rights)
            .map_err(kernel(Syscall::handle_give))?;
        Ok(u64::from(endpoint.raw()) | u64::from(spare.raw()) << 32)
    }
}

/// The page of the boot archive that has the processes' code: text is mapped from it in place, so this program's file has it as
/// it is here.
fn code_page() -> Option<u64> {
    let archive = Bootfs::parse(mapping::bootfs().ok()?).ok()?;
    let file = archive.find("bin/storm")?;
    let mut pages = file.data.chunks(PAGE_SIZE as usize);
    let page = pages.position(|page| page.starts_with(code::bytes()))?;
    Some(file.offset as u64 / PAGE_SIZE + page as u64)
}

/// Starts thread `index` of a process.
fn start(process: &Process, entry: u64, argument: u64, index: u64) -> Result<(), Failure> {
    // As far apart as two threads of a process of the storm need: a page is free between.
    let apart = index * (STACK_PAGES + 1) * PAGE_SIZE;
    let stack = process
        .memory(STACK_PAGES)
        .map_err(kernel(Syscall::memory_create))?;
    process
        .map(
            stack.raw(),
            STACK + apart,
            0,
            STACK_PAGES,
            Rights::READ | Rights::WRITE,
        )
        .map_err(kernel(Syscall::map))?;
    let buffer = process.memory(1).map_err(kernel(Syscall::memory_create))?;
    let first = FirstThread {
        entry,
        stack: STACK_TOP + apart,
        argument,
        base: STACK,
    };
    let thread = process
        .thread(first, buffer.raw())
        .map_err(kernel(Syscall::thread_create))?;
    syscall::thread_set(thread.raw(), PRIORITY, u64::MAX).map_err(kernel(Syscall::thread_set))?;
    syscall::thread_start(thread.raw()).map_err(kernel(Syscall::thread_start))
}

impl Being {
    /// Kills it, and waits until nothing is left of it.
    fn end(self) -> Result<OwnedHandle, Failure> {
        self.process
            .kill(0)
            .map_err(kernel(Syscall::process_kill))?;
        drop(self.process);
        match syscall::wait(self.ended.raw(), time::after(PATIENCE)) {
            Ok(_) => Ok(self.ended),
            Err(_) => Err(Failure::Ends),
        }
    }
}

fn notification() -> Result<OwnedHandle, Failure> {
    let made = syscall::notification_create().map_err(kernel(Syscall::notification_create))?;
    Ok(OwnedHandle::new(made))
}

/// Marsaglia's xorshift: enough to make choices with.
struct Dice(u64);

impl Dice {
    const fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

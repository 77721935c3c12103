//! A kernel for the tests, hostile on purpose: any operation can be made to fail, every handle is counted, and processes end
//! when the test says so.

pub mod elf;
mod handle;
mod ledger;
mod system;

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use ipc::abi::exit::{ExitReason, ProcessStatus};
use ipc::abi::{Error, Handle, Rights};
use ipc::proto::init::CommandLine;

use crate::machine::{FirstThread, Machine, Pages};
use crate::pci::{Address, Config, Message};
pub use handle::{FakeHandle, ProcessHandle};
use handle::{SHARE, ears, has};
use ledger::Given;
pub use ledger::{FakeProcess, Ledger};
pub use system::{archive, config, program};

/// What the machine was booted with.
pub const COMMAND_LINE: &str = "verbose ip=10.0.2.15/24";

/// The kernel.
pub struct FakeMachine(pub Rc<RefCell<Ledger>>);

impl FakeMachine {
    pub fn new() -> Self {
        let mut ledger = Ledger {
            ears: vec![0],
            ..Ledger::default()
        };
        ledger.processes.push(FakeProcess {
            status: ProcessStatus {
                pid: 1,
                ..ProcessStatus::default()
            },
            ..FakeProcess::default()
        });
        Self(Rc::new(RefCell::new(ledger)))
    }

    fn step(&mut self) -> Result<(), Error> {
        let mut ledger = self.0.borrow_mut();
        let operation = ledger.operations;
        ledger.operations += 1;
        if ledger.fail_at == Some(operation) {
            return Err(Error::OutOfMemory);
        }
        Ok(())
    }

    fn handle(&mut self, rights: Rights) -> Result<FakeHandle, Error> {
        self.step()?;
        Ok(FakeHandle::new(&self.0, rights))
    }
}

impl Config for FakeMachine {
    fn read_config(&mut self, at: Address, offset: u8) -> u32 {
        self.0.borrow_mut().bus.read_config(at, offset)
    }
    fn write_config(&mut self, at: Address, offset: u8, value: u32) {
        self.0.borrow_mut().bus.write_config(at, offset, value);
    }
}

impl Machine for FakeMachine {
    type Handle = FakeHandle;
    type Process = ProcessHandle;

    fn create_process(
        &mut self,
        name: &str,
        quota_pages: u64,
        _: u32,
    ) -> Result<(ProcessHandle, u32), Error> {
        let handle = self.handle(SHARE)?;
        let mut ledger = self.0.borrow_mut();
        let pid = ledger.processes.len() as u32 + 1;
        ledger.processes.push(FakeProcess {
            name: name.into(),
            status: ProcessStatus {
                pid: pid.into(),
                quota_pages,
                ..ProcessStatus::default()
            },
            ..FakeProcess::default()
        });
        Ok((ProcessHandle { pid, _open: handle }, pid))
    }

    fn create_memory(
        &mut self,
        process: &ProcessHandle,
        pages: u64,
        offset: u64,
        content: &[u8],
    ) -> Result<FakeHandle, Error> {
        assert!(offset + content.len() as u64 <= pages * 4096);
        let handle = self.handle(SHARE)?;
        // The last memory that is made, and written from its beginning, is the startup page.
        if offset == 0 {
            self.0.borrow_mut().process(process.pid).startup = content.to_vec();
        }
        Ok(handle)
    }

    fn map(
        &mut self,
        process: &ProcessHandle,
        _: Pages<'_, FakeHandle>,
        address: u64,
        pages: u64,
        rights: Rights,
    ) -> Result<(), Error> {
        self.step()?;
        let mut ledger = self.0.borrow_mut();
        let maps = &mut ledger.process(process.pid).maps;
        let end = address + pages * 4096;
        let overlaps =
            |&(other, pages, _): &(u64, u64, Rights)| other < end && address < other + pages * 4096;
        assert!(!maps.iter().any(overlaps), "{address:#x} is mapped already");
        maps.push((address, pages, rights));
        Ok(())
    }

    fn create_thread(
        &mut self,
        process: &ProcessHandle,
        first: FirstThread,
        _: &FakeHandle,
    ) -> Result<FakeHandle, Error> {
        self.0.borrow_mut().process(process.pid).priority = first.priority;
        let mut thread = self.handle(SHARE | Rights::MANAGE | Rights::INSPECT)?;
        thread.pid = process.pid;
        Ok(thread)
    }

    fn start(&mut self, thread: &FakeHandle) -> Result<(), Error> {
        self.step()?;
        self.0.borrow_mut().process(thread.pid).started = true;
        Ok(())
    }

    fn give(
        &mut self,
        process: &ProcessHandle,
        handle: FakeHandle,
        rights: Rights,
    ) -> Result<Handle, Error> {
        self.step()?;
        has(handle.rights, rights | Rights::TRANSFER)?;
        let mut ledger = self.0.borrow_mut();
        let endpoint = handle.endpoint;
        ledger.ears[endpoint] += ears(rights);
        let given = &mut ledger.process(process.pid).given;
        given.push(Given { rights, endpoint });
        Ok(Handle::new(given.len() as u32, 1))
    }

    fn own_status(&mut self) -> Result<ProcessStatus, Error> {
        Ok(self.0.borrow_mut().process(1).status)
    }

    fn status(&mut self, process: &ProcessHandle) -> Result<ProcessStatus, Error> {
        Ok(self.0.borrow_mut().process(process.pid).status)
    }

    fn kill(&mut self, process: &ProcessHandle) -> Result<(), Error> {
        let mut ledger = self.0.borrow_mut();
        ledger.end(process.pid, ExitReason::Killed, 137);
        Ok(())
    }

    fn duplicate(&mut self, handle: &FakeHandle, rights: Rights) -> Result<FakeHandle, Error> {
        has(handle.rights, rights | Rights::DUPLICATE)?;
        self.step()?;
        Ok(FakeHandle::to_endpoint(&self.0, rights, handle.endpoint))
    }
    fn mint(&mut self, endpoint: &FakeHandle, badge: u64) -> Result<FakeHandle, Error> {
        assert_ne!(badge, 0);
        has(endpoint.rights, Rights::MINT)?;
        self.step()?;
        let rights = SHARE | Rights::CALL;
        Ok(FakeHandle::to_endpoint(&self.0, rights, endpoint.endpoint))
    }
    fn create_endpoint(&mut self) -> Result<FakeHandle, Error> {
        self.step()?;
        let mut ledger = self.0.borrow_mut();
        ledger.ears.push(0);
        let endpoint = ledger.ears.len() - 1;
        drop(ledger);
        let rights = SHARE | Rights::CALL | Rights::RECEIVE | Rights::MINT;
        Ok(FakeHandle::to_endpoint(&self.0, rights, endpoint))
    }
    fn create_notification(&mut self) -> Result<FakeHandle, Error> {
        self.handle(SHARE | Rights::SIGNAL | Rights::WAIT)
    }
    fn system(&mut self, rights: Rights) -> Result<FakeHandle, Error> {
        self.handle(rights)
    }
    fn profiler(&mut self, rights: Rights) -> Result<FakeHandle, Error> {
        self.handle(rights)
    }
    fn bootfs(&mut self, rights: Rights) -> Result<FakeHandle, Error> {
        self.handle(rights)
    }
    fn interrupt(
        &mut self,
        line: u32,
        notification: &FakeHandle,
        _: u32,
    ) -> Result<FakeHandle, Error> {
        if self.0.borrow().taken_line == Some(line) {
            return Err(Error::Busy);
        }
        has(notification.rights, Rights::SIGNAL)?;
        self.handle(SHARE | Rights::MANAGE)
    }
    fn message(
        &mut self,
        notification: &FakeHandle,
        bit: u32,
    ) -> Result<(FakeHandle, Message), Error> {
        has(notification.rights, Rights::SIGNAL)?;
        let interrupt = self.handle(SHARE | Rights::MANAGE)?;
        let message = Message {
            address: 0xfee0_0000,
            data: 0x40 + bit,
        };
        Ok((interrupt, message))
    }
    fn create_dma(&mut self, _: u64) -> Result<FakeHandle, Error> {
        self.handle(SHARE | Rights::READ | Rights::WRITE)
    }
    fn store(&mut self, address: u64, words: &[u32]) -> Result<(), Error> {
        self.step()?;
        self.0.borrow_mut().bus.store(address, words);
        Ok(())
    }
    fn ports(&mut self, _: u16, _: u16) -> Result<FakeHandle, Error> {
        self.handle(SHARE | Rights::READ | Rights::WRITE)
    }
    fn device(&mut self, _: u64, _: u64) -> Result<FakeHandle, Error> {
        self.handle(SHARE | Rights::READ | Rights::WRITE)
    }

    fn command_line(&mut self) -> Result<CommandLine, Error> {
        Ok(CommandLine::cut(COMMAND_LINE))
    }
    fn flush(&mut self, _: &FakeHandle) -> bool {
        let mut ledger = self.0.borrow_mut();
        ledger.flushed += 1;
        let ends = ledger.ends_at_flush.take();
        if let Some(pid) = ends {
            ledger.end(pid, ExitReason::Exited, 0);
        }
        ends.is_some()
    }
    fn signal(&mut self, _: &FakeHandle) {
        self.0.borrow_mut().signals += 1;
    }
    fn now(&self) -> u64 {
        self.0.borrow().now
    }
    fn tsc(&self) -> u64 {
        self.0.borrow().now * 3
    }
    fn log(&mut self, line: fmt::Arguments<'_>) {
        self.0.borrow_mut().log.push(line.to_string());
    }
    fn halt(&mut self) {
        self.0.borrow_mut().halted = true;
    }
}

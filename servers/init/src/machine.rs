//! What init needs from the system, one method for each thing, so that its decisions run on the host against a fake.
//!
//! Handles are owned: dropping one closes it. Every method may fail at any time, and after a failure nothing was done.

use core::fmt;

use ipc::abi::exit::ProcessStatus;
use ipc::abi::startup::ControlBlock;
use ipc::abi::{Error, Handle, Rights};
use ipc::proto::init::CommandLine;

use crate::pci::{Config, Message};

/// What pages are mapped from.
#[derive(Clone, Copy, Debug)]
pub enum Pages<'a, H> {
    /// The boot archive, from this page of it on.
    Bootfs(u64),
    /// A memory object, from its beginning.
    Memory(&'a H),
}

/// How the first thread of a process begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstThread {
    /// RIP.
    pub entry: u64,
    /// RSP.
    pub stack: u64,
    /// RDI: address of the startup page.
    pub argument: u64,
    /// Its control block, whose address is its FS base.
    pub control: ControlBlock,
    /// Its priority.
    pub priority: u8,
}

/// The kernel, as init uses it, and the configuration of PCI functions, which init alone has the ports for.
pub trait Machine: Config {
    /// An owned handle.
    type Handle;
    /// A process that init made. Closed when dropped.
    type Process;

    /// Makes an empty process, whose end wakes init. Answers its id as well.
    ///
    /// # Errors
    /// See the call `process_create`.
    fn create_process(
        &mut self,
        name: &str,
        quota_pages: u64,
        image: u32,
    ) -> Result<(Self::Process, u32), Error>;

    /// Makes a memory object of zeroed pages at the process's expense, and writes `content` at `offset`.
    ///
    /// # Errors
    /// See the calls `memory_create` and `map`.
    fn create_memory(
        &mut self,
        process: &Self::Process,
        pages: u64,
        offset: u64,
        content: &[u8],
    ) -> Result<Self::Handle, Error>;

    /// Maps pages into a process.
    ///
    /// # Errors
    /// See the call `map`.
    fn map(
        &mut self,
        process: &Self::Process,
        from: Pages<'_, Self::Handle>,
        address: u64,
        pages: u64,
        rights: Rights,
    ) -> Result<(), Error>;

    /// Makes the first thread of a process, held.
    ///
    /// # Errors
    /// See the calls `thread_create` and `thread_set`.
    fn create_thread(
        &mut self,
        process: &Self::Process,
        first: FirstThread,
        buffer: &Self::Handle,
    ) -> Result<Self::Handle, Error>;

    /// Lets a held thread run.
    ///
    /// # Errors
    /// See the call `thread_start`.
    fn start(&mut self, thread: &Self::Handle) -> Result<(), Error>;

    /// Moves a handle with TRANSFER into a process, with these of its rights; the number it has there.
    ///
    /// # Errors
    /// See the call `handle_give`. The handle is closed then.
    fn give(
        &mut self,
        process: &Self::Process,
        handle: Self::Handle,
        rights: Rights,
    ) -> Result<Handle, Error>;

    /// State of init's own process.
    ///
    /// # Errors
    /// See the call `process_status`.
    fn own_status(&mut self) -> Result<ProcessStatus, Error>;

    /// State of a process.
    ///
    /// # Errors
    /// See the call `process_status`.
    fn status(&mut self, process: &Self::Process) -> Result<ProcessStatus, Error>;

    /// Ends a process.
    ///
    /// # Errors
    /// See the call `process_kill`.
    fn kill(&mut self, process: &Self::Process) -> Result<(), Error>;

    /// Another handle to the same, with these of its rights.
    ///
    /// # Errors
    /// See the call `handle_duplicate`.
    fn duplicate(&mut self, handle: &Self::Handle, rights: Rights) -> Result<Self::Handle, Error>;

    /// A handle to an endpoint, with a badge, to call it and to pass it on.
    ///
    /// # Errors
    /// See the call `handle_mint`.
    fn mint(&mut self, endpoint: &Self::Handle, badge: u64) -> Result<Self::Handle, Error>;

    /// Makes an endpoint.
    ///
    /// # Errors
    /// See the call `endpoint_create`.
    fn create_endpoint(&mut self) -> Result<Self::Handle, Error>;

    /// Makes a notification.
    ///
    /// # Errors
    /// See the call `notification_create`.
    fn create_notification(&mut self) -> Result<Self::Handle, Error>;

    /// Another handle to the system, with these rights.
    ///
    /// # Errors
    /// See the call `handle_duplicate`.
    fn system(&mut self, rights: Rights) -> Result<Self::Handle, Error>;

    /// Another handle to the profiling driver, with these rights.
    ///
    /// # Errors
    /// See the call `handle_duplicate`.
    fn profiler(&mut self, rights: Rights) -> Result<Self::Handle, Error>;

    /// Another handle to the boot archive, with these rights.
    ///
    /// # Errors
    /// See the call `handle_duplicate`.
    fn bootfs(&mut self, rights: Rights) -> Result<Self::Handle, Error>;

    /// Takes an interrupt line, which signals a bit of the notification.
    ///
    /// # Errors
    /// See the call `interrupt_create`.
    fn interrupt(
        &mut self,
        line: u32,
        notification: &Self::Handle,
        bit: u32,
    ) -> Result<Self::Handle, Error>;

    /// Takes an interrupt that a device signals by a message, which sets a bit of the notification.
    ///
    /// # Errors
    /// See the call `interrupt_create`.
    fn message(
        &mut self,
        notification: &Self::Handle,
        bit: u32,
    ) -> Result<(Self::Handle, Message), Error>;

    /// Makes a memory object of zeroed pages in a row, at init's expense.
    ///
    /// # Errors
    /// See the call `memory_create`.
    fn create_dma(&mut self, pages: u64) -> Result<Self::Handle, Error>;

    /// Writes words to a device's registers, from this physical address on.
    ///
    /// # Errors
    /// See the calls `memory_physical` and `map`.
    fn store(&mut self, address: u64, words: &[u32]) -> Result<(), Error>;

    /// Makes a handle to I/O ports.
    ///
    /// # Errors
    /// See the call `ports_create`.
    fn ports(&mut self, first: u16, count: u16) -> Result<Self::Handle, Error>;

    /// Makes a handle to device memory.
    ///
    /// # Errors
    /// See the call `memory_physical`.
    fn device(&mut self, base: u64, pages: u64) -> Result<Self::Handle, Error>;

    /// The boot command line.
    ///
    /// # Errors
    /// See the call `system_info`.
    fn command_line(&mut self) -> Result<CommandLine, Error>;

    /// Fails all calls that wait at an endpoint. Answers whether the end of some process was heard of meanwhile.
    fn flush(&mut self, endpoint: &Self::Handle) -> bool;

    /// Signals bit 0 of a subscriber's notification. One that cannot be signalled has no use for it.
    fn signal(&mut self, notification: &Self::Handle);

    /// Nanoseconds since boot.
    fn now(&self) -> u64;

    /// The time-stamp counter.
    fn tsc(&self) -> u64;

    /// Writes a line to the kernel log.
    fn log(&mut self, line: fmt::Arguments<'_>);

    /// Ends the system. On the machine it does not return.
    fn halt(&mut self);
}

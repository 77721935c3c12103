//! init on the machine: its start, its loop, and [`Machine`] as system calls.

use core::fmt;

use init::machine::{FirstThread, Machine, Pages};
use init::pci::devices::is_function;
use init::pci::{Address, Config, Message as DeviceMessage};
use init::{Supervisor, config};
use ipc::abi::exit::ProcessStatus;
use ipc::abi::info::InfoKind;
use ipc::abi::layout::{COMMAND_LINE_MAX, PAGE_SIZE};
use ipc::abi::startup::names;
use ipc::abi::{BY_MESSAGE, Error, Handle, NOW, Rights};
use ipc::bootfs::{Bootfs, SYSTEM};
use ipc::proto::init::CommandLine;
use ipc::proto::system::INIT;
use ipc::proto::{self, Message};
use sysroot::process::{self, Process};
use sysroot::{
    Event, ExitCode, Mapping, OwnedHandle, Port, Registers, handle, mapping, port, println, record,
    startup, syscall, time,
};

use crate::configuration::Configuration;

/// Bit of init's notification that a process's end sets.
const ENDED: u64 = 1;
/// Most calls that are failed at the endpoint of a server that died: more than there can be threads to make them.
const QUEUED_MAX: usize = 4096;
/// Exit code of a process that init killed.
const KILLED: u64 = 137;

/// What a failure means here: there is no system without init, and the kernel says so when it ends.
fn must<T, E: fmt::Debug>(what: &str, result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{what}: {error:?}"))
}

fn given(name: &str) -> Handle {
    must(name, startup::handle(name).ok_or(Error::NotFound))
}

/// Starts the system, then serves and watches.
pub fn main() {
    let archive = must("bootfs", mapping::bootfs());
    let archive = must("bootfs", Bootfs::parse(archive));
    let file = must(SYSTEM, archive.find(SYSTEM).ok_or(Error::NotFound));
    let config = must(SYSTEM, config::read(file.data));
    let notification = must("notification", syscall::notification_create());
    must("bind", port::bind(notification));
    let kernel = Kernel {
        system: given(names::SYSTEM),
        profiler: given(names::PROFILER),
        bootfs: given(names::BOOTFS),
        notification,
        configuration: Configuration::open(given(names::SYSTEM)),
    };
    let mut init = must("endpoints", Supervisor::new(kernel, archive, config));
    let endpoint = init.endpoint(INIT).map(OwnedHandle::raw);
    let endpoint = must("own endpoint", endpoint.ok_or(Error::NotFound));
    init.boot();

    let mut port = Port::new(endpoint);
    let mut message = Message::new();
    loop {
        match port.receive(init.deadline(), &mut message) {
            Event::Call { badge } if is_function(badge) => {
                port.serve(badge, &mut message, &mut init, proto::pci::dispatch);
            }
            Event::Call { badge } => {
                port.serve(badge, &mut message, &mut init, proto::init::dispatch);
            }
            Event::Notified(_) | Event::TimedOut => init.poll(&mut port),
            Event::Closed { badge } => init.closed(badge),
            Event::Failed(error) => must("receive", Err(error)),
        }
    }
}

/// The kernel, and init's handles to what it hands out.
struct Kernel {
    system: Handle,
    profiler: Handle,
    bootfs: Handle,
    notification: Handle,
    configuration: Configuration,
}

impl Config for Kernel {
    fn read_config(&mut self, at: Address, offset: u8) -> u32 {
        self.configuration.read_config(at, offset)
    }

    fn write_config(&mut self, at: Address, offset: u8, value: u32) {
        self.configuration.write_config(at, offset, value);
    }
}

impl Machine for Kernel {
    type Handle = OwnedHandle;
    type Process = Process;

    fn create_process(
        &mut self,
        name: &str,
        quota_pages: u64,
        image: u32,
    ) -> Result<(Process, u32), Error> {
        let made = Process::create(
            self.system,
            name,
            quota_pages,
            image,
            self.notification,
            ENDED,
        )?;
        let pid = made.status()?.pid;
        Ok((made, pid as u32))
    }

    fn create_memory(
        &mut self,
        process: &Process,
        pages: u64,
        offset: u64,
        content: &[u8],
    ) -> Result<OwnedHandle, Error> {
        let memory = process.memory(pages)?;
        let last = offset + content.len() as u64;
        if last > offset {
            let window = Mapping::new(memory.raw(), 0, last.div_ceil(PAGE_SIZE), true)?;
            let written = window.write(offset as usize, content);
            if written < content.len() {
                return Err(Error::TooLarge);
            }
        }
        Ok(memory)
    }

    fn map(
        &mut self,
        process: &Process,
        from: Pages<'_, OwnedHandle>,
        address: u64,
        pages: u64,
        rights: Rights,
    ) -> Result<(), Error> {
        let (memory, first) = match from {
            Pages::Bootfs(first) => (self.bootfs, first),
            Pages::Memory(memory) => (memory.raw(), 0),
        };
        process.map(memory, address, first, pages, rights)
    }

    fn create_thread(
        &mut self,
        process: &Process,
        first: FirstThread,
        buffer: &OwnedHandle,
    ) -> Result<OwnedHandle, Error> {
        let registers = process::FirstThread {
            entry: first.entry,
            stack: first.stack,
            argument: first.argument,
            base: first.control.this,
        };
        let thread = process.thread(registers, buffer.raw())?;
        syscall::thread_set(thread.raw(), first.priority.into(), u64::MAX)?;
        Ok(thread)
    }

    fn start(&mut self, thread: &OwnedHandle) -> Result<(), Error> {
        syscall::thread_start(thread.raw())
    }

    fn give(
        &mut self,
        process: &Process,
        handle: OwnedHandle,
        rights: Rights,
    ) -> Result<Handle, Error> {
        process.give(handle, rights)
    }

    fn own_status(&mut self) -> Result<ProcessStatus, Error> {
        record::process_status(Handle::NONE)
    }

    fn status(&mut self, process: &Process) -> Result<ProcessStatus, Error> {
        process.status()
    }

    fn kill(&mut self, process: &Process) -> Result<(), Error> {
        process.kill(KILLED)
    }

    fn duplicate(&mut self, handle: &OwnedHandle, rights: Rights) -> Result<OwnedHandle, Error> {
        handle.duplicate(rights)
    }

    fn mint(&mut self, endpoint: &OwnedHandle, badge: u64) -> Result<OwnedHandle, Error> {
        let rights = Rights::CALL | Rights::DUPLICATE | Rights::TRANSFER;
        handle::mint(endpoint.raw(), badge, rights)
    }

    fn create_endpoint(&mut self) -> Result<OwnedHandle, Error> {
        syscall::endpoint_create().map(OwnedHandle::new)
    }

    fn create_notification(&mut self) -> Result<OwnedHandle, Error> {
        syscall::notification_create().map(OwnedHandle::new)
    }

    fn system(&mut self, rights: Rights) -> Result<OwnedHandle, Error> {
        handle::duplicate(self.system, rights)
    }

    fn profiler(&mut self, rights: Rights) -> Result<OwnedHandle, Error> {
        handle::duplicate(self.profiler, rights)
    }

    fn bootfs(&mut self, rights: Rights) -> Result<OwnedHandle, Error> {
        handle::duplicate(self.bootfs, rights)
    }

    fn interrupt(
        &mut self,
        line: u32,
        notification: &OwnedHandle,
        bit: u32,
    ) -> Result<OwnedHandle, Error> {
        let bits = 1_u64.checked_shl(bit).ok_or(Error::LimitReached)?;
        syscall::interrupt_create(self.system, line.into(), notification.raw(), bits)
            .map(|(interrupt, ..)| OwnedHandle::new(interrupt))
    }

    fn message(
        &mut self,
        notification: &OwnedHandle,
        bit: u32,
    ) -> Result<(OwnedHandle, DeviceMessage), Error> {
        let bits = 1_u64.checked_shl(bit).ok_or(Error::LimitReached)?;
        let (interrupt, address, data) =
            syscall::interrupt_create(self.system, BY_MESSAGE, notification.raw(), bits)?;
        let message = DeviceMessage {
            address,
            data: data as u32,
        };
        Ok((OwnedHandle::new(interrupt), message))
    }

    fn create_dma(&mut self, pages: u64) -> Result<OwnedHandle, Error> {
        syscall::memory_create(Handle::NONE, pages, 1).map(OwnedHandle::new)
    }

    fn store(&mut self, address: u64, words: &[u32]) -> Result<(), Error> {
        let first = address / PAGE_SIZE * PAGE_SIZE;
        let offset = address - first;
        let pages = (offset + size_of_val(words) as u64).div_ceil(PAGE_SIZE);
        let memory = OwnedHandle::new(syscall::memory_physical(self.system, first, pages)?);
        let registers = Registers::map(memory.raw())?;
        for (place, &word) in (offset as usize..).step_by(4).zip(words) {
            registers.write(place, word).ok_or(Error::Misaligned)?;
        }
        Ok(())
    }

    fn ports(&mut self, first: u16, count: u16) -> Result<OwnedHandle, Error> {
        syscall::ports_create(self.system, first.into(), count.into()).map(OwnedHandle::new)
    }

    fn device(&mut self, base: u64, pages: u64) -> Result<OwnedHandle, Error> {
        syscall::memory_physical(self.system, base, pages).map(OwnedHandle::new)
    }

    fn command_line(&mut self) -> Result<CommandLine, Error> {
        let mut bytes = [0; COMMAND_LINE_MAX];
        let len = record::system_text(self.system, InfoKind::CommandLine, &mut bytes)?;
        let line = bytes.get(..len).unwrap_or_default();
        // The kernel keeps nothing but printable ASCII.
        Ok(CommandLine::cut(str::from_utf8(line).unwrap_or_default()))
    }

    fn flush(&mut self, endpoint: &OwnedHandle) -> bool {
        let mut port = Port::new(endpoint.raw());
        let mut message = Message::new();
        let mut heard = false;
        for _ in 0..QUEUED_MAX {
            // The next receive drops the call that this one took, and with it go the handles in the message.
            match port.receive(NOW, &mut message) {
                Event::Call { .. } | Event::Closed { .. } => {}
                Event::Notified(_) => heard = true,
                Event::TimedOut | Event::Failed(_) => break,
            }
        }
        heard
    }

    fn signal(&mut self, notification: &OwnedHandle) {
        // See the trait.
        let _ = syscall::signal(notification.raw(), 1);
    }

    fn now(&self) -> u64 {
        time::now()
    }

    fn tsc(&self) -> u64 {
        syscall::rdtsc()
    }

    fn log(&mut self, line: fmt::Arguments<'_>) {
        println!("{line}");
    }

    fn halt(&mut self) {
        // The kernel ends the system, not in peace, when init does.
        sysroot::exit(ExitCode::FAILURE)
    }
}

//! How a program comes to life: an empty process, its image, its handles, and a first thread that is held.
//!
//! Whatever fails on the way, the process is ended again and nothing remains of it.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use ipc::abi::layout::PAGE_SIZE;
use ipc::abi::startup::{
    CONTROL_OFFSET, ControlBlock, IPC_BUFFER, STACK_BASE, STARTUP_PAGE, Startup, names,
};
use ipc::abi::{Error, Handle, Rights};
use ipc::proto::system::{INIT, Program};
use zerocopy::IntoBytes;

use crate::endpoints::Endpoints;
use crate::grants::{self, What};
use crate::image::{Content, Image, ImageError, Segment};
use crate::machine::{FirstThread, Machine, Pages};
use crate::pci::devices::Device;

/// What is to be launched.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Its entry.
    pub program: &'a Program,
    /// Its name, which [`Program::name`] is not if the entry is the default one.
    pub name: &'a str,
    /// Its image.
    pub image: &'a Image<'a>,
    /// Number of the image.
    pub image_number: u32,
    /// Page of the boot archive at which the file begins.
    pub file_page: u64,
    /// Its arguments.
    pub args: &'a [&'a str],
}

/// A process with a held first thread.
pub struct Launched<M: Machine> {
    /// Process.
    pub process: M::Process,
    /// Its id.
    pub pid: u32,
    /// Pages that it may use.
    pub quota_pages: u64,
    /// Its first thread.
    pub thread: M::Handle,
}

/// Why a program cannot be launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchError {
    /// There is no such file.
    NoImage,
    /// The bytes of the file do not add up to the sum in the boot archive.
    Damaged,
    /// The file is not one that can be loaded.
    Image(ImageError),
    /// Arguments and handles do not fit the startup page.
    StartupTooLarge,
    /// The kernel refused something that this step needs.
    Kernel(Step, Error),
}

/// A step on a program's way to life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Making the endpoints that it serves.
    Endpoints,
    /// Making an empty process.
    Process,
    /// Mapping its image.
    Image,
    /// Giving it its handles.
    Handles,
    /// Making its first thread, with stack and IPC buffer.
    Thread,
    /// Making its startup page.
    Startup,
    /// Letting the thread run.
    Start,
}

impl Step {
    /// Says that the kernel refused it.
    fn refused(self) -> impl Fn(Error) -> LaunchError {
        move |error| LaunchError::Kernel(self, error)
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Endpoints => "its endpoints",
            Self::Process => "its process",
            Self::Image => "its image",
            Self::Handles => "its handles",
            Self::Thread => "its first thread",
            Self::Startup => "its startup page",
            Self::Start => "its start",
        }
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoImage => f.write_str("its file is not in bootfs"),
            Self::Damaged => f.write_str("its file in bootfs is damaged"),
            Self::Image(error) => write!(f, "its file in bootfs cannot be loaded: {error}"),
            Self::StartupTooLarge => f.write_str("its handles do not fit the startup page"),
            Self::Kernel(step, error) => write!(f, "{}: {error}", step.text()),
        }
    }
}

/// Launches a program, which drives this PCI function, if it does; the thread is held.
///
/// # Errors
/// See [`LaunchError`].
pub fn launch<M: Machine>(
    machine: &mut M,
    endpoints: &Endpoints<M::Handle>,
    device: Option<&Device<M::Handle>>,
    request: Request<'_>,
    stdout: Option<M::Handle>,
) -> Result<Launched<M>, LaunchError> {
    let quota_pages = u64::from(request.program.memory_kib) * 1024 / PAGE_SIZE;
    let (process, pid) = machine
        .create_process(request.name, quota_pages, request.image_number)
        .map_err(Step::Process.refused())?;
    let mut loader = Loader {
        machine,
        process,
        handles: Vec::new(),
    };
    let owned = Owned {
        endpoints,
        device,
        pid,
    };
    let thread = loader.load(&owned, request, stdout, quota_pages);
    let Loader { process, .. } = loader;
    match thread {
        Ok(thread) => Ok(Launched {
            process,
            pid,
            quota_pages,
            thread,
        }),
        Err(error) => {
            // A process without a thread cannot end by itself. Should this fail, closing the last handle is all that is left.
            let _ = machine.kill(&process);
            Err(error)
        }
    }
}

/// What init has, of which the process gets a part.
struct Owned<'a, H> {
    endpoints: &'a Endpoints<H>,
    device: Option<&'a Device<H>>,
    /// The process.
    pid: u32,
}

struct Loader<'m, M: Machine> {
    machine: &'m mut M,
    process: M::Process,
    /// What was given so far.
    handles: Vec<(String, Handle)>,
}

impl<M: Machine> Loader<'_, M> {
    /// Fills the process; its first thread is held.
    fn load(
        &mut self,
        owned: &Owned<'_, M::Handle>,
        request: Request<'_>,
        stdout: Option<M::Handle>,
        quota_pages: u64,
    ) -> Result<M::Handle, LaunchError> {
        self.segments(request).map_err(Step::Image.refused())?;
        self.grants(owned, request.program)
            .and_then(|()| self.stdout(stdout))
            .map_err(Step::Handles.refused())?;
        let thread = self.thread(request).map_err(Step::Thread.refused())?;
        self.startup(request, owned.pid, quota_pages)?;
        Ok(thread)
    }

    fn segments(&mut self, request: Request<'_>) -> Result<(), Error> {
        for segment in &request.image.segments {
            self.segment(segment, request.file_page)?;
        }
        Ok(())
    }

    fn segment(&mut self, segment: &Segment<'_>, file_page: u64) -> Result<(), Error> {
        let (machine, process) = (&mut *self.machine, &self.process);
        match segment.content {
            Content::InPlace { first } => machine.map(
                process,
                Pages::Bootfs(file_page + first),
                segment.address,
                segment.pages,
                segment.rights,
            ),
            Content::Copy(bytes) => {
                let memory = machine.create_memory(process, segment.pages, 0, bytes)?;
                machine.map(
                    process,
                    Pages::Memory(&memory),
                    segment.address,
                    segment.pages,
                    segment.rights,
                )
            }
        }
    }

    /// Makes memory and maps it.
    fn memory(
        &mut self,
        address: u64,
        pages: u64,
        rights: Rights,
        offset: u64,
        content: &[u8],
    ) -> Result<M::Handle, Error> {
        let (machine, process) = (&mut *self.machine, &self.process);
        let memory = machine.create_memory(process, pages, offset, content)?;
        machine.map(process, Pages::Memory(&memory), address, pages, rights)?;
        Ok(memory)
    }

    fn give(&mut self, name: String, handle: M::Handle, rights: Rights) -> Result<(), Error> {
        let there = self.machine.give(&self.process, handle, rights)?;
        self.handles.push((name, there));
        Ok(())
    }

    fn grants(&mut self, owned: &Owned<'_, M::Handle>, program: &Program) -> Result<(), Error> {
        let &Owned {
            endpoints,
            device,
            pid,
        } = owned;
        let mut notification = None;
        let mut messages = Vec::new();
        for grant in grants::plan(program, device) {
            let machine = &mut *self.machine;
            let rights = grant.what.rights();
            // Whoever gives a handle must be allowed to.
            let ours = rights | Rights::TRANSFER;
            let handle = match grant.what {
                What::Call(name) => match endpoints.get(name) {
                    Some(endpoint) => machine.mint(endpoint, pid.into())?,
                    // Nobody serves it now: this endpoint dies here, and every call to it fails at once.
                    None => {
                        let dead = machine.create_endpoint()?;
                        machine.mint(&dead, pid.into())?
                    }
                },
                What::Serve(name) => match endpoints.get(name) {
                    Some(endpoint) => machine.duplicate(endpoint, ours)?,
                    None => continue,
                },
                What::System(_) => machine.system(ours)?,
                What::Profiler => machine.profiler(ours)?,
                What::Bootfs { .. } => machine.bootfs(ours)?,
                What::Notification => {
                    let made = machine.create_notification()?;
                    let theirs = machine.duplicate(&made, ours)?;
                    notification = Some(made);
                    theirs
                }
                What::Interrupt { line, bit } => match &notification {
                    Some(notification) => machine.interrupt(line, notification, bit)?,
                    None => continue,
                },
                What::Ports { first, count } => machine.ports(first, count)?,
                What::Device { base, pages } => machine.device(base, pages)?,
                What::Configuration { badge } => match endpoints.get(INIT) {
                    Some(endpoint) => machine.mint(endpoint, badge)?,
                    None => continue,
                },
                What::Line { line, bit } => match &notification {
                    Some(notification) => match machine.interrupt(line, notification, bit) {
                        // Its driver does without it, and says so.
                        Err(Error::Busy | Error::BadArgument) => continue,
                        interrupt => interrupt?,
                    },
                    None => continue,
                },
                What::Message { bit } => match &notification {
                    Some(notification) => {
                        let (interrupt, message) = machine.message(notification, bit)?;
                        messages.push(message);
                        interrupt
                    }
                    None => continue,
                },
                What::Dma => match device {
                    Some(device) => machine.duplicate(&device.dma, ours)?,
                    None => continue,
                },
            };
            self.give(grant.name, handle, rights)?;
        }
        match device {
            Some(device) => device.function.ready(self.machine, &messages),
            None => Ok(()),
        }
    }

    fn stdout(&mut self, stdout: Option<M::Handle>) -> Result<(), Error> {
        match stdout {
            Some(stdout) => self.give(names::STDOUT.into(), stdout, Rights::CALL),
            None => Ok(()),
        }
    }

    fn thread(&mut self, request: Request<'_>) -> Result<M::Handle, Error> {
        let read_write = Rights::READ | Rights::WRITE;
        let stack_bytes = u64::from(request.program.stack_kib) * 1024;
        self.memory(STACK_BASE, stack_bytes / PAGE_SIZE, read_write, 0, &[])?;
        let control = ControlBlock::new(IPC_BUFFER);
        let buffer = self.memory(
            IPC_BUFFER,
            1,
            read_write,
            CONTROL_OFFSET,
            control.as_bytes(),
        )?;
        let first = FirstThread {
            entry: request.image.entry,
            stack: STACK_BASE + stack_bytes,
            argument: STARTUP_PAGE,
            control,
            priority: request.program.priority,
        };
        let thread = self.machine.create_thread(&self.process, first, &buffer)?;
        let rights = Rights::MANAGE | Rights::INSPECT;
        let theirs = self.machine.duplicate(&thread, rights | Rights::TRANSFER)?;
        self.give(names::THREAD.into(), theirs, rights)?;
        Ok(thread)
    }

    fn startup(
        &mut self,
        request: Request<'_>,
        pid: u32,
        quota_pages: u64,
    ) -> Result<(), LaunchError> {
        let handles: Vec<_> = self
            .handles
            .iter()
            .map(|(name, handle)| (name.as_str(), *handle))
            .collect();
        let startup = Startup {
            name: request.name,
            pid,
            // An unmapped page after the image, so that running over its end faults.
            heap_base: request.image.end() + PAGE_SIZE,
            heap_bytes: quota_pages * PAGE_SIZE,
            args: request.args,
            handles: &handles,
        };
        let mut page = [0; PAGE_SIZE as usize];
        let used = startup
            .write(&mut page)
            .map_err(|_| LaunchError::StartupTooLarge)?;
        let page = page.get(..used).unwrap_or_default();
        self.memory(STARTUP_PAGE, 1, Rights::READ, 0, page)
            .map_err(Step::Startup.refused())?;
        Ok(())
    }
}

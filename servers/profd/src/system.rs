//! profd on Sonde: its handles, its rings, its events, and the loop that serves.
//!
//! One notification carries both what the driver signals and what init does; a call, a signal and the time to go on all
//! end the same wait.

extern crate alloc;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use ipc::abi::layout::PRIORITY_MAX;
use ipc::abi::monitor::MonitorInfo;
use ipc::abi::profile::{EventSpec, ProfilerStatus, Source, SourceRequest};
use ipc::abi::startup::names;
use ipc::abi::{Error, Handle, NEVER, Rights, Syscall};
use ipc::bootfs::{self, Bootfs};
use ipc::proto::profd::dispatch;
use ipc::proto::{Message, init};
use profd::catalog::{Catalog, Content};
use profd::clock::Clock;
use profd::driver::{Driver, Losses};
use profd::lscpu::leaves::Leaves;
use profd::rings::Rings;
use profd::service::{Platform, Profd};
use raw_cpuid::CpuIdReaderNative;
use sample_ring::{Geometry, Sample};
use sysroot::thread::{self, JoinHandle};
use sysroot::{
    Connection, Event, ExitCode, Mapping, OwnedHandle, Port, handle, mapping, port, println,
    record, startup, syscall, time,
};

/// Bit of the notification that init signals when a process starts or ends.
const PROCESSES: u64 = 1 << 0;
/// Bit that the driver signals when its phase changes or a ring fills.
const DRIVER: u64 = 1 << 1;
/// Bit that the thread signals that has read the processors.
const SURVEYED: u64 = 1 << 2;

/// Stack of that thread, in bytes.
const SURVEY_STACK: usize = 16 * 1024;

/// Longest time that init gets for an answer, in nanoseconds: without it processes have no names, but samples are true.
const INIT_TIMEOUT: u64 = 1_000_000_000;

/// Serves until its endpoint dies.
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            println!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// Why profd cannot serve.
enum Failure {
    /// Its entry in the configuration does not give it this handle.
    NotGiven(&'static str),
    /// The kernel refused this call.
    Call(Syscall, Error),
    /// The rings cannot be mapped.
    Mapping(Error),
    /// The kernel's rings are not as large as those that this program was built for.
    RingsSize,
    /// What is in them is not what this program was built for.
    RingsHeader,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGiven(name) => write!(f, "no handle {name} was given"),
            Self::Call(syscall, error) => write!(f, "{}: {error}", syscall.name()),
            Self::Mapping(error) => write!(f, "mapping the rings: {error}"),
            Self::RingsSize => f.write_str("the kernel's rings are of another size"),
            Self::RingsHeader => f.write_str("the kernel's rings are of another version"),
        }
    }
}

/// Says which call the kernel refused.
fn refused(syscall: Syscall) -> impl Fn(Error) -> Failure {
    move |error| Failure::Call(syscall, error)
}

fn run() -> Result<(), Failure> {
    let endpoint = given("serve:profd")?;
    let profiler = given(names::PROFILER)?;
    let notification =
        syscall::notification_create().map_err(refused(Syscall::notification_create))?;
    port::bind(notification).map_err(refused(Syscall::bind))?;
    // A profile that an earlier profd was running when it died. There usually is none, which is refused.
    let _ = syscall::profiler_stop(profiler);
    syscall::profiler_notify(profiler, notification, DRIVER)
        .map_err(refused(Syscall::profiler_notify))?;
    let rings = open_rings(profiler)?;
    let clock = Clock::new(startup::info());
    let driver = KernelDriver { profiler, rings };
    let mut server = Profd::new(catalog(), clock, driver, Kernel::new(notification));
    let mut events = Events::subscribe(notification);
    let mut place = Port::new(endpoint);
    let mut message = Message::new();
    let mut deadline = NEVER;
    loop {
        let event = place.receive(deadline, &mut message);
        // What a sample names must be known before it is folded, and who is asked for before it is looked up.
        if matches!(event, Event::Notified(bits) if bits & PROCESSES != 0) {
            events.fetch(|event| server.happened(event));
        }
        match event {
            Event::Call { badge } => {
                events.fetch(|event| server.happened(event));
                place.serve(badge, &mut message, &mut server, dispatch);
            }
            Event::Closed { badge } => server.closed(badge),
            Event::Notified(bits) if bits & SURVEYED != 0 => server.surveyed(&mut place),
            Event::Notified(_) | Event::TimedOut => {}
            Event::Failed(error) => return Err(Failure::Call(Syscall::receive, error)),
        }
        deadline = server.poll(&mut place);
    }
}

fn given(name: &'static str) -> Result<Handle, Failure> {
    startup::handle(name).ok_or(Failure::NotGiven(name))
}

/// Every image in the boot archive. A damaged archive costs the names, not the profile.
fn catalog() -> Catalog<'static> {
    let archive = mapping::bootfs().map(Bootfs::parse);
    let Ok(Ok(archive)) = archive else {
        println!("the boot archive cannot be read: reports will have no symbols");
        return Catalog::new(None);
    };
    let mut catalog = Catalog::new(archive.find(bootfs::KERNEL).map(Content::File));
    for file in archive
        .files()
        .filter(|file| file.name.starts_with(bootfs::PROGRAMS))
    {
        catalog.add(file.name, Content::File(file));
    }
    catalog
}

fn open_rings(profiler: Handle) -> Result<Rings<'static>, Failure> {
    let (memory, bytes) =
        syscall::profiler_rings(profiler).map_err(refused(Syscall::profiler_rings))?;
    if bytes != Geometry::KERNEL.bytes() as u64 {
        return Err(Failure::RingsSize);
    }
    let mapping = Mapping::whole(memory).map_err(Failure::Mapping)?;
    // They are read for as long as profd runs.
    let words = Box::leak(Box::new(mapping)).words();
    Rings::open(words, Geometry::KERNEL).map_err(|_| Failure::RingsHeader)
}

/// The driver behind the profiler handle.
struct KernelDriver {
    profiler: Handle,
    rings: Rings<'static>,
}

impl Driver for KernelDriver {
    fn start(&mut self, source: SourceRequest, event: EventSpec) -> Result<Source, Error> {
        let number = record::profiler_start(self.profiler, source, &[event])?;
        Source::from_raw(number).ok_or(Error::Unsupported)
    }
    fn stop(&mut self) -> Result<(), Error> {
        syscall::profiler_stop(self.profiler)
    }
    fn status(&mut self) -> Result<ProfilerStatus, Error> {
        record::profiler_status(self.profiler)
    }
    fn monitor(&mut self, cpu: u64) -> Result<MonitorInfo, Error> {
        record::profiler_monitor(self.profiler, cpu)
    }
    fn skip(&mut self) {
        self.rings.skip();
    }
    fn drain(&mut self, sink: &mut dyn FnMut(&Sample)) {
        self.rings.drain(sink);
    }
    fn losses(&self) -> Losses {
        self.rings.losses()
    }
}

/// Time, memory and processors.
struct Kernel {
    /// What is signalled when the processors have been read.
    notification: Handle,
    survey: Option<JoinHandle<Result<Vec<Leaves>, Error>>>,
}

impl Kernel {
    const fn new(notification: Handle) -> Self {
        Self {
            notification,
            survey: None,
        }
    }
}

/// Goes to one CPU after the other, and reads what CPUID answers there.
fn survey() -> Result<Vec<Leaves>, Error> {
    let on = |cpu| go_to(cpu).map(|()| Leaves::read(&CpuIdReaderNative));
    (0..startup::info().cpus).map(on).collect()
}

/// Moves the calling thread to a CPU for good, with the highest priority that it may have: its own.
fn go_to(cpu: u64) -> Result<(), Error> {
    let priorities = (0..=u64::from(PRIORITY_MAX)).rev();
    let go = |priority| syscall::thread_set(Handle::NONE, priority, cpu);
    let is_allowed = |gone: &Result<(), Error>| *gone != Err(Error::BadArgument);
    let mut tries = priorities.map(go);
    tries.find(is_allowed).unwrap_or(Err(Error::BadArgument))
}

impl Platform for Kernel {
    type Handle = OwnedHandle;

    fn now(&self) -> u64 {
        time::now()
    }

    fn publish(&mut self, bytes: &[u8]) -> Result<OwnedHandle, Error> {
        let pages = (bytes.len() as u64)
            .div_ceil(ipc::abi::layout::PAGE_SIZE)
            .max(1);
        let (memory, mapping) = Mapping::create(pages)?;
        mapping.write(0, bytes);
        memory.duplicate(Rights::READ | Rights::TRANSFER)
    }

    fn begin_survey(&mut self) -> Result<(), Error> {
        let notification = self.notification;
        let body = move || {
            let found = survey();
            // The notification lives as long as the program.
            let _ = syscall::signal(notification, SURVEYED);
            found
        };
        let builder = thread::Builder::new().stack_size(SURVEY_STACK);
        self.survey = Some(builder.spawn(body)?);
        Ok(())
    }

    fn end_survey(&mut self) -> Result<Vec<Leaves>, Error> {
        // It has signalled, as the last that it does but for its end.
        let thread = self.survey.take().ok_or(Error::WrongState)?;
        thread.join().flatten()
    }

    fn is_exposed(&self) -> bool {
        startup::info().exposed != 0
    }
}

/// What init tells of processes.
struct Events {
    init: Option<init::Client<Connection>>,
    /// What init is to signal.
    notification: Handle,
    /// Init was told so.
    subscribed: bool,
    /// Position of the next event.
    next: u64,
}

impl Events {
    /// Asks init to signal the notification from now on; what happened before is fetched as well.
    fn subscribe(notification: Handle) -> Self {
        let connection = Connection::named("init").map(|init| init.timeout(INIT_TIMEOUT));
        let mut events = Self {
            init: connection.map(init::Client::new),
            notification,
            subscribed: false,
            next: 0,
        };
        events.try_to_subscribe();
        if !events.subscribed {
            println!("init tells nothing yet: reports have no program names until it does");
        }
        events
    }

    fn try_to_subscribe(&mut self) {
        let Some(init) = &mut self.init else { return };
        let rights = Rights::SIGNAL | Rights::TRANSFER;
        self.subscribed = handle::duplicate(self.notification, rights)
            .is_ok_and(|signal| init.subscribe(&(), [signal]).is_ok());
    }

    /// Fetches every event since the last time.
    fn fetch(&mut self, mut sink: impl FnMut(&init::Event)) {
        if !self.subscribed {
            self.try_to_subscribe();
        }
        let Some(init) = &mut self.init else { return };
        while let Ok(Some(event)) = init.next_event(&self.next) {
            self.next = event.position.saturating_add(1).max(self.next + 1);
            sink(&event);
        }
    }
}

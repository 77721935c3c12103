//! Who runs, who ended, and what is done about it.
//!
//! # When a server dies
//! The kernel fails the calls that it was serving. Those that still wait at its endpoints are failed here, at once. What
//! happens to the endpoints then is the entry's choice: with `restart` init keeps them open, and a call made before the
//! next instance runs waits for it, a second at most; with `leave`, or when init gives up, they die, and every call
//! fails at once. With `halt` or `restart-or-halt` the system ends then.

use alloc::collections::VecDeque;
use alloc::string::ToString;
use alloc::vec::Vec;

use ipc::abi::{Error, NEVER};
use ipc::bootfs::Bootfs;
use ipc::proto::init::{Ending, ExitReport, Happening, InitError, Name, RUNNING_MAX};
use ipc::proto::system::{DEFAULT, INIT, OnDeath, Program, Start, SystemConfig};
use ipc::proto::{Responder, Text};

use crate::endpoints::Endpoints;
use crate::events::Events;
use crate::image::Image;
use crate::images::{Images, path};
use crate::launch::{self, LaunchError, Request, Step};
use crate::machine::Machine;
use crate::obituary::Obituary;
use crate::pci::Devices;
use crate::restart::{Backoff, NO_ROOM_DELAY};
use crate::running::Running;

/// Most calls of `wait` that are parked at once.
pub const WAITERS_MAX: usize = 128;
/// Most ended processes that `wait` still knows.
pub const ENDED_MAX: usize = 64;
/// Most subscribers.
pub const SUBSCRIBERS_MAX: usize = 8;

const _: () = assert!(crate::events::KEPT >= 2 * RUNNING_MAX);

/// A server to be started again.
#[derive(Clone, Copy, Debug)]
struct Due {
    program: usize,
    at: u64,
}

/// init's state.
pub struct Supervisor<'a, M: Machine, P: Responder<Handle = M::Handle>> {
    pub(crate) machine: M,
    /// init's own process id.
    pub(crate) own: u32,
    images: Images<'a>,
    config: SystemConfig,
    endpoints: Endpoints<M::Handle>,
    pub(crate) devices: Devices<M::Handle>,
    pub(crate) running: Vec<Running<M, P>>,
    pub(crate) ended: VecDeque<ExitReport>,
    /// By index of the entry.
    backoffs: Vec<Backoff>,
    due: Vec<Due>,
    pub(crate) events: Events,
    /// By badge.
    pub(crate) subscribers: Vec<(u64, M::Handle)>,
}

impl<'a, M: Machine, P: Responder<Handle = M::Handle>> Supervisor<'a, M, P> {
    /// A supervisor with the endpoints of all that starts with the system, and no process but init's own.
    ///
    /// # Errors
    /// The kernel has no room for the endpoints, or does not say who init is.
    pub fn new(mut machine: M, archive: Bootfs<'a>, config: SystemConfig) -> Result<Self, Error> {
        let endpoints = Endpoints::new(&config, &mut machine)?;
        let devices = Devices::find(&config, &mut machine);
        let own = machine.own_status()?.pid as u32;
        let mut supervisor = Self {
            machine,
            own,
            images: Images::new(archive),
            backoffs: alloc::vec![Backoff::default(); config.programs.len()],
            config,
            endpoints,
            devices,
            running: Vec::with_capacity(RUNNING_MAX),
            ended: VecDeque::with_capacity(ENDED_MAX),
            due: Vec::new(),
            events: Events::default(),
            subscribers: Vec::new(),
        };
        let image = supervisor.config.entry(INIT).map(|init| init.image.clone());
        if let Some((file, number)) = image.and_then(|image| supervisor.images.find(&image))
            && let Ok(image) = Image::read(file.data)
        {
            let name = Text::cut(INIT);
            supervisor.tell_start(own, name, file.name, number, &image);
        }
        Ok(supervisor)
    }

    /// The endpoint that init itself serves under this name.
    #[must_use]
    pub fn endpoint(&self, name: &str) -> Option<&M::Handle> {
        self.endpoints.get(name)
    }

    /// Starts what starts with the system.
    pub fn boot(&mut self) {
        for index in 0..self.config.programs.len() {
            let boots = |program: &Program| program.start == Start::Boot && program.name != INIT;
            if self.config.programs.get(index).is_some_and(boots) {
                self.start_server(index);
            }
        }
    }

    /// When [`Self::poll`] has something to do next, in nanoseconds.
    #[must_use]
    pub fn deadline(&self) -> u64 {
        self.due.iter().map(|due| due.at).min().unwrap_or(NEVER)
    }

    /// Looks for processes that ended and for servers to start again.
    pub fn poll(&mut self, responder: &mut P) {
        // Failing the calls at a dead server's endpoint may take away the news of another death: then look again.
        while self.bury(responder) {}
        let now = self.machine.now();
        while let Some(index) = self.due.iter().position(|due| due.at <= now) {
            let due = self.due.swap_remove(index);
            self.start_server(due.program);
        }
    }

    /// Nobody holds a handle with this badge any more: who had it hears of nothing, and releases nothing.
    pub fn closed(&mut self, badge: u64) {
        self.subscribers
            .retain(|(subscriber, _)| *subscriber != badge);
        let orphans = self
            .running
            .iter()
            .filter(|running| running.starter == badge);
        for orphan in orphans.filter(|running| running.held.is_some()) {
            // One that cannot be killed is dead already.
            let _ = self.machine.kill(&orphan.process);
        }
    }

    /// Starts a program for a caller; the thread is held.
    pub(crate) fn launch(
        &mut self,
        name: &str,
        args: &[&str],
        stdout: Option<M::Handle>,
        starter: u64,
    ) -> Result<u32, InitError> {
        let programs = &self.config.programs;
        let named = |wanted: &str| programs.iter().position(|program| program.name == wanted);
        let index = match name {
            DEFAULT => None,
            INIT => return Err(InitError::AlreadyRuns),
            _ => named(name).or_else(|| named(DEFAULT)),
        };
        let entry = index.and_then(|index| Some((index, programs.get(index)?.clone())));
        let (index, program) = entry.ok_or(InitError::NoSuchProgram)?;
        let only_one =
            program.start == Start::Boot || !program.serves.is_empty() || program.pci.is_some();
        if only_one && self.running.iter().any(|running| running.program == index) {
            return Err(InitError::AlreadyRuns);
        }
        if self.running.len() >= RUNNING_MAX {
            return Err(InitError::TooManyPrograms);
        }
        match self.launch_entry(index, &program, name, args, stdout, starter) {
            Ok(pid) => {
                // Who starts a server by hand does not wait for init to do it.
                self.due.retain(|due| due.program != index);
                Ok(pid)
            }
            Err(error) => {
                if !self.due.iter().any(|due| due.program == index) {
                    self.endpoints.shut(&program);
                }
                Err(refusal(error))
            }
        }
    }

    fn launch_entry(
        &mut self,
        index: usize,
        program: &Program,
        name: &str,
        args: &[&str],
        stdout: Option<M::Handle>,
        starter: u64,
    ) -> Result<u32, LaunchError> {
        let path = path(program, name);
        let (file, image_number) = self.images.find(&path).ok_or(LaunchError::NoImage)?;
        self.images.verify(&file, image_number)?;
        let image = Image::read(file.data).map_err(LaunchError::Image)?;
        self.endpoints
            .open(program, &mut self.machine)
            .map_err(|error| LaunchError::Kernel(Step::Endpoints, error))?;
        let request = Request {
            program,
            name,
            image: &image,
            image_number,
            file_page: file.offset as u64 / ipc::abi::layout::PAGE_SIZE,
            args,
        };
        let device = self.devices.of(index);
        let launched = launch::launch(&mut self.machine, &self.endpoints, device, request, stdout)?;
        let name = Text::cut(name);
        self.running.push(Running {
            pid: launched.pid,
            name: name.clone(),
            program: index,
            process: launched.process,
            quota_pages: launched.quota_pages,
            held: Some(launched.thread),
            since: self.machine.now(),
            starter,
            waiters: Vec::new(),
        });
        self.tell_start(launched.pid, name, file.name, image_number, &image);
        Ok(launched.pid)
    }

    /// The first program behind this one, by name, that a caller can start.
    pub(crate) fn program_after(&self, name: &str) -> Option<Name> {
        let entries = &self.config.programs;
        let entries = entries.iter().map(|program| program.name.as_str());
        let files = self.images.programs();
        let on_demand = |name: &str| {
            let entry = self.config.entry(name);
            name != DEFAULT && entry.is_some_and(|entry| entry.start == Start::Demand)
        };
        entries
            .chain(files)
            .filter(|&other| other > name && on_demand(other))
            .filter_map(|name| Name::try_from(name).ok())
            .min()
    }

    /// Starts a server by itself. What the kernel refuses counts as one that died at once; a file does not get better.
    fn start_server(&mut self, index: usize) {
        let Some(program) = self.config.programs.get(index).cloned() else {
            return;
        };
        let name = &program.name;
        let error = match self.launch_entry(index, &program, name, &[], None, 0) {
            Ok(pid) => return self.run(pid, name),
            Err(error) => error,
        };
        self.machine
            .log(format_args!("{name} cannot be started: {error}"));
        let delay = match error {
            LaunchError::Kernel(
                _,
                Error::OutOfMemory | Error::QuotaExceeded | Error::LimitReached,
            ) => Some(NO_ROOM_DELAY),
            LaunchError::Kernel(..) => self.restart_delay(index, 0),
            LaunchError::NoImage
            | LaunchError::Damaged
            | LaunchError::Image(_)
            | LaunchError::StartupTooLarge => None,
        };
        self.succeed(index, delay);
    }

    /// Lets a server run that was just launched. If the kernel refuses, the server dies, and is treated as one that did.
    fn run(&mut self, pid: u32, name: &str) {
        let launched = self.running.iter_mut().find(|running| running.pid == pid);
        let Some(running) = launched else { return };
        let thread = running.held.take();
        let started = thread.map_or(Ok(()), |thread| self.machine.start(&thread));
        if let Err(error) = started {
            // One that cannot be killed is dead already.
            let _ = self.machine.kill(&running.process);
            let error = LaunchError::Kernel(Step::Start, error);
            self.machine
                .log(format_args!("{name} cannot be started: {error}"));
        }
    }

    /// Takes leave of the processes that ended. Whether it has to look again.
    fn bury(&mut self, responder: &mut P) -> bool {
        let mut again = false;
        let mut index = 0;
        while let Some(running) = self.running.get(index) {
            let status = self.machine.status(&running.process);
            match status.ok().and_then(|status| running.report(&status)) {
                Some(report) => again |= self.bury_one(index, report, responder),
                None => index += 1,
            }
        }
        again
    }

    fn bury_one(&mut self, index: usize, report: ExitReport, responder: &mut P) -> bool {
        let dead = self.running.swap_remove(index);
        if let Some(device) = self.devices.of(dead.program) {
            device.function.quiesce(&mut self.machine);
        }
        let ran = self.machine.now().saturating_sub(dead.since);
        for waiter in dead.waiters {
            // A caller that is gone needs no answer.
            let _ = waiter.answer(responder, &report);
        }
        let happening = Happening::Ended {
            ending: report.ending,
            code: report.code,
        };
        self.tell(report.pid, happening);
        self.log_end(dead.program, &report);
        let delay = self.restart_delay(dead.program, ran);
        let again = self.succeed(dead.program, delay);
        if self.ended.len() == ENDED_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back(report);
        again
    }

    /// Writes to the log how a process ended, if somebody may miss it or look for the reason.
    fn log_end(&mut self, index: usize, report: &ExitReport) {
        let is_missed =
            |program: &Program| program.on_death != OnDeath::Leave || !program.serves.is_empty();
        let missed = self.config.programs.get(index).is_some_and(is_missed);
        if missed || report.ending == Ending::Faulted {
            let name = report.name.as_str();
            let program = self.config.programs.get(index);
            let symbols = program.and_then(|program| self.images.symbols(&path(program, name)));
            let obituary = Obituary { report, symbols };
            for line in obituary.to_string().lines() {
                self.machine.log(format_args!("{line}"));
            }
        }
    }

    /// How long to wait before a program that ran so long is started again; `None`: it is not.
    fn restart_delay(&mut self, index: usize, ran: u64) -> Option<u64> {
        let program = self.config.programs.get(index)?;
        match program.on_death {
            OnDeath::Restart | OnDeath::RestartOrHalt => {}
            OnDeath::Leave | OnDeath::Halt => return None,
        }
        let delay = self.backoffs.get_mut(index)?.died(ran);
        if delay.is_none() {
            let name = &program.name;
            self.machine
                .log(format_args!("{name} dies each time; not started again"));
        }
        delay
    }

    /// Does what a program's entry says for its death: it is started again after this delay, if there is one. Whether the
    /// death of another was heard of meanwhile.
    fn succeed(&mut self, index: usize, delay: Option<u64>) -> bool {
        let Some(program) = self.config.programs.get(index) else {
            return false;
        };
        let halts = match program.on_death {
            OnDeath::Halt | OnDeath::RestartOrHalt => delay.is_none(),
            OnDeath::Restart | OnDeath::Leave => false,
        };
        if halts {
            let name = &program.name;
            self.machine
                .log(format_args!("nothing works without {name}"));
            self.machine.halt();
        }
        let again = self.endpoints.flush(program, &mut self.machine);
        match delay {
            Some(delay) => {
                let at = self.machine.now().saturating_add(delay);
                self.due.push(Due { program: index, at });
            }
            None => self.endpoints.shut(program),
        }
        again
    }

    fn tell_start(&mut self, pid: u32, name: Name, file: &str, number: u32, image: &Image<'_>) {
        let happening = Happening::Started {
            name,
            file: Text::cut(file),
            image: number,
            build_id: image.build_id,
            load_bias: 0,
        };
        self.tell(pid, happening);
    }

    fn tell(&mut self, pid: u32, what: Happening) {
        let tsc = self.machine.tsc();
        let (own, running) = (self.own, &self.running);
        let runs = |pid: u32| pid == own || running.iter().any(|running| running.pid == pid);
        self.events.push(tsc, pid, what, runs);
        for (_, notification) in &self.subscribers {
            self.machine.signal(notification);
        }
    }
}

/// A launch that failed, as its caller hears it.
fn refusal(error: LaunchError) -> InitError {
    match error {
        LaunchError::NoImage => InitError::NoSuchProgram,
        LaunchError::Damaged => InitError::Damaged,
        LaunchError::Image(_) => InitError::BadImage,
        LaunchError::StartupTooLarge => InitError::ArgsTooLong,
        LaunchError::Kernel(_, error) => kernel_refusal(error),
    }
}

/// A call that the kernel refused, as init's caller hears it.
pub(crate) const fn kernel_refusal(error: Error) -> InitError {
    match error {
        Error::QuotaExceeded => InitError::QuotaExceeded,
        Error::OutOfMemory => InitError::OutOfMemory,
        Error::LimitReached => InitError::TooManyPrograms,
        other => InitError::Kernel(other),
    }
}

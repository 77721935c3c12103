//! profd as others call it: one profile at a time, its caller parked until it is done.

use alloc::boxed::Box;
use alloc::vec::Vec;

use ipc::abi::{Error, NEVER};
use ipc::proto::init::{Event, Happening};
use ipc::proto::profd::{
    Answer, Holder, Locate, Measure, PLACE_MAX, Processors, Refusal, Rendering, Request, Service,
    SessionName, Spot, Start, Stop,
};
use ipc::proto::{Call, Parked, Responder, Served, Text};

use crate::atlas::Atlas;
use crate::catalog::Catalog;
use crate::clock::Clock;
use crate::driver::Driver;
use crate::early::{EarlyStops, Id};
use crate::encode::encode;
use crate::lscpu::leaves::Leaves;
use crate::process::{Process, Processes};
use crate::profile::Profile;
use crate::report::{Options, report};
use crate::session::{DISARMING, Progress, Session, after, next_look};
use crate::stacks::stacks;
use crate::survey::Survey;

/// How long a profile waits for CPUs to disarm after the one before, in milliseconds.
const DISARM_WAIT_MS: u16 = 2000;

/// What profd needs of the system it runs on, beside the driver.
pub trait Platform {
    /// An owned handle.
    type Handle;

    /// Nanoseconds since boot.
    fn now(&self) -> u64;

    /// Makes a memory object that begins with these bytes, and gives a handle that can only be read through.
    ///
    /// # Errors
    /// The kernel's: there is no memory.
    fn publish(&mut self, bytes: &[u8]) -> Result<Self::Handle, Error>;

    /// Begins to read what CPUID answers on each CPU. [`Profd::surveyed`] is called when that is done.
    ///
    /// # Errors
    /// The kernel's: there is no memory.
    fn begin_survey(&mut self) -> Result<(), Error>;

    /// What was read, by CPU.
    ///
    /// # Errors
    /// The kernel's.
    fn end_survey(&mut self) -> Result<Vec<Leaves>, Error>;

    /// Whether the kernel found that programs can read its memory.
    fn is_exposed(&self) -> bool;
}

/// The server.
pub struct Profd<'a, D, S, P: Responder> {
    catalog: Catalog<'a>,
    processes: Processes,
    clock: Clock,
    driver: D,
    platform: S,
    running: Option<Running<P>>,
    /// Profiles that were stopped and did not run.
    early: EarlyStops,
    survey: Survey<P>,
}

/// How far a profile is.
enum Stage {
    /// CPUs still disarm after the one before, which ended without them: it starts as soon as they have, until this time.
    Settling { deadline: u64, stop_asked: bool },
    /// It runs.
    Running(Box<Session>),
}

/// The profile that runs, and who waits for it.
struct Running<P: Responder> {
    stage: Stage,
    request: Request,
    id: Id,
    /// For whom.
    name: SessionName,
    caller: Parked<P, Measure>,
}

impl<P: Responder> Running<P> {
    /// Asks for its end.
    fn stop(&mut self) {
        match &mut self.stage {
            Stage::Settling { stop_asked, .. } => *stop_asked = true,
            Stage::Running(session) => session.stop(),
        }
    }

    /// Who runs it, for others.
    fn holder(&self, processes: &Processes) -> Holder {
        // init makes the badge of a program's handle from its process id.
        let pid = self.id.badge as u32;
        Holder {
            pid,
            program: processes
                .get(pid)
                .map(|process| process.name.clone())
                .unwrap_or_default(),
            session: self.name.clone(),
        }
    }
}

impl<'a, D, S, P> Profd<'a, D, S, P>
where
    D: Driver,
    P: Responder,
    S: Platform<Handle = P::Handle>,
{
    /// A server that knows these images and no process yet.
    #[must_use]
    pub fn new(catalog: Catalog<'a>, clock: Clock, driver: D, platform: S) -> Self {
        Self {
            catalog,
            processes: Processes::default(),
            clock,
            driver,
            platform,
            running: None,
            early: EarlyStops::default(),
            survey: Survey::default(),
        }
    }

    /// The driver.
    pub const fn driver(&mut self) -> &mut D {
        &mut self.driver
    }

    /// Learns what init tells.
    pub fn happened(&mut self, event: &Event) {
        match &event.what {
            Happening::Started {
                name,
                file,
                build_id,
                load_bias,
                ..
            } => {
                let process = Process {
                    name: name.clone(),
                    image: file.clone(),
                    build_id: *build_id,
                    load_bias: *load_bias,
                    ended: None,
                };
                self.processes.start(event.pid, process);
            }
            Happening::Ended { .. } => self.processes.end(event.pid, event.tsc),
        }
    }

    /// Nobody holds a handle with this badge any more: a profile that was asked for through it is ended.
    pub fn closed(&mut self, badge: u64) {
        self.early.forget(badge);
        if let Some(running) = &mut self.running
            && running.id.badge == badge
        {
            running.stop();
        }
    }

    /// Goes on with what runs. To be called after everything that was received, and at the time that it returns.
    pub fn poll(&mut self, responder: &mut P) -> u64 {
        let Some(running) = &mut self.running else {
            return NEVER;
        };
        let atlas = Atlas {
            catalog: &self.catalog,
            processes: &self.processes,
        };
        let (driver, now) = (&mut self.driver, self.platform.now());
        let progress = match &mut running.stage {
            Stage::Settling {
                stop_asked: true, ..
            } => Err(Refusal::Stopped),
            Stage::Settling { deadline, .. } => {
                match Session::start(running.request, self.clock, atlas, driver) {
                    Ok(session) => {
                        running.stage = Stage::Running(Box::new(session));
                        return now;
                    }
                    Err(DISARMING) if now < *deadline => return next_look(now, *deadline),
                    Err(refusal) => Err(refusal),
                }
            }
            Stage::Running(session) => session.poll(atlas, driver, now),
        };
        let outcome = match progress {
            Ok(Progress::Wait(until)) => return until,
            Ok(Progress::Done(profile)) => Ok(profile),
            Err(refusal) => Err(refusal),
        };
        let Some(running) = self.running.take() else {
            return NEVER;
        };
        let published = outcome.and_then(|profile| self.publish(&profile, running.request));
        // If the caller is gone, nobody misses the answer.
        let _ = match published {
            Ok((answer, handle)) => running.caller.answer_with(responder, &answer, [handle]),
            Err(refusal) => running.caller.refuse(responder, &refusal),
        };
        NEVER
    }

    fn publish(
        &mut self,
        profile: &Profile,
        request: Request,
    ) -> Result<(Answer, P::Handle), Refusal> {
        let mut bytes = encode(profile);
        let text = render(profile, request);
        let length = |bytes: usize| u32::try_from(bytes).map_err(|_| Refusal::NoMemory);
        let answer = Answer {
            profile: length(bytes.len())?,
            text_start: length(bytes.len())?,
            text: length(text.len())?,
        };
        bytes.extend(text);
        let handle = self
            .platform
            .publish(&bytes)
            .map_err(|_| Refusal::NoMemory)?;
        Ok((answer, handle))
    }

    /// The processors have been read.
    pub fn surveyed(&mut self, responder: &mut P) {
        self.survey
            .end(&mut self.driver, &mut self.platform, responder);
    }
}

/// A profile's text, as the request wants it.
fn render(profile: &Profile, request: Request) -> Vec<u8> {
    let chains = usize::from(request.chains);
    let text = match request.rendering {
        Rendering::Folded => stacks(profile, chains),
        rendering => report(
            profile,
            Options {
                chains,
                verbose: rendering == Rendering::Verbose,
            },
        ),
    };
    text.into_bytes()
}

impl<D, S, P> Service<P> for Profd<'_, D, S, P>
where
    D: Driver,
    P: Responder,
    S: Platform<Handle = P::Handle>,
{
    fn measure(&mut self, call: Call<'_, P, Measure>, start: Start) -> Served<Measure, P::Handle> {
        let Start {
            request,
            number,
            session: name,
        } = start;
        let badge = call.badge();
        let id = Id { badge, number };
        if self.early.take(id) {
            return Err(Refusal::Stopped);
        }
        if let Some(running) = &self.running {
            let holder = running.holder(&self.processes);
            return Err(Refusal::Busy { holder });
        }
        let atlas = Atlas {
            catalog: &self.catalog,
            processes: &self.processes,
        };
        let stage = match Session::start(request, self.clock, atlas, &mut self.driver) {
            Ok(session) => Stage::Running(Box::new(session)),
            Err(DISARMING) => Stage::Settling {
                deadline: after(self.platform.now(), DISARM_WAIT_MS),
                stop_asked: false,
            },
            Err(refusal) => return Err(refusal),
        };
        let Ok((caller, outcome)) = call.park() else {
            // The driver goes idle by itself; that it may fail to stop changes nothing for the caller.
            let _ = self.driver.stop();
            return Err(Refusal::NoMemory);
        };
        self.running = Some(Running {
            stage,
            request,
            id,
            name,
            caller,
        });
        Ok(outcome)
    }

    fn stop(&mut self, call: Call<'_, P, Stop>, number: u64) -> Served<Stop, P::Handle> {
        let badge = call.badge();
        let id = Id { badge, number };
        match &mut self.running {
            Some(running) if running.id == id => running.stop(),
            _ => self.early.add(id),
        }
        Ok(call.reply(()))
    }

    fn locate(&mut self, call: Call<'_, P, Locate>, spot: Spot) -> Served<Locate, P::Handle> {
        let atlas = Atlas {
            catalog: &self.catalog,
            processes: &self.processes,
        };
        let name = atlas.locate(spot.pid, spot.address, spot.is_return);
        Ok(call.reply(name.map(|name| Text::<PLACE_MAX>::cut(&name))))
    }

    fn processors(
        &mut self,
        call: Call<'_, P, Processors>,
        verbose: bool,
    ) -> Served<Processors, P::Handle> {
        self.survey
            .serve(call, verbose, &mut self.driver, &mut self.platform)
    }
}

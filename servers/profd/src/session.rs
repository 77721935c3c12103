//! One profile, from its start to its result: a state machine over a driver, with time passed in.
//!
//! ```text
//! start -> Arming -> Open (drained) -> Closing -> done
//!             |                   stop asked, or the window's end
//!             +-> Abandoning -> refused
//!          some CPU did not arm, or stop asked
//! ```
//!
//! Whoever runs it calls [`Session::poll`] when the driver signals, and when the time that the last poll named has come.
//! The driver is not believed either: however wild its answers are, every wait ends and nothing panics.

use alloc::boxed::Box;

use ipc::abi::Error;
use ipc::abi::monitor::Verdict;
use ipc::abi::profile::{
    DOMAINS_ALL, EVENT_CYCLES, EventSpec, Phase, ProfilerStatus, SampleCounters, Source,
};
use ipc::proto::profd::{Refusal, Request, Source as AskedSource};

use crate::atlas::Atlas;
use crate::clock::Clock;
use crate::collect::Collector;
use crate::driver::{Driver, Losses};
use crate::process::Fate;
use crate::profile::{Filter, Profile};
use crate::request;

/// How long CPUs may take to arm, in milliseconds; a tick is 10.
pub const ARM_MS: u16 = 500;
/// How long they may take to disarm, in milliseconds.
pub const DISARM_MS: u16 = 500;
/// Longest time between two looks at CPUs that arm or disarm, in milliseconds.
const LOOK_MS: u64 = 20;
/// What the driver answers while CPUs still disarm after the profile before.
pub const DISARMING: Refusal = driver_error(Error::Busy);
/// Longest time between two drains, in milliseconds: a ring of the fastest source fills in about a second.
pub const DRAIN_MS: u64 = 250;

/// CPUs that are asked at most: a mask has no more.
const CPUS_MAX: u64 = 64;
const MS: u64 = 1_000_000;

/// What a poll came to.
#[derive(Debug)]
pub enum Progress {
    /// Poll again when the driver signals, and at this time (nanoseconds since boot).
    Wait(u64),
    /// The profile is done, and the driver idle.
    Done(Box<Profile>),
}

/// A profile that runs.
#[derive(Debug)]
pub struct Session {
    request: Request,
    clock: Clock,
    source: Source,
    before: SampleCounters,
    collector: Collector,
    state: State,
    stop_asked: bool,
}

/// Deadlines of CPUs are set by the first poll that waits for them: what came before, to index the files or to read full rings,
/// took time of its own, for which no CPU is to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// CPUs begin to sample.
    Arming { deadline: Option<u64> },
    /// The window is open, until `ends` (nanoseconds since boot).
    Open { window: Window, ends: u64 },
    /// CPUs cease to sample.
    Closing {
        window: Window,
        deadline: Option<u64>,
    },
    /// CPUs cease to sample, and there will be no profile.
    Abandoning {
        refusal: Refusal,
        deadline: Option<u64>,
    },
}

/// The window, in TSC ticks, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    opened: u64,
    closes: u64,
    stopped: bool,
}

impl Session {
    /// Checks a request and starts the driver. To be polled at once.
    ///
    /// # Errors
    /// The request cannot be run, and nothing is armed.
    pub fn start(
        request: Request,
        clock: Clock,
        atlas: Atlas<'_, '_>,
        driver: &mut impl Driver,
    ) -> Result<Self, Refusal> {
        if !request::is_valid(&request) {
            return Err(Refusal::BadRequest);
        }
        if let Some(pid) = request.pid {
            match atlas.processes.fate(pid) {
                Fate::Live => {}
                Fate::Ended => return Err(Refusal::ProcessEnded { pid }),
                Fate::Unknown => return Err(Refusal::NoProcess { pid }),
            }
        }
        atlas.prepare();
        let status = driver.status().map_err(driver_error)?;
        let (before, cpus) = (status.counters, status.cpus);
        let collector = Collector::new(&request, driver);
        let cycles = EventSpec {
            event: EVENT_CYCLES,
            raw: 0,
            frequency: 0,
            domains: DOMAINS_ALL,
        };
        let source = driver
            .start(request.source.into(), cycles)
            .map_err(|error| match error {
                Error::Unsupported => no_source(driver, request.source, cpus),
                error => driver_error(error),
            })?;
        Ok(Self {
            request,
            clock,
            source,
            before,
            collector,
            state: State::Arming { deadline: None },
            stop_asked: false,
        })
    }

    /// Asks for the window to end now; the next poll does it.
    pub const fn stop(&mut self) {
        self.stop_asked = true;
    }

    /// When what is waited for must be there.
    fn limit(&mut self, now: u64) -> u64 {
        let (deadline, patience_ms) = match &mut self.state {
            State::Open { ends, .. } => return *ends,
            State::Arming { deadline } => (deadline, ARM_MS),
            State::Closing { deadline, .. } | State::Abandoning { deadline, .. } => {
                (deadline, DISARM_MS)
            }
        };
        *deadline.get_or_insert(after(now, patience_ms))
    }

    /// Takes the next step. `now` is in nanoseconds since boot.
    ///
    /// # Errors
    /// There will be no profile, and the driver was told to stop.
    pub fn poll(
        &mut self,
        atlas: Atlas<'_, '_>,
        driver: &mut impl Driver,
        now: u64,
    ) -> Result<Progress, Refusal> {
        let status = match driver.status() {
            Ok(status) => status,
            Err(error) => {
                // That it may fail to stop, too, changes nothing for the caller.
                let _ = driver.stop();
                return Err(driver_error(error));
            }
        };
        let open = status.phase == Phase::Open as u64;
        let idle = status.phase == Phase::Idle as u64;
        let limit = self.limit(now);
        match self.state.clone() {
            State::Arming { .. } if open => {
                let (window, ends) = self.window(status.opened, now);
                self.state = State::Open { window, ends };
                Ok(Progress::Wait(now))
            }
            State::Arming { .. } => {
                let late = Refusal::NotArmed {
                    cpus: status.stragglers,
                    waited_ms: ARM_MS,
                };
                let refusal = if self.stop_asked {
                    Refusal::Stopped
                } else {
                    late
                };
                if !self.stop_asked && now < limit {
                    return Ok(settling(now, limit));
                }
                stop(driver)?;
                self.state = State::Abandoning {
                    refusal,
                    deadline: None,
                };
                Ok(Progress::Wait(now))
            }
            State::Open { window, .. } => {
                self.collector
                    .drain(driver, atlas, window.opened, window.closes);
                if open && !self.stop_asked && now < limit {
                    return Ok(Progress::Wait(limit.min(now.saturating_add(DRAIN_MS * MS))));
                }
                stop(driver)?;
                let window = Window {
                    stopped: now < limit,
                    ..window
                };
                self.state = State::Closing {
                    window,
                    deadline: None,
                };
                Ok(Progress::Wait(now))
            }
            State::Closing { .. } | State::Abandoning { .. } if !idle && now < limit => {
                Ok(settling(now, limit))
            }
            State::Closing { window, .. } => {
                let closes = window.closes.min(closed(&status, window));
                self.collector.drain(driver, atlas, window.opened, closes);
                let window = Window { closes, ..window };
                let profile = self.profile(atlas, driver.losses(), &status, window);
                Ok(Progress::Done(Box::new(profile)))
            }
            State::Abandoning { refusal, .. } => Err(refusal),
        }
    }

    /// The window that was opened at this TSC, and when it ends in nanoseconds since boot.
    fn window(&self, opened: u64, now: u64) -> (Window, u64) {
        let window_ms = self.request.window_ms;
        let closes = opened.saturating_add(self.clock.ticks(window_ms.into()));
        // A driver that says it opened in the future must not keep its caller longer than the window.
        let ends = after(self.clock.nanoseconds(opened).min(now), window_ms);
        (
            Window {
                opened,
                closes,
                stopped: false,
            },
            ends,
        )
    }

    fn profile(
        &self,
        atlas: Atlas<'_, '_>,
        losses: Losses,
        status: &ProfilerStatus,
        window: Window,
    ) -> Profile {
        let asked_ms = u32::from(self.request.window_ms);
        let profiled_ms = if window.stopped {
            self.clock
                .milliseconds(window.closes - window.opened)
                .min(asked_ms)
        } else {
            asked_ms
        };
        let filter = self.request.pid.map(|pid| Filter {
            pid,
            name: atlas
                .processes
                .get(pid)
                .map(|process| process.name.as_str().into())
                .unwrap_or_default(),
            fate: atlas.processes.fate(pid),
        });
        let idle = status.phase == Phase::Idle as u64;
        let resolved = self.collector.resolve(atlas);
        Profile {
            asked_ms,
            profiled_ms,
            source: self.source,
            frequency: status.frequency,
            depth: self.request.depth,
            filter,
            cpus: self.collector.cpus(),
            asked_cpus: u32::try_from(status.cpus).unwrap_or(u32::MAX),
            counting: status.counting.count_ones(),
            unconfirmed: if idle { 0 } else { status.stragglers },
            counts: self
                .collector
                .counts(self.clock, losses, &self.before, &status.counters),
            came: self.collector.came(status.cpus),
            strings: resolved.strings,
            accounts: resolved.accounts,
            images: resolved.images,
            chains: resolved.chains,
            addresses: resolved.addresses,
        }
    }
}

/// Why there is no such source: of the counters, what the first CPU says whose counter cannot be used.
fn no_source(driver: &mut impl Driver, asked: AskedSource, cpus: u64) -> Refusal {
    let mut monitors =
        (0..cpus.min(CPUS_MAX)).filter_map(|cpu| Some((cpu, driver.monitor(cpu).ok()?)));
    match monitors.find(|(_, monitor)| monitor.verdict != Verdict::Works as u64) {
        Some((cpu, monitor)) if asked == AskedSource::Pmu => Refusal::NoCounter {
            cpu: cpu as u8,
            interface: monitor.interface as u8,
            verdict: monitor.verdict as u8,
        },
        _ => Refusal::NoSource { asked },
    }
}

/// When stop was asked, as the driver saw it, if that makes sense.
fn closed(status: &ProfilerStatus, window: Window) -> u64 {
    if status.closed >= window.opened {
        status.closed
    } else {
        window.closes
    }
}

/// Waits for CPUs to arm or disarm.
fn settling(now: u64, deadline: u64) -> Progress {
    Progress::Wait(next_look(now, deadline))
}

/// When to look next at CPUs that arm or disarm.
#[must_use]
pub fn next_look(now: u64, deadline: u64) -> u64 {
    deadline.min(now.saturating_add(LOOK_MS * MS))
}

/// So many milliseconds from now, in nanoseconds.
#[must_use]
pub fn after(now: u64, milliseconds: u16) -> u64 {
    now.saturating_add(u64::from(milliseconds) * MS)
}

/// Stops the driver; one that has stopped is fine.
fn stop(driver: &mut impl Driver) -> Result<(), Refusal> {
    match driver.stop() {
        Ok(()) | Err(Error::WrongState) => Ok(()),
        Err(error) => Err(driver_error(error)),
    }
}

const fn driver_error(error: Error) -> Refusal {
    Refusal::Driver {
        error: error as u64,
    }
}

//! Programs that a session runs in the background, and how they ended.

use alloc::vec::Vec;
use core::fmt;

use ipc::proto::CallError;
use ipc::proto::init::{InitError, Name};

use crate::ending;
use crate::session::Session;
use crate::system::System;

/// Most background programs of a session.
pub const JOBS_MAX: usize = 32;

/// A program in the background.
#[derive(Debug)]
struct Job {
    pid: u32,
    name: Name,
    /// It belongs to `demo`.
    demo: bool,
}

/// The session's background programs that are not known to have ended.
#[derive(Debug, Default)]
pub struct Jobs(Vec<Job>);

impl Jobs {
    /// How many more can be kept.
    pub fn room(&self) -> usize {
        JOBS_MAX.saturating_sub(self.0.len())
    }

    /// Keeps one.
    pub fn add(&mut self, pid: u32, name: Name) {
        let demo = false;
        self.0.push(Job { pid, name, demo });
    }

    /// Keeps one that belongs to `demo`.
    pub fn add_demo(&mut self, pid: u32, name: Name) {
        let demo = true;
        self.0.push(Job { pid, name, demo });
    }

    /// Those of `demo`, in the order in which they were started.
    pub fn demo(&self) -> Vec<u32> {
        let demo = self.0.iter().filter(|job| job.demo);
        demo.map(|job| job.pid).collect()
    }

    /// Forgets one whose end the user has asked for, so that it is not news.
    pub fn forget(&mut self, pid: u32) {
        self.0.retain(|job| job.pid != pid);
    }

    /// Reports those that have ended otherwise than with code 0, and forgets all that have. What could not be told is told the
    /// next time.
    ///
    /// # Errors
    /// As for writing.
    pub fn report(&mut self, system: &mut dyn System, session: &mut dyn Session) -> fmt::Result {
        let mut told = Ok(());
        self.0.retain(|job| {
            if told.is_err() || !has_ended(job.pid, system) {
                return true;
            }
            told = tell(job, system, session);
            told.is_err()
        });
        told
    }
}

/// Whether a process is known to have ended. If init does not answer, it is asked again at the next prompt.
fn has_ended(pid: u32, system: &mut dyn System) -> bool {
    match system.process(pid) {
        Ok(Some(process)) => process.pid != pid,
        Ok(None) => true,
        Err(_) => false,
    }
}

fn tell(job: &Job, system: &mut dyn System, session: &mut dyn Session) -> fmt::Result {
    let Job { pid, ref name, .. } = *job;
    match system.wait(pid) {
        Ok(report) => ending::describe(&report, system, session),
        Err(CallError::Service(InitError::NoSuchProcess)) => {
            writeln!(session, "{name}: ended; how is no longer known (pid {pid})")
        }
        Err(error) => writeln!(session, "{name}: ended, but {error} (pid {pid})"),
    }
}

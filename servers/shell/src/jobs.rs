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

/// The session's background programs that are not known to have ended.
#[derive(Debug, Default)]
pub struct Jobs(Vec<(u32, Name)>);

impl Jobs {
    /// Whether another one can be kept.
    pub fn has_room(&self) -> bool {
        self.0.len() < JOBS_MAX
    }

    /// Keeps one.
    pub fn add(&mut self, pid: u32, name: Name) {
        self.0.push((pid, name));
    }

    /// Forgets one whose end the user has asked for, so that it is not news.
    pub fn forget(&mut self, pid: u32) {
        self.0.retain(|&(job, _)| job != pid);
    }

    /// Reports those that have ended otherwise than with code 0, and forgets all that have.
    ///
    /// # Errors
    /// The session is gone.
    pub fn report(&mut self, system: &mut dyn System, session: &mut dyn Session) -> fmt::Result {
        let mut kept = Vec::new();
        for (pid, name) in core::mem::take(&mut self.0) {
            match system.process(pid) {
                Ok(Some(process)) if process.pid == pid => {
                    kept.push((pid, name));
                    continue;
                }
                Ok(_) => {}
                Err(_) => {
                    // init does not answer now; ask again at the next prompt.
                    kept.push((pid, name));
                    continue;
                }
            }
            match system.wait(pid) {
                Ok(report) => ending::describe(&report, system, session)?,
                Err(CallError::Service(InitError::NoSuchProcess)) => {
                    writeln!(session, "{name}: ended; how is no longer known (pid {pid})")?;
                }
                Err(error) => writeln!(session, "{name}: ended, but {error} (pid {pid})")?,
            }
        }
        self.0 = kept;
        Ok(())
    }
}

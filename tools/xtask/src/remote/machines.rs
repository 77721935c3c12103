//! Which machines run that were booted from this working tree, by the UDP port of the loopback interface that reaches the remote shell of
//! each.
//!
//! A machine has a file that is named by its port, and whoever waits for the machine holds the file's lock. So the file of one that has
//! ended, however it did, is known by its lock. Files are never removed: one could go that another machine has just locked.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use crate::workspace::Workspace;

/// The directory of those files.
#[derive(Clone, Debug)]
pub struct Machines(PathBuf);

/// A machine that runs, until this is dropped.
#[derive(Debug)]
pub struct Running {
    _locked: File,
}

impl Machines {
    /// Those of this working tree.
    #[must_use]
    pub fn of(workspace: &Workspace) -> Self {
        Self(workspace.target.join("machines"))
    }

    /// Tells that a machine runs that this port reaches.
    ///
    /// # Errors
    /// If the file cannot be made.
    pub fn add(&self, port: u16) -> io::Result<Running> {
        fs::create_dir_all(&self.0)?;
        let file = File::create(self.0.join(port.to_string()))?;
        file.lock()?;
        file.set_modified(SystemTime::now())?;
        Ok(Running { _locked: file })
    }

    /// The ports of the machines that run, the one that started last at the end.
    ///
    /// # Errors
    /// If the files cannot be read.
    pub fn ports(&self) -> io::Result<Vec<u16>> {
        let entries = match fs::read_dir(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut running = Vec::new();
        for entry in entries {
            let entry = entry?;
            let Some(port) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
            else {
                continue;
            };
            let file = File::open(entry.path())?;
            match file.try_lock_shared() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => running.push((file.metadata()?.modified()?, port)),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        running.sort_unstable();
        Ok(running.into_iter().map(|(_, port)| port).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_known_as_long_as_somebody_waits_for_it() {
        let target = Workspace::find().unwrap().target;
        let machines = Machines(target.join(format!("machines-{}", std::process::id())));
        assert_eq!(machines.ports().unwrap(), [0_u16; 0]);
        let first = machines.add(7).unwrap();
        assert_eq!(machines.ports().unwrap(), [7]);
        let second = machines.add(5).unwrap();
        assert_eq!(machines.ports().unwrap(), [7, 5], "the last one comes last");
        drop(second);
        assert_eq!(machines.ports().unwrap(), [7]);
        drop(first);
        assert_eq!(machines.ports().unwrap(), [0_u16; 0]);
        let _again = machines.add(5).unwrap();
        assert_eq!(machines.ports().unwrap(), [5]);
        fs::remove_dir_all(&machines.0).unwrap();
    }
}

//! A terminal that a test types at and reads from.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::time::Instant;

use super::machine::PATIENCE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// The test's side of a terminal.
pub struct Pty {
    controller: File,
    user: File,
    said: String,
}

impl Pty {
    /// A new terminal.
    pub fn open() -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let name = ptsname(&controller, Vec::new()).unwrap();
        let user = OpenOptions::new()
            .read(true)
            .write(true)
            .open(name.to_str().unwrap());
        Self {
            controller: controller.into(),
            user: user.unwrap(),
            said: String::new(),
        }
    }

    /// Starts a program at it.
    pub fn spawn(&self, command: &mut Command) -> Child {
        let stream = || OwnedFd::from(self.user.try_clone().unwrap());
        command.stdin(stream()).stdout(stream()).stderr(stream());
        command.spawn().unwrap()
    }

    /// Types.
    pub fn write(&mut self, keys: &[u8]) {
        self.controller.write_all(keys).unwrap();
    }

    /// Reads until this is said, and forgets all up to there.
    pub fn until(&mut self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.said.find(text) {
                self.said.drain(..at + text.len());
                return;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).unwrap();
            let mut fds = [PollFd::new(&self.controller, PollFlags::IN)];
            assert!(
                poll(&mut fds, Some(&left)).unwrap() > 0,
                "no {text:?} in {:?}",
                self.said
            );
            let mut bytes = [0; 1024];
            let read = self.controller.read(&mut bytes).unwrap();
            self.said.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    }
}

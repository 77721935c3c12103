//! Every command against the fake system: what it does, and the text a user sees.

mod crash;
mod demo;
mod dmesg;
mod errors;
mod help;
mod machine;
mod mistyped;
mod prefix;
mod process;
mod profile;
mod session;

use crate::fake::{FakeSession, FakeSystem};
use crate::jobs::Jobs;
use crate::session::Session;

use super::execute;

#[derive(Default)]
pub(super) struct Bench {
    pub(super) system: FakeSystem,
    pub(super) session: FakeSession,
    jobs: Jobs,
}

impl Bench {
    /// Runs a line and gives what it printed.
    pub(super) fn run(&mut self, line: &str) -> String {
        let done = execute(line, &mut self.session, &mut self.system, &mut self.jobs);
        assert!(done.is_ok() || self.session.interrupted(), "{line}");
        std::mem::take(&mut self.session.text)
    }
    /// What the next prompt reports.
    fn prompt(&mut self) -> String {
        self.jobs
            .report(&mut self.system, &mut self.session)
            .unwrap();
        std::mem::take(&mut self.session.text)
    }
}

fn run(line: &str) -> String {
    Bench::default().run(line)
}

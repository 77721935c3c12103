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
mod role;
mod session;
mod status;

use ipc::proto::remote::Status;

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
        self.status(line);
        std::mem::take(&mut self.session.text)
    }
    /// Runs a line and gives what came of it.
    pub(super) fn status(&mut self, line: &str) -> Status {
        let status = execute(line, &mut self.session, &mut self.system, &mut self.jobs);
        let interrupted = self.session.interrupted();
        assert_eq!(status == Status::Interrupted, interrupted, "{line}");
        status
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

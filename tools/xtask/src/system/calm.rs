//! The system while nothing runs but its servers, and what may differ between two such moments.

use std::time::Instant;

use anyhow::{Result, ensure};

use crate::test::Verdict;

use super::guest::PATIENCE;
use super::session::Session;
use super::tables::{Memory, Process};

/// How much more servers may be charged with later, in KiB: their heaps keep what the busiest moment needed.
const GROWTH_KIB: u64 = 256;
/// Whose heap keeps what its largest report needed.
const PROFD: &str = "profd";
/// Pools from which those heaps take.
const HEAP_POOLS: [&str; 2] = ["memory objects", "handle chunks"];

/// What `ps` and `mem` say then.
#[derive(Debug)]
pub struct Calm {
    processes: Vec<Process>,
    /// Where the memory is.
    pub memory: Memory,
}

impl Calm {
    /// Waits until each server has begun to serve, no part of an ended program is left to be taken down, and no freed memory waits for a
    /// CPU that might reach it. The network server is below the shell: behind the first prompt it still makes what it keeps.
    ///
    /// # Errors
    /// If that does not come.
    pub fn of(session: &mut Session) -> Result<Self> {
        until(session, |session| {
            let calm = Self::now(session)?;
            let slots = calm.memory.pool("processes")?;
            ensure!(
                slots == calm.processes.len() as u64 && calm.memory.kib("waiting")? == 0,
                "it is not calm: {calm:#?}"
            );
            // These two are asked.
            let mut others = (calm.processes.iter())
                .filter(|process| !["init", "shell"].contains(&process.name.as_str()));
            ensure!(
                others.all(|process| process.state == "recv"),
                "not all serve: {calm:#?}"
            );
            Ok(calm)
        })
    }

    /// Waits until every page of programs is charged to one that lives, and all is as it was, but for heaps. What is lost
    /// never comes back; what is only late does, such as the badge of a program that has ended, once its server took notice.
    ///
    /// # Errors
    /// If it never is.
    pub fn again(&self, session: &mut Session) -> Verdict {
        until(session, |session| Self::now(session)?.check(self, None))
    }

    /// As [`Self::again`], after the first profiles: profd's heap keeps what the largest of them needed, which is of the machine's variety
    /// and has no bound but profd's quota. Returns how it is now: smaller ones need no more than that.
    ///
    /// # Errors
    /// If it never is.
    pub fn again_but_for_profd(&self, session: &mut Session) -> Result<Self> {
        until(session, |session| {
            let now = Self::now(session)?;
            now.check(self, Some(PROFD))?;
            Ok(now)
        })
    }

    /// As [`Self::again`], and profd has what it had.
    ///
    /// # Errors
    /// If it never is.
    pub fn again_with_profd(&self, session: &mut Session) -> Verdict {
        until(session, |session| {
            let now = Self::now(session)?;
            now.check(self, None)?;
            let (is, was) = (now.kib_of(PROFD), self.kib_of(PROFD));
            ensure!(is == was, "profd had {was} KiB, and now has {is}");
            Ok(())
        })
    }

    /// What processes of this name are charged with.
    fn kib_of(&self, name: &str) -> u64 {
        let processes = self.processes.iter().filter(|it| it.name == name);
        processes.map(|process| process.kib).sum()
    }

    fn now(session: &mut Session) -> Result<Self> {
        Ok(Self {
            processes: session.processes()?,
            memory: session.memory()?,
        })
    }

    /// What processes are charged with, but this one.
    fn charged_kib(&self, but: Option<&str>) -> u64 {
        let counted = |process: &&Process| but != Some(&process.name);
        let processes = self.processes.iter().filter(counted);
        processes.map(|process| process.kib).sum()
    }

    fn check(&self, before: &Self, grows: Option<&str>) -> Verdict {
        let names = |calm: &Self| -> Vec<String> {
            let names = calm.processes.iter().map(|process| process.name.clone());
            names.collect()
        };
        ensure!(names(self) == names(before), "left over: {self:#?}");
        ensure!(
            self.charged_kib(None) == self.memory.kib("processes")?,
            "a page is charged to nobody who lives: {self:#?}"
        );
        let (charged, was) = (self.charged_kib(grows), before.charged_kib(grows));
        ensure!(
            charged <= was + GROWTH_KIB,
            "servers were charged with {was} KiB, and are now with {charged}: {self:#?}"
        );
        for part in ["kernel", "bootfs"] {
            let (was, is) = (before.memory.kib(part)?, self.memory.kib(part)?);
            ensure!(was == is, "{part}: {was} KiB became {is}");
        }
        let fixed = |calm: &Self| {
            let mut pools = calm.memory.pools.clone();
            pools.retain(|name, _| !HEAP_POOLS.contains(&name.as_str()));
            pools
        };
        let (was, is) = (fixed(before), fixed(self));
        ensure!(was == is, "{was:?} became {is:?}");
        Ok(())
    }
}

/// Asks until the answer is good; the last bad one is the error.
///
/// # Errors
/// If it never becomes good.
pub fn until<T>(
    session: &mut Session,
    mut ask: impl FnMut(&mut Session) -> Result<T>,
) -> Result<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match ask(session) {
            Err(_) if Instant::now() < deadline => {}
            answer => return answer,
        }
    }
}

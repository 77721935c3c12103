//! Who runs, and who ran: the names behind process ids.
//!
//! init tells of every start and exit. A process that has ended keeps its entry, because samples of it may still be
//! unread, and a report may ask for it; only the last [`ENDED_KEPT`] are kept. Ids are never reused, so an entry is
//! never wrong.

use alloc::vec::Vec;

use ipc::proto::Text;
use ipc::proto::init::{BUILD_ID_MAX, FILE_MAX, Name, RUNNING_MAX};

/// Ended processes that are remembered.
pub const ENDED_KEPT: usize = 256;

/// A process that started, as init tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its name.
    pub name: Name,
    /// File in the boot archive that it runs.
    pub image: Text<FILE_MAX>,
    /// Build-id of that file, filled up with zeros; all zero if it has none.
    pub build_id: [u8; BUILD_ID_MAX],
    /// What was added to the image's addresses when it was loaded.
    pub load_bias: u64,
    /// When it ended, in TSC ticks.
    pub ended: Option<u64>,
}

impl Process {
    /// Whether it runs the build with this id, as far as is known.
    #[must_use]
    pub fn is_build(&self, id: &[u8]) -> bool {
        let told = &self.build_id;
        let length = id.len().min(told.len());
        told.iter().all(|&byte| byte == 0) || told[..length] == id[..length]
    }
}

/// What is known of a process id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It runs.
    Live = 0,
    /// It has ended.
    Ended = 1,
    /// It never was, or ended too long ago.
    Unknown = 2,
}

/// Every process that runs, and the last that ended.
#[derive(Clone, Debug)]
pub struct Processes {
    /// By id.
    known: Vec<(u32, Process)>,
    ended: usize,
}

impl Default for Processes {
    /// Nobody, and the memory for init, all that it lets run, and all that is remembered.
    fn default() -> Self {
        Self {
            known: Vec::with_capacity(1 + RUNNING_MAX + ENDED_KEPT),
            ended: 0,
        }
    }
}

impl Processes {
    fn position(&self, pid: u32) -> Result<usize, usize> {
        self.known.binary_search_by_key(&pid, |&(known, _)| known)
    }

    /// A process started. A second start of the same id changes nothing: init repeats itself when profd subscribes anew.
    pub fn start(&mut self, pid: u32, process: Process) {
        if let Err(position) = self.position(pid) {
            self.known.insert(position, (pid, process));
        }
    }

    /// A process ended, at this TSC. An id that was never told of is ignored.
    pub fn end(&mut self, pid: u32, tsc: u64) {
        let Ok(position) = self.position(pid) else {
            return;
        };
        if self.known[position].1.ended.replace(tsc).is_none() {
            self.ended += 1;
        }
        if self.ended > ENDED_KEPT {
            self.forget_oldest();
        }
    }

    /// The process with this id, if it is known.
    #[must_use]
    pub fn get(&self, pid: u32) -> Option<&Process> {
        let position = self.position(pid).ok()?;
        Some(&self.known[position].1)
    }

    /// Whether it runs, has ended, or is unknown.
    #[must_use]
    pub fn fate(&self, pid: u32) -> Fate {
        match self.get(pid) {
            Some(Process { ended: None, .. }) => Fate::Live,
            Some(_) => Fate::Ended,
            None => Fate::Unknown,
        }
    }

    /// Ids of those that run.
    pub fn live(&self) -> impl Iterator<Item = u32> {
        let live = |(pid, process): &(u32, Process)| process.ended.is_none().then_some(*pid);
        self.known.iter().filter_map(live)
    }

    fn forget_oldest(&mut self) {
        let known = self.known.iter().enumerate();
        let ended = known.filter_map(|(position, (_, process))| Some((process.ended?, position)));
        if let Some((_, position)) = ended.min() {
            self.known.remove(position);
            self.ended -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Process {
        Process {
            name: Name::cut(name),
            image: Text::cut("bin/sleep"),
            build_id: [0; BUILD_ID_MAX],
            load_bias: 0,
            ended: None,
        }
    }

    #[test]
    fn names_outlive_their_process_and_the_oldest_go_first() {
        let mut processes = Processes::default();
        let reserved = processes.known.capacity();
        processes.start(1, named("init"));
        processes.end(99, 5);
        for pid in 2..2 + ENDED_KEPT as u32 + 3 {
            processes.start(pid, named("sleep"));
            processes.end(pid, u64::from(pid));
            processes.end(pid, u64::from(pid));
        }
        assert_eq!(processes.fate(1), Fate::Live);
        assert_eq!([2, 3, 4].map(|pid| processes.fate(pid)), [Fate::Unknown; 3]);
        assert_eq!(processes.fate(5), Fate::Ended);
        assert_eq!(processes.get(5).unwrap().name.as_str(), "sleep");
        assert_eq!(processes.known.len(), 1 + ENDED_KEPT);
        assert_eq!(processes.known.capacity(), reserved, "no memory for more");
    }

    #[test]
    fn a_repeated_start_does_not_revive() {
        let mut processes = Processes::default();
        processes.start(4, named("a"));
        processes.end(4, 1);
        processes.start(4, named("b"));
        assert_eq!(processes.fate(4), Fate::Ended);
        assert_eq!(processes.get(4).unwrap().name.as_str(), "a");
    }
}

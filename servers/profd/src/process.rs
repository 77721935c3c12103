//! Who runs, and who ran: the names behind process ids.
//!
//! init tells of every start and exit. A process that has ended keeps its entry, because samples of it may still be
//! unread, and a report may ask for it; only the last [`ENDED_KEPT`] are kept. Ids are never reused, so an entry is
//! never wrong.

use alloc::collections::BTreeMap;
use alloc::string::String;

use ipc::proto::init::BUILD_ID_MAX;

/// Ended processes that are remembered.
pub const ENDED_KEPT: usize = 256;

/// A process that started, as init tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// File in the boot archive that it runs.
    pub image: String,
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
#[derive(Clone, Debug, Default)]
pub struct Processes {
    known: BTreeMap<u32, Process>,
    ended: usize,
}

impl Processes {
    /// Nobody.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            known: BTreeMap::new(),
            ended: 0,
        }
    }

    /// A process started. A second start of the same id changes nothing: init repeats itself when profd subscribes anew.
    pub fn start(&mut self, pid: u32, process: Process) {
        self.known.entry(pid).or_insert(process);
    }

    /// A process ended, at this TSC. An id that was never told of is ignored.
    pub fn end(&mut self, pid: u32, tsc: u64) {
        let Some(process) = self.known.get_mut(&pid) else {
            return;
        };
        if process.ended.replace(tsc).is_none() {
            self.ended += 1;
        }
        if self.ended > ENDED_KEPT {
            self.forget_oldest();
        }
    }

    /// The process with this id, if it is known.
    #[must_use]
    pub fn get(&self, pid: u32) -> Option<&Process> {
        self.known.get(&pid)
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
        let live = |(&pid, process): (&u32, &Process)| process.ended.is_none().then_some(pid);
        self.known.iter().filter_map(live)
    }

    fn forget_oldest(&mut self) {
        let ended = |(&pid, process): (&u32, &Process)| process.ended.map(|tsc| (tsc, pid));
        if let Some((_, pid)) = self.known.iter().filter_map(ended).min() {
            self.known.remove(&pid);
            self.ended -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Process {
        Process {
            name: name.into(),
            image: "bin/sleep".into(),
            build_id: [0; BUILD_ID_MAX],
            load_bias: 0,
            ended: None,
        }
    }

    #[test]
    fn names_outlive_their_process_and_the_oldest_go_first() {
        let mut processes = Processes::new();
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
        assert_eq!(processes.get(5).unwrap().name, "sleep");
        assert_eq!(processes.known.len(), 1 + ENDED_KEPT);
    }

    #[test]
    fn a_repeated_start_does_not_revive() {
        let mut processes = Processes::new();
        processes.start(4, named("a"));
        processes.end(4, 1);
        processes.start(4, named("b"));
        assert_eq!(processes.fate(4), Fate::Ended);
        assert_eq!(processes.get(4).unwrap().name, "a");
    }
}

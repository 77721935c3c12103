//! The starts and ends of processes, as subscribers read them.

use postcard::experimental::max_size::MaxSize;
use serde::{Deserialize, Serialize};

use super::{BUILD_ID_MAX, Ending, FILE_MAX, Name};
use crate::proto::Text;

/// Something that happened to a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub struct Event {
    /// Position of the event; they are counted from 0.
    pub position: u64,
    /// When it happened: a time-stamp that is not later than the process's first instruction, or not earlier than its last.
    pub tsc: u64,
    /// Process.
    pub pid: u32,
    /// What happened.
    pub what: Happening,
}

/// See [`Event`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, MaxSize)]
pub enum Happening {
    /// It was made; held or not, it has run no instruction yet.
    Started {
        /// Name of the process.
        name: Name,
        /// File in the boot archive.
        file: Text<FILE_MAX>,
        /// Number of the image, as samples carry it: one for each file, never another's.
        image: u32,
        /// Build-id of the file; zero if it has none.
        build_id: [u8; BUILD_ID_MAX],
        /// Difference between addresses in the process and in the file.
        load_bias: u64,
    },
    /// It ended.
    Ended {
        /// How.
        ending: Ending,
        /// Exit code.
        code: u64,
    },
}

//! The kernel's objects: what a handle can name. Each lives in a typed pool and is counted by the handles, mappings and
//! links that name it; the last one to let go frees it.

pub mod badge;
pub mod endpoint;
pub mod memory;
pub mod notification;
pub mod process;
pub mod queue;
pub mod thread;

use crate::base::pool::Ref;
use crate::handles::Chunk;
use ipc::abi::ObjectType;

pub use badge::Badge;
pub use endpoint::Endpoint;
pub use memory::Memory;
pub use notification::Notification;
pub use process::Process;
pub use thread::{Thread, ThreadId};

use crate::base::pool::Pool;

/// Every pool.
pub struct Pools {
    /// Processes.
    pub processes: Pool<Process>,
    /// Threads.
    pub threads: Pool<Thread>,
    /// Endpoints.
    pub endpoints: Pool<Endpoint>,
    /// Notifications.
    pub notifications: Pool<Notification>,
    /// Memory objects.
    pub memory: Pool<Memory>,
    /// Pieces of handle tables.
    pub chunks: Pool<Chunk>,
    /// Badges of endpoint handles.
    pub badges: Pool<Badge>,
}

/// What a handle names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// A process.
    Process(Ref<Process>),
    /// A thread.
    Thread(Ref<Thread>),
    /// An endpoint, and the badge that calls through this handle carry.
    Endpoint(Ref<Endpoint>, Option<Ref<Badge>>),
    /// A notification.
    Notification(Ref<Notification>),
    /// A memory object.
    Memory(Ref<Memory>),
    /// `count` I/O ports from `first`.
    Ports {
        /// First port.
        first: u16,
        /// Ports; at most 65536.
        count: u32,
    },
    /// An interrupt line.
    Interrupt(u32),
    /// The right to answer the call that a thread is in: the thread, and its sequence number in that call.
    Reply(ThreadId, u64),
    /// The profiling driver.
    Profiler,
    /// The system.
    System,
}

impl Object {
    /// Its type.
    #[must_use]
    pub const fn kind(&self) -> ObjectType {
        match self {
            Self::Process(_) => ObjectType::Process,
            Self::Thread(_) => ObjectType::Thread,
            Self::Endpoint(..) => ObjectType::Endpoint,
            Self::Notification(_) => ObjectType::Notification,
            Self::Memory(_) => ObjectType::Memory,
            Self::Ports { .. } => ObjectType::Ports,
            Self::Interrupt(_) => ObjectType::Interrupt,
            Self::Reply(..) => ObjectType::Reply,
            Self::Profiler => ObjectType::Profiler,
            Self::System => ObjectType::System,
        }
    }

    /// The process, if it is one.
    #[must_use]
    pub const fn as_process(self) -> Option<Ref<Process>> {
        match self {
            Self::Process(reference) => Some(reference),
            _ => None,
        }
    }
    /// The thread, if it is one.
    #[must_use]
    pub const fn as_thread(self) -> Option<Ref<Thread>> {
        match self {
            Self::Thread(reference) => Some(reference),
            _ => None,
        }
    }
    /// The endpoint, if it is one, and its badge.
    #[must_use]
    pub const fn as_endpoint(self) -> Option<(Ref<Endpoint>, Option<Ref<Badge>>)> {
        match self {
            Self::Endpoint(reference, badge) => Some((reference, badge)),
            _ => None,
        }
    }
    /// The notification, if it is one.
    #[must_use]
    pub const fn as_notification(self) -> Option<Ref<Notification>> {
        match self {
            Self::Notification(reference) => Some(reference),
            _ => None,
        }
    }
    /// The memory object, if it is one.
    #[must_use]
    pub const fn as_memory(self) -> Option<Ref<Memory>> {
        match self {
            Self::Memory(reference) => Some(reference),
            _ => None,
        }
    }
    /// First and count, if it is a range of ports.
    #[must_use]
    pub const fn as_ports(self) -> Option<(u16, u32)> {
        match self {
            Self::Ports { first, count } => Some((first, count)),
            _ => None,
        }
    }
    /// The interrupt line, if it is one.
    #[must_use]
    pub const fn as_interrupt(self) -> Option<u32> {
        match self {
            Self::Interrupt(line) => Some(line),
            _ => None,
        }
    }
    /// The thread and its sequence number, if it is a reply.
    #[must_use]
    pub const fn as_reply(self) -> Option<(ThreadId, u64)> {
        match self {
            Self::Reply(thread, sequence) => Some((thread, sequence)),
            _ => None,
        }
    }

    /// Whether it is counted, and ends or goes back to its pool with the last count. A reply has one handle, which is taken with it.
    #[must_use]
    pub const fn is_counted(&self) -> bool {
        matches!(
            self,
            Self::Process(_)
                | Self::Thread(_)
                | Self::Endpoint(..)
                | Self::Notification(_)
                | Self::Memory(_)
                | Self::Interrupt(_)
        )
    }

    /// As two words for a handle table.
    #[must_use]
    pub const fn pack(&self) -> [u64; 2] {
        match self {
            Self::Process(r) => [r.pack(), 0],
            Self::Thread(r) => [r.pack(), 0],
            Self::Endpoint(r, None) => [r.pack(), 0],
            Self::Endpoint(r, Some(badge)) => [r.pack(), badge.pack()],
            Self::Notification(r) => [r.pack(), 0],
            Self::Memory(r) => [r.pack(), 0],
            Self::Ports { first, count } => [*first as u64, *count as u64],
            Self::Interrupt(line) => [*line as u64, 0],
            Self::Reply(thread, sequence) => [thread.0 as u64, *sequence],
            Self::Profiler | Self::System => [0, 0],
        }
    }

    /// From its type and two words; `None` if they were never packed so.
    #[must_use]
    pub const fn unpack(kind: ObjectType, words: [u64; 2]) -> Option<Self> {
        /// `?` for options, which is not `const` yet.
        macro_rules! reference {
            ($word:expr) => {
                match Ref::unpack($word) {
                    Some(reference) => reference,
                    None => return None,
                }
            };
        }
        Some(match kind {
            ObjectType::Process => Self::Process(reference!(words[0])),
            ObjectType::Thread => Self::Thread(reference!(words[0])),
            ObjectType::Endpoint => Self::Endpoint(reference!(words[0]), Ref::unpack(words[1])),
            ObjectType::Notification => Self::Notification(reference!(words[0])),
            ObjectType::Memory => Self::Memory(reference!(words[0])),
            ObjectType::Ports => Self::Ports {
                first: words[0] as u16,
                count: words[1] as u32,
            },
            ObjectType::Interrupt => Self::Interrupt(words[0] as u32),
            ObjectType::Reply => Self::Reply(ThreadId(words[0] as u32), words[1]),
            ObjectType::Profiler => Self::Profiler,
            ObjectType::System => Self::System,
        })
    }
}

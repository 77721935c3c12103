//! Endpoints: where calls wait for servers and servers for calls. At most one of the two queues is not empty.

use super::badge::Badge;
use super::queue::PriorityQueue;
use super::thread::ThreadId;
use crate::base::lock::{Lock, rank};
use crate::base::pool::Ref;
use core::sync::atomic::{AtomicBool, AtomicU32};

/// Threads that may receive from one endpoint; a queued caller raises each of them.
pub const SERVERS_MAX: usize = 8;

/// What an endpoint's lock guards.
#[derive(Debug)]
pub struct Queues {
    /// Threads whose calls wait, by priority.
    pub callers: PriorityQueue,
    /// Threads that wait for a call; the one that came last is first, for its cache is warm.
    pub receivers: PriorityQueue,
    /// Closed badges that no receive has told yet.
    pub closed: Option<Ref<Badge>>,
    /// Threads that received here last.
    pub servers: heapless::Vec<ThreadId, SERVERS_MAX>,
    /// No handle with the right to receive is left.
    pub dead: bool,
    /// No handle is left at all. Set with the deferred work that frees the endpoint, so that only that work does.
    pub unnamed: bool,
}

/// An endpoint.
#[derive(Debug)]
pub struct Endpoint {
    /// Its queues.
    pub queues: Lock<Queues, { rank::ENDPOINT }>,
    /// Handles.
    pub refs: AtomicU32,
    /// Handles with the right to receive.
    pub receivers: AtomicU32,
    /// Whether deferred work holds it.
    pub in_work: AtomicBool,
    /// Pool slot of the process it is counted to.
    pub owner: AtomicU32,
}

impl Endpoint {
    /// An empty slot.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            queues: Lock::new(Queues {
                callers: PriorityQueue::new(),
                receivers: PriorityQueue::new(),
                closed: None,
                servers: heapless::Vec::new(),
                dead: false,
                unnamed: false,
            }),
            refs: AtomicU32::new(0),
            receivers: AtomicU32::new(0),
            in_work: AtomicBool::new(false),
            owner: AtomicU32::new(u32::MAX),
        }
    }
}

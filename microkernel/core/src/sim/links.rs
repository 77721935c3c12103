//! Laws about what names what: calls and who answers them, endpoints and their servers, notifications and their bonds.

use super::Sim;
use crate::handles::Grant;
use crate::object::thread::State;
use crate::object::{Object, ThreadId};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

impl Sim {
    pub(super) fn check_links(&self) {
        self.check_calls();
        self.check_endpoints();
        self.check_notifications();
    }

    /// Every handle of every process.
    pub(super) fn grants(&self) -> Vec<(u32, Grant)> {
        let pools = &self.kernel.pools;
        let token = &self.cpu(0).token;
        (0..pools.processes.len())
            .filter(|&slot| pools.processes.reference(slot).is_some())
            .flat_map(|slot| {
                let table = self.kernel.process(slot).handles.lock(token);
                assert!(table.is_at_rest(&pools.chunks), "a handle never arrives");
                let grants = table.grants(&pools.chunks);
                grants.into_iter().map(move |grant| (slot, grant.1))
            })
            .collect()
    }

    /// Each call that was received has exactly one who can answer it: a thread that serves it, or one handle. So no caller hangs.
    fn check_calls(&self) {
        let threads = &self.kernel.pools.threads;
        let mut answers = BTreeMap::<(u32, u64), u32>::new();
        for slot in 0..threads.len() {
            let server = threads.at(slot).unwrap();
            if let Some((client, sequence)) = server.served() {
                assert_ne!(
                    server.status().state(),
                    State::Dead,
                    "the dead serve nobody"
                );
                *answers.entry((client.0, sequence)).or_default() += 1;
                let client = self.kernel.thread(client);
                if client.status().sequence() == sequence {
                    assert_eq!(client.server.load(Relaxed), slot, "the link leads back");
                }
            }
        }
        for (_, grant) in self.grants() {
            if let Object::Reply(ThreadId(client), sequence) = grant.object {
                *answers.entry((client, sequence)).or_default() += 1;
            }
        }
        for slot in 0..threads.len() {
            let status = threads.at(slot).unwrap().status();
            if status.state() == State::Called {
                let count = answers.get(&(slot, status.sequence())).copied();
                assert_eq!(count, Some(1), "who answers thread {slot}?");
            }
        }
        assert!(answers.values().all(|&count| count == 1), "{answers:?}");
    }

    /// Servers and callers do not wait for each other; a dead endpoint keeps nobody waiting for long.
    fn check_endpoints(&self) {
        let (kernel, token) = (&self.kernel, &self.cpu(0).token);
        for slot in 0..kernel.pools.endpoints.len() {
            let endpoint = kernel.pools.endpoints.at(slot).unwrap();
            let queues = endpoint.queues.lock(token);
            let callers = queues.callers.highest().is_some();
            let receivers = queues.receivers.highest().is_some();
            let reference = kernel.pools.endpoints.reference(slot);
            assert!(!(callers && receivers), "endpoint {slot}");
            assert!(!(receivers && queues.closed.is_some()), "endpoint {slot}");
            if reference.is_some() {
                assert_eq!(queues.dead, endpoint.receivers.load(Relaxed) == 0);
            } else {
                assert!(!callers && !receivers && queues.servers.is_empty() && !queues.dead);
                assert!(queues.closed.is_none() && !endpoint.in_work.load(Relaxed));
            }
            if queues.dead && (callers || receivers || endpoint.refs.load(Relaxed) == 0) {
                assert!(
                    endpoint.in_work.load(Relaxed),
                    "endpoint {slot} is forgotten"
                );
            }
            for &server in &queues.servers {
                let from = kernel.thread(server).receives_from.load(Relaxed);
                assert_eq!(Some(from), reference.map(|reference| reference.pack()));
            }
            let highest = queues.callers.highest().unwrap_or(0);
            for &server in &queues.servers {
                let priority = kernel.thread(server).priority.load(Relaxed);
                assert!(
                    priority >= highest,
                    "endpoint {slot}: a caller of {highest} waits, {server:?} has {priority}"
                );
            }
        }
    }

    /// Nobody waits for bits that are there; both ends of a bond agree.
    fn check_notifications(&self) {
        let (kernel, token) = (&self.kernel, &self.cpu(0).token);
        for slot in 0..kernel.pools.notifications.len() {
            let notification = kernel.pools.notifications.at(slot).unwrap();
            let bits = notification.bits.lock(token);
            let reference = kernel.pools.notifications.reference(slot);
            let used = reference.is_some() && notification.refs.load(Relaxed) > 0;
            if used && bits.pending != 0 {
                assert_eq!(bits.waiters.highest(), None, "notification {slot}");
            }
            if let Some(bound) = bits.bound {
                let thread = kernel.thread(bound);
                assert_eq!(thread.bound(), reference, "notification {slot}");
                let state = thread.status().state();
                assert_ne!(state, State::Dead, "notification {slot}");
                assert!(bits.pending == 0 || state != State::Receiving || !used);
            }
            if reference.is_none() {
                assert!(bits.pending == 0 && bits.bound.is_none() && bits.timer_cpu.is_none());
                assert_eq!(bits.waiters.highest(), None);
            }
            let item = kernel.pools.threads.len() + slot;
            for cpu in kernel.cpus {
                let id = cpu.token.id().0;
                let armed = cpu.timers.lock(token).deadline(item).is_some();
                assert_eq!(armed, bits.timer_cpu == Some(id), "notification {slot}");
            }
        }
        for slot in 0..kernel.pools.threads.len() {
            if let Some(bound) = kernel.pools.threads.at(slot).unwrap().bound() {
                let notification = kernel.pools.notifications.get(bound);
                let notification = notification.expect("a bond outlives its notification");
                assert_eq!(notification.bits.lock(token).bound, Some(ThreadId(slot)));
            }
        }
    }
}

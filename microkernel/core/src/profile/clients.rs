//! On whose behalf a thread works: the frames of the client that it serves, of the client that one serves, and so on.
//!
//! Part of the sampling path; its rules are in [`super`].

use super::findings::{CLIENTS, Findings};
use super::machine::Machine;
use super::program::Program;
use super::stack::UserStack;
use super::threads::{Names, ThreadView, Threads};
use super::walk::End;
use core::sync::atomic::{Ordering, fence};
use ipc::abi::profile::{CLIENT_FRAMES, Marker, flags};
use sample_ring::Slot;

/// Words of a marker and of the frames that are kept for it at least.
const CLIENT_WORDS: usize = 2 + CLIENT_FRAMES;
/// Most clients: each has a part, and one is left for what is missing behind the last.
const CLIENTS_MAX: usize = flags::PARTS - CLIENTS - 1;

/// The frames of the client that `server` serves, of the client that one serves, and so on, each behind a marker, if all are there, nothing is
/// odd about them, and there is room: nearly always it is so. If not, it says false, and what it put into the slot means nothing.
// Called once: inlined, so that the slot need not be in memory.
#[inline(always)]
#[must_use]
pub(super) fn usual_parts<M: Machine, T: Threads>(
    slot: &mut Slot<'_>,
    machine: &M,
    threads: T,
    server: T::Thread,
) -> bool {
    let mut link = threads.served(server);
    for _ in 0..CLIENTS_MAX {
        let Some((client, sequence)) = link else {
            return true;
        };
        if usual_part(slot, machine, threads.view(client)).is_none() {
            return false;
        }
        // In this order: see `client_parts`.
        link = threads.served(client);
        fence(Ordering::Acquire);
        if threads.sequence(client) != sequence {
            return false;
        }
    }
    link.is_none()
}

/// The marker and all frames of such a client.
#[inline(always)]
fn usual_part<M: Machine>(
    slot: &mut Slot<'_>,
    machine: &M,
    client: Option<ThreadView<'_>>,
) -> Option<()> {
    let client = client?;
    if !slot.extend(marker(client.names).pack()) {
        return None;
    }
    Program::saved(&client).usual_frames(machine, client.root, slot)
}

/// The same parts whatever they are. All of them fit, or the chain of clients is truncated: none is squeezed below [`CLIENT_FRAMES`]
/// frames.
pub(super) fn client_parts<M: Machine, T: Threads>(
    slot: &mut Slot<'_>,
    findings: &mut Findings,
    machine: &M,
    threads: T,
    server: T::Thread,
) {
    // Only to share the room; what counts is what is found below.
    let mut count = 0;
    let mut link = threads.served(server);
    while let Some((client, _)) = link
        && count < CLIENTS_MAX
    {
        count += 1;
        link = threads.served(client);
    }
    let fit = count.min(slot.room() / CLIENT_WORDS);

    let mut link = threads.served(server);
    for index in 0..fit {
        let Some((client, sequence)) = link else {
            return;
        };
        let start = slot.used();
        let limit = slot.room() / (fit - index) - 2;
        let end = client_part(slot, machine, threads.view(client), limit);
        // Followed before the second look, so that it was this client's link while the client was still waiting.
        link = threads.served(client);
        fence(Ordering::Acquire);
        let same = threads.sequence(client) == sequence;
        let Some(end) = end.filter(|_| same) else {
            slot.rewind(start);
            findings.flags |= flags::CHANGED;
            return;
        };
        findings.end(CLIENTS + index, end);
        if slot.used() <= start + 2 {
            // Not even its RIP was one: a marker never stands alone.
            slot.rewind(start);
            return;
        }
    }
    if link.is_some() {
        findings.end(CLIENTS + fit, End::Truncated);
    }
}

/// One client's marker and frames. `None` if the client is gone.
fn client_part<M: Machine>(
    slot: &mut Slot<'_>,
    machine: &M,
    client: Option<ThreadView<'_>>,
    limit: usize,
) -> Option<End> {
    let client = client?;
    // Where there is no room for it, there is none for the frames, which say so.
    let _ = slot.extend(marker(client.names).pack());
    let mut stack = UserStack::new(machine, client.root);
    Some(Program::saved(&client).frames(&mut stack, limit, slot))
}

#[inline]
fn marker(Names { ids, image }: Names<'_>) -> Marker {
    let ids = ids.load(Ordering::Relaxed);
    Marker {
        pid: ids as u32,
        tid: (ids >> 32) as u32,
        image: image.load(Ordering::Relaxed),
    }
}

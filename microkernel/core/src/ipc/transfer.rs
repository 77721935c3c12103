//! Carrying a message from one thread to another: words, payload and handles. Handles go all or none.

use crate::base::regs::Reg;
use crate::handles::Grant;
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::object::Thread;
use ipc::abi::message::{HANDLES_MAX, HANDLES_OFFSET, SLOT_BYTES, SLOT_MOVE};
use ipc::abi::trace::TraceKind;
use ipc::abi::{Error, Handle, Rights, Tag};

/// Registers that carry words.
const WORD_REGS: [Reg; ipc::abi::message::WORDS] = [Reg::R10, Reg::R8, Reg::R9, Reg::R12];

/// A handle on its way.
#[derive(Clone, Copy, Debug)]
struct Passenger {
    /// Its old name.
    from: Handle,
    /// What it will grant.
    grant: Grant,
    /// If it moves, what it granted before.
    moved: Option<Grant>,
    /// Whether `grant` is counted besides `moved`.
    counted: bool,
}

/// The handles of a message on its way. A moved one names nothing for its sender meanwhile; a copied one is counted already.
#[derive(Debug)]
#[must_use = "handles on their way must arrive or be restored"]
pub(crate) struct Transit(heapless::Vec<Passenger, HANDLES_MAX>);

impl<H: Hardware> Kernel<H> {
    /// Takes a message's handles out of their sender's table.
    ///
    /// # Errors
    /// `BadHandle` or `MissingRight`, by the first slot that is wrong; then all are as before.
    pub(crate) fn extract(
        &self,
        cpu: &CpuState,
        sender: &Thread,
        tag: Tag,
    ) -> Result<Transit, Error> {
        let mut transit = Transit(heapless::Vec::new());
        if tag.handles() == 0 {
            return Ok(transit);
        }
        let process = self.process_of(sender);
        for slot in 0..tag.handles() {
            // Read once: the sender's other threads may write the buffer at any time.
            let word = self.hw.read(
                sender
                    .buffer()
                    .offset((HANDLES_OFFSET + slot * SLOT_BYTES) as u64),
            );
            let handle = Handle::from_raw(word as u32);
            let (moves, keep) = (
                (word >> 32) as u32 & SLOT_MOVE != 0,
                (word >> 32) as u32 & !SLOT_MOVE,
            );
            let mut handles = process.handles.lock(&cpu.token);
            let taken = handles.get(&self.pools.chunks, handle).and_then(|had| {
                let grant = Grant {
                    rights: had.rights & Rights::from_bits_truncate(keep),
                    ..had
                };
                let counted = !moves || had.stops_receiving(grant.rights);
                if moves {
                    had.with(Rights::TRANSFER)?;
                    handles.begin_move(&self.pools.chunks, handle)?;
                } else {
                    had.with(Rights::TRANSFER | Rights::DUPLICATE)?;
                }
                if counted {
                    self.retain(cpu, &grant);
                }
                Ok(Passenger {
                    from: handle,
                    grant,
                    moved: moves.then_some(had),
                    counted,
                })
            });
            drop(handles);
            match taken {
                // A tag has at most HANDLES_MAX handles.
                Ok(passenger) => drop(transit.0.push(passenger)),
                Err(error) => {
                    self.restore(cpu, sender, transit);
                    return Err(error);
                }
            }
        }
        Ok(transit)
    }

    /// Puts the handles of a message that does not go back where they were.
    pub(crate) fn restore(&self, cpu: &CpuState, sender: &Thread, transit: Transit) {
        let process = self.process_of(sender);
        for passenger in transit.0 {
            if let Some(had) = passenger.moved {
                let back = process.handles.lock(&cpu.token).end_move(
                    &self.pools.chunks,
                    passenger.from,
                    false,
                );
                if !back {
                    self.release(cpu, &had);
                }
            }
            if passenger.counted {
                self.release(cpu, &passenger.grant);
            }
        }
    }

    /// Copies a message and puts its handles into the receiver's table. Both threads belong to the caller.
    ///
    /// # Errors
    /// `LimitReached`, `OutOfMemory` or `PeerDied` if the receiver's table cannot take the handles; then the sender has them again.
    pub(crate) fn transfer(
        &self,
        cpu: &CpuState,
        sender: &Thread,
        receiver: &Thread,
        tag: Tag,
        transit: Transit,
    ) -> Result<(), Error> {
        if tag.handles() != 0 {
            self.seat(cpu, sender, receiver, transit)?;
        }
        for reg in WORD_REGS {
            receiver.regs.set(reg, sender.regs.get(reg));
        }
        // Two threads may have been given the same page as their buffer: then the payload is there already.
        if !tag.is_empty() && sender.buffer() != receiver.buffer() {
            self.hw.copy(sender.buffer(), receiver.buffer(), tag.len());
        }
        if self.is_tracing() && (tag.handles() != 0 || !tag.is_empty()) {
            let to = receiver.tid();
            let event = self.event_of(TraceKind::Transfer, sender);
            self.record(cpu, event.words(to.into(), tag.raw()));
        }
        Ok(())
    }

    /// Puts the passengers into the receiver's table and their new names into its buffer.
    fn seat(
        &self,
        cpu: &CpuState,
        sender: &Thread,
        receiver: &Thread,
        transit: Transit,
    ) -> Result<(), Error> {
        let to = self.process_of(receiver);
        let mut seated = heapless::Vec::<Handle, HANDLES_MAX>::new();
        let mut table = to.handles.lock(&cpu.token);
        // What is being freed may give room, but the receiver cannot be made to call again.
        let room = self.grow(cpu, to, &mut table, transit.0.len() as u32);
        let placed = room.and_then(|()| {
            for passenger in &transit.0 {
                match table.insert(&self.pools.chunks, passenger.grant) {
                    // As many as passengers.
                    Ok(handle) => drop(seated.push(handle)),
                    Err(error) => {
                        for &handle in &seated {
                            let _ = table.remove(&self.pools.chunks, handle);
                        }
                        return Err(error);
                    }
                }
            }
            Ok(())
        });
        drop(table);
        if let Err(error) = placed {
            self.restore(cpu, sender, transit);
            return Err(error);
        }
        let from = self.process_of(sender);
        for (slot, (passenger, handle)) in transit.0.iter().zip(&seated).enumerate() {
            if let Some(had) = passenger.moved {
                from.handles
                    .lock(&cpu.token)
                    .end_move(&self.pools.chunks, passenger.from, true);
                if passenger.counted {
                    self.release(cpu, &had);
                }
            }
            let word = u64::from(handle.raw()) | u64::from(passenger.grant.rights.bits()) << 32;
            self.hw.write(
                receiver
                    .buffer()
                    .offset((HANDLES_OFFSET + slot * SLOT_BYTES) as u64),
                word,
            );
        }
        Ok(())
    }
}

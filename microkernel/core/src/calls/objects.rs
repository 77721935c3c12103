//! Calls about handles, endpoints and notifications.

use super::{Caller, Stop};
use crate::handles::Grant;
use crate::hardware::Hardware;
use crate::kernel::Kernel;
use crate::object::Object;
use crate::object::process::Counted;
use core::sync::atomic::Ordering::Relaxed;
use ipc::abi::{Error, Handle, Rights};

impl<H: Hardware> Kernel<H> {
    pub(super) fn handle_close(&self, caller: &Caller<'_>, handle: Handle) -> Result<(), Stop> {
        let grant = caller
            .process
            .handles
            .lock(&caller.cpu.token)
            .remove(&self.pools.chunks, handle)?;
        self.release(caller.cpu, &grant);
        Ok(())
    }

    pub(super) fn handle_duplicate(
        &self,
        caller: &Caller<'_>,
        handle: Handle,
        rights: Rights,
    ) -> Result<(Handle,), Stop> {
        self.make_room(caller.cpu, caller.process, 1)?;
        let mut handles = caller.process.handles.lock(&caller.cpu.token);
        let had = handles
            .get(&self.pools.chunks, handle)?
            .with(Rights::DUPLICATE | rights)?;
        let grant = Grant { rights, ..had };
        // Another thread may have taken the room just made.
        self.grow(caller.cpu, caller.process, &mut handles, 1)?;
        // Under the lock of the table that holds a count already.
        let copy = handles.insert(&self.pools.chunks, grant)?;
        self.retain(caller.cpu, &grant);
        Ok((copy,))
    }

    pub(super) fn handle_mint(
        &self,
        caller: &Caller<'_>,
        endpoint: Handle,
        value: u64,
        rights: Rights,
    ) -> Result<(Handle,), Stop> {
        let hold = self.hold(caller, endpoint, Object::as_endpoint, Rights::MINT)?;
        let (reference, _) = hold.object;
        let given = Rights::CALL | Rights::DUPLICATE | Rights::TRANSFER;
        if value == 0 || !given.contains(rights) {
            return Err(Error::BadArgument.into());
        }
        self.make_room(caller.cpu, caller.process, 1)?;
        self.count(caller.process, Counted::Badges)?;
        let (badge, slot) = self
            .take_slot(caller.cpu, &self.pools.badges)
            .inspect_err(|_| self.uncount(caller.cpu, caller.slot, Counted::Badges))?;
        slot.value.store(value, Relaxed);
        slot.next.store(0, Relaxed);
        slot.owner.store(caller.slot, Relaxed);
        slot.refs.store(0, Relaxed);
        let grant = Grant {
            object: Object::Endpoint(reference, Some(badge)),
            rights,
        };
        self.retain(caller.cpu, &grant);
        match self.insert(caller.cpu, caller.process, grant) {
            Ok(handle) => Ok((handle,)),
            Err(error) => {
                // Nobody has seen the badge: it goes without telling.
                self.free_badge(caller.cpu, badge);
                self.release(
                    caller.cpu,
                    &Grant {
                        object: Object::Endpoint(reference, None),
                        rights,
                    },
                );
                Err(error.into())
            }
        }
    }

    pub(super) fn handle_info(
        &self,
        caller: &Caller<'_>,
        handle: Handle,
    ) -> Result<(u64, Rights, u64), Stop> {
        let grant = self.lookup(caller, handle)?;
        let badge = match grant.object {
            Object::Endpoint(_, Some(badge)) => self
                .pools
                .badges
                .get(badge)
                .map_or(0, |badge| badge.value.load(Relaxed)),
            _ => 0,
        };
        Ok((grant.object.kind() as u64, grant.rights, badge))
    }

    pub(super) fn handle_give(
        &self,
        caller: &Caller<'_>,
        process: Handle,
        handle: Handle,
        rights: Rights,
    ) -> Result<(Handle,), Stop> {
        let (slot, _target) = self.target(caller, process, Rights::MANAGE)?;
        self.make_room(caller.cpu, self.process(slot), 1)?;
        let had = {
            let mut handles = caller.process.handles.lock(&caller.cpu.token);
            handles
                .get(&self.pools.chunks, handle)?
                .with(Rights::TRANSFER | rights)?;
            handles.begin_move(&self.pools.chunks, handle)?
        };
        let grant = Grant { rights, ..had };
        let copied = had.stops_receiving(rights);
        if copied {
            self.retain(caller.cpu, &grant);
        }
        let given = self.insert(caller.cpu, self.process(slot), grant);
        let stays = caller.process.handles.lock(&caller.cpu.token).end_move(
            &self.pools.chunks,
            handle,
            given.is_ok(),
        );
        match given {
            Ok(there) => {
                if copied {
                    self.release(caller.cpu, &had);
                }
                Ok((there,))
            }
            Err(error) => {
                if copied {
                    self.release(caller.cpu, &grant);
                }
                if !stays {
                    self.release(caller.cpu, &had);
                }
                Err(error.into())
            }
        }
    }

    pub(super) fn endpoint_create(&self, caller: &Caller<'_>) -> Result<(Handle,), Stop> {
        let cpu = caller.cpu;
        self.make_room(caller.cpu, caller.process, 1)?;
        self.count(caller.process, Counted::Endpoints)?;
        let (reference, endpoint) = self
            .take_slot(cpu, &self.pools.endpoints)
            .inspect_err(|_| self.uncount(cpu, caller.slot, Counted::Endpoints))?;
        endpoint.owner.store(caller.slot, Relaxed);
        endpoint.refs.store(0, Relaxed);
        endpoint.receivers.store(0, Relaxed);
        let rights =
            Rights::CALL | Rights::RECEIVE | Rights::MINT | Rights::DUPLICATE | Rights::TRANSFER;
        let grant = Grant {
            object: Object::Endpoint(reference, None),
            rights,
        };
        self.retain(caller.cpu, &grant);
        self.insert(cpu, caller.process, grant)
            .map(|handle| (handle,))
            .inspect_err(|_| self.release(cpu, &grant))
            .map_err(Stop::from)
    }

    pub(super) fn notification_create(&self, caller: &Caller<'_>) -> Result<(Handle,), Stop> {
        let cpu = caller.cpu;
        self.make_room(caller.cpu, caller.process, 1)?;
        self.count(caller.process, Counted::Notifications)?;
        let (reference, notification) = self
            .take_slot(cpu, &self.pools.notifications)
            .inspect_err(|_| self.uncount(cpu, caller.slot, Counted::Notifications))?;
        notification.owner.store(caller.slot, Relaxed);
        notification.refs.store(1, Relaxed);
        let rights = Rights::SIGNAL | Rights::WAIT | Rights::DUPLICATE | Rights::TRANSFER;
        let grant = Grant {
            object: Object::Notification(reference),
            rights,
        };
        self.insert(cpu, caller.process, grant)
            .map(|handle| (handle,))
            .inspect_err(|_| self.release(cpu, &grant))
            .map_err(Stop::from)
    }
}

//! Calls about interrupts and I/O ports.

use super::{Caller, Stop};
use crate::handles::Grant;
use crate::hardware::Hardware;
use crate::interrupts::Line;
use crate::kernel::Kernel;
use crate::object::Object;
use core::sync::atomic::Ordering::Relaxed;
use ipc::abi::{BY_MESSAGE, Error, Handle, Rights};

impl<H: Hardware> Kernel<H> {
    pub(super) fn interrupt_create(
        &self,
        caller: &Caller<'_>,
        system: Handle,
        line: u64,
        notification: Handle,
        bits: u64,
    ) -> Result<(Handle, u64, u64), Stop> {
        self.system(caller, system, Rights::DEVICES)?;
        let cpu = caller.cpu;
        let wired = match line {
            BY_MESSAGE => None,
            line => Some(
                u32::try_from(line)
                    .ok()
                    .filter(|&line| line < self.hw.lines())
                    .ok_or(Error::BadArgument)?,
            ),
        };
        let hold = self.hold(
            caller,
            notification,
            Object::as_notification,
            Rights::SIGNAL,
        )?;
        let reference = hold.object;
        self.make_room(cpu, caller.process, 1)?;
        let line = {
            let mut lines = self.lines.lock(&cpu.token);
            let line = match wired {
                Some(line) => line,
                None => lines.free(self.hw.lines()).ok_or(Error::LimitReached)?,
            };
            let place = lines.place(line).ok_or(Error::BadArgument)?;
            if place.is_some() || self.hw.keeps(line) {
                return Err(Error::Busy.into());
            }
            *place = Some(Line {
                notification: reference,
                bits,
                pid: caller.process.pid.load(Relaxed),
                driver: 0,
                handles: 1,
            });
            line
        };
        self.retain(cpu, &Grant::keeping(Object::Notification(reference)));
        let rights = Rights::MANAGE | Rights::TRANSFER | Rights::DUPLICATE;
        let grant = Grant {
            object: Object::Interrupt(line),
            rights,
        };
        match self.insert(cpu, caller.process, grant) {
            Ok(handle) => {
                self.hw.unmask(line);
                let (address, data) = match wired {
                    Some(_) => (0, 0),
                    None => self.hw.message(line),
                };
                Ok((handle, address, data))
            }
            Err(error) => {
                self.release(cpu, &grant);
                Err(error.into())
            }
        }
    }

    pub(super) fn interrupt_ack(&self, caller: &Caller<'_>, interrupt: Handle) -> Result<(), Stop> {
        // Held: another thread may close the last handle, and the line have another owner by then.
        let hold = self.hold(caller, interrupt, Object::as_interrupt, Rights::MANAGE)?;
        let line = hold.object;
        if let Some(Some(taken)) = self.lines.lock(&caller.cpu.token).place(line) {
            taken.driver = caller.process.pid.load(Relaxed);
        }
        self.hw.unmask(line);
        Ok(())
    }

    pub(super) fn ports_create(
        &self,
        caller: &Caller<'_>,
        system: Handle,
        first: u64,
        count: u64,
    ) -> Result<(Handle,), Stop> {
        self.system(caller, system, Rights::DEVICES)?;
        let (first, count) = (
            u16::try_from(first).map_err(|_| Error::BadArgument)?,
            u32::try_from(count).map_err(|_| Error::BadArgument)?,
        );
        if count == 0 || u32::from(first) + count > 1 << 16 {
            return Err(Error::BadArgument.into());
        }
        let rights = Rights::READ | Rights::WRITE | Rights::TRANSFER | Rights::DUPLICATE;
        let grant = Grant {
            object: Object::Ports { first, count },
            rights,
        };
        self.make_room(caller.cpu, caller.process, 1)?;
        Ok((self.insert(caller.cpu, caller.process, grant)?,))
    }

    /// The port that a handle and an offset name, if `bytes` fit there.
    fn port(
        &self,
        caller: &Caller<'_>,
        ports: Handle,
        offset: u64,
        bytes: u64,
        right: Rights,
    ) -> Result<(u16, u8), Error> {
        let grant = self.lookup(caller, ports)?;
        let (first, count) = grant.named(Object::as_ports, right)?;
        if !matches!(bytes, 1 | 2 | 4)
            || offset
                .checked_add(bytes)
                .is_none_or(|end| end > count.into())
        {
            return Err(Error::BadArgument);
        }
        Ok((first + offset as u16, bytes as u8))
    }

    pub(super) fn port_read(
        &self,
        caller: &Caller<'_>,
        ports: Handle,
        offset: u64,
        bytes: u64,
    ) -> Result<(u64,), Stop> {
        let (port, bytes) = self.port(caller, ports, offset, bytes, Rights::READ)?;
        Ok((self.hw.port_read(port, bytes).into(),))
    }

    pub(super) fn port_write(
        &self,
        caller: &Caller<'_>,
        ports: Handle,
        offset: u64,
        bytes: u64,
        value: u64,
    ) -> Result<(), Stop> {
        let (port, bytes) = self.port(caller, ports, offset, bytes, Rights::WRITE)?;
        self.hw.port_write(port, bytes, value as u32);
        Ok(())
    }
}

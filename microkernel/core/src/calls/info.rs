//! Calls about the system as a whole: its log, its state, its power.

use super::{Caller, Stop};
use crate::hardware::Hardware;
use crate::kernel::Kernel;
use ipc::abi::info::InfoKind;
use ipc::abi::layout::LOG_PART_MAX;
use ipc::abi::message::PAYLOAD_MAX;
use ipc::abi::{Error, Handle, PowerAction, Rights};
use zerocopy::{Immutable, IntoBytes};

impl<H: Hardware> Kernel<H> {
    pub(super) fn log_write(
        &self,
        caller: &Caller<'_>,
        system: Handle,
        len: u64,
    ) -> Result<(), Stop> {
        self.system(caller, system, Rights::LOG_WRITE)?;
        if len > LOG_PART_MAX as u64 {
            return Err(Error::TooLarge.into());
        }
        let mut text = [0; LOG_PART_MAX];
        let text = &mut text[..len as usize];
        self.hw.read_bytes(caller.thread.buffer(), text);
        let name = caller.process.name();
        let end = name.iter().position(|&byte| byte == 0);
        let name = &name[..end.unwrap_or(name.len())];
        self.log
            .writer(&caller.cpu.token, self.now(), name)
            .write(text);
        Ok(())
    }

    pub(super) fn log_read(
        &self,
        caller: &Caller<'_>,
        system: Handle,
        position: u64,
    ) -> Result<(u64, u64, u64), Stop> {
        self.system(caller, system, Rights::LOG_READ)?;
        let mut bytes = [0; LOG_PART_MAX];
        let reading = self.log.read(&caller.cpu.token, position, &mut bytes);
        self.put(caller, &bytes[..reading.len]);
        Ok((reading.next, reading.len as u64, reading.lost))
    }

    pub(super) fn system_info(
        &self,
        caller: &Caller<'_>,
        system: Handle,
        kind: u64,
        index: u64,
    ) -> Result<(u64,), Stop> {
        self.system(caller, system, Rights::INSPECT)?;
        let kind = InfoKind::from_raw(kind).ok_or(Error::BadArgument)?;
        let single = matches!(
            kind,
            InfoKind::Memory | InfoKind::CommandLine | InfoKind::Version | InfoKind::Trace
        );
        if index != 0 && single {
            return Err(Error::NotFound.into());
        }
        let bytes = match kind {
            InfoKind::Memory => self.put_all(caller, self.memory_state(caller).as_bytes()),
            InfoKind::Cpu => self.put_all(caller, self.cpu_state(index)?.as_bytes()),
            InfoKind::CommandLine => self.put_all(caller, self.facts.command_line),
            InfoKind::Version => self.put_all(caller, self.facts.version.as_bytes()),
            InfoKind::Process => self.put_some(caller, self.process_state(caller, index)?),
            InfoKind::Thread => self.put_some(caller, self.thread_state(index)?),
            InfoKind::Mapping => self.put_some(caller, self.mapping_state(caller, index)?),
            InfoKind::Page => self.put_some(caller, self.page_state(caller, index)?),
            InfoKind::Stack => self.put_all(caller, self.stack_state(index)?.as_bytes()),
            InfoKind::Interrupts => self.put_all(caller, self.interrupt_state(index)?.as_bytes()),
            InfoKind::Line => self.put_some(caller, self.line_state(caller, index)?),
            InfoKind::Trace => self.put_all(caller, self.trace_state().as_bytes()),
        };
        Ok((bytes,))
    }

    /// Writes the record of a slot that is in use, and says its length; 0 for one that is not.
    fn put_some(&self, caller: &Caller<'_>, record: Option<impl IntoBytes + Immutable>) -> u64 {
        record.map_or(0, |record| self.put_all(caller, record.as_bytes()))
    }

    /// Writes as much as a payload holds, and says how much.
    fn put_all(&self, caller: &Caller<'_>, bytes: &[u8]) -> u64 {
        let bytes = &bytes[..bytes.len().min(PAYLOAD_MAX)];
        self.put(caller, bytes);
        bytes.len() as u64
    }

    pub(super) fn system_power(
        &self,
        caller: &Caller<'_>,
        system: Handle,
        action: u64,
    ) -> Result<(), Stop> {
        self.system(caller, system, Rights::POWER)?;
        match PowerAction::from_raw(action) {
            Some(action) => self.hw.power(action),
            None => Err(Error::BadArgument.into()),
        }
    }
}

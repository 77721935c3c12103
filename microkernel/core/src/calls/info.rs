//! Calls about the system as a whole: its log, its state, its power.

use super::{Caller, Stop};
use crate::hardware::{Hardware, PowerAction};
use crate::kernel::Kernel;
use core::sync::atomic::Ordering::Relaxed;
use ipc::abi::info::{CpuInfo, InfoKind, MemoryInfo};
use ipc::abi::message::PAYLOAD_MAX;
use ipc::abi::{Error, Handle, Rights};
use zerocopy::IntoBytes;

/// Longest piece of log in one call, either way.
const LOG_MAX: usize = 1024;

impl<H: Hardware> Kernel<H> {
    pub(super) fn log_write(
        &self,
        caller: &Caller<'_>,
        system: Handle,
        len: u64,
    ) -> Result<(), Stop> {
        self.system(caller, system, Rights::LOG_WRITE)?;
        if len > LOG_MAX as u64 {
            return Err(Error::TooLarge.into());
        }
        let mut text = [0; LOG_MAX];
        let text = &mut text[..len as usize];
        self.hw.read_bytes(caller.thread.buffer(), text);
        let words = [
            caller.process.name[0].load(Relaxed),
            caller.process.name[1].load(Relaxed),
        ];
        let name = words.as_bytes();
        let name = &name[..name
            .iter()
            .position(|&byte| byte == 0)
            .unwrap_or(name.len())];
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
        let mut bytes = [0; LOG_MAX];
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
        if index != 0 && kind != InfoKind::Cpu {
            return Err(Error::NotFound.into());
        }
        let bytes = match kind {
            InfoKind::Memory => self.put_all(caller, self.memory_state(caller).as_bytes()),
            InfoKind::Cpu => self.put_all(caller, self.cpu_state(index)?.as_bytes()),
            InfoKind::CommandLine => self.put_all(caller, self.facts.command_line),
            InfoKind::Version => self.put_all(caller, self.facts.version.as_bytes()),
        };
        Ok((bytes,))
    }

    /// Writes as much as a payload holds, and says how much.
    fn put_all(&self, caller: &Caller<'_>, bytes: &[u8]) -> u64 {
        let bytes = &bytes[..bytes.len().min(PAYLOAD_MAX)];
        self.put(caller, bytes);
        bytes.len() as u64
    }

    fn memory_state(&self, caller: &Caller<'_>) -> MemoryInfo {
        let cpu = &caller.cpu.token;
        let usage = self.frames.usage(cpu);
        let pools = [
            self.pools.processes.usage(cpu),
            self.pools.threads.usage(cpu),
            self.pools.endpoints.usage(cpu),
            self.pools.notifications.usage(cpu),
            self.pools.memory.usage(cpu),
            self.pools.chunks.usage(cpu),
            self.pools.badges.usage(cpu),
        ];
        MemoryInfo {
            total: self.facts.total_pages,
            free: usage.free.into(),
            waiting: usage.waiting.into(),
            kernel: self.facts.kernel_pages,
            bootfs: self.facts.bootfs_pages,
            processes: u64::from(usage.total - usage.free - usage.waiting),
            pools: pools.map(|(used, all)| [used.into(), all.into()]),
        }
    }

    fn cpu_state(&self, index: u64) -> Result<CpuInfo, Error> {
        let there = usize::try_from(index)
            .ok()
            .and_then(|index| self.cpus.get(index))
            .ok_or(Error::NotFound)?;
        let load = &there.load;
        Ok(CpuInfo {
            apic_id: load.apic_id.load(Relaxed),
            idle_ns: self.hw.tsc_to_nanos(load.idle_ticks.load(Relaxed)),
            busy_ns: self.hw.tsc_to_nanos(load.busy_ticks.load(Relaxed)),
            ticks: load.ticks.load(Relaxed),
            interrupts: load.interrupts.load(Relaxed),
            syscalls: load.syscalls.load(Relaxed),
            switches: load.switches.load(Relaxed),
            longest_entry: load.longest_entry.load(Relaxed),
            tsc_offset: load.tsc_offset.load(Relaxed),
        })
    }

    pub(super) fn system_power(
        &self,
        caller: &Caller<'_>,
        system: Handle,
        action: u64,
    ) -> Result<(), Stop> {
        self.system(caller, system, Rights::POWER)?;
        match action {
            0 => self.hw.power(PowerAction::Off),
            1 => self.hw.power(PowerAction::Reboot),
            _ => Err(Error::BadArgument.into()),
        }
    }
}

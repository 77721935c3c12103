//! Which handles a program gets from its entry, and under which names it finds them.
//!
//! This list is the whole of a program's authority, together with the `stdout` that its starter may give it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use ipc::abi::Rights;
use ipc::abi::layout::PAGE_SIZE;
use ipc::abi::startup::names;
use ipc::proto::system::Program;

/// One handle to be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant<'a> {
    /// Under which name.
    pub name: String,
    /// To what.
    pub what: What<'a>,
}

/// What a handle is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What<'a> {
    /// The endpoint of this name, to call.
    Call(&'a str),
    /// The endpoint of this name, to serve.
    Serve(&'a str),
    /// The system, with these rights.
    System(Rights),
    /// The profiling driver.
    Profiler,
    /// The boot archive, to read. What makes processes may also map their code from it: no other memory can be executed.
    Bootfs {
        /// Whether it does.
        makes_processes: bool,
    },
    /// A notification of its own, which its interrupts signal.
    Notification,
    /// An interrupt line, which signals this bit of the notification before it.
    Interrupt {
        /// Line.
        line: u32,
        /// Bit.
        bit: u32,
    },
    /// I/O ports.
    Ports {
        /// First port.
        first: u16,
        /// How many.
        count: u16,
    },
    /// Device memory.
    Device {
        /// Physical address.
        base: u64,
        /// Pages.
        pages: u64,
    },
}

/// Rights that a program needs to pass on what it has.
const SHARE: Rights = Rights::DUPLICATE.union(Rights::TRANSFER);

impl What<'_> {
    /// Rights of the handle in the program.
    #[must_use]
    pub const fn rights(self) -> Rights {
        match self {
            Self::Call(_) => Rights::CALL.union(SHARE),
            Self::Serve(_) => Rights::RECEIVE
                .union(Rights::MINT)
                .union(Rights::CALL)
                .union(SHARE),
            Self::System(rights) => rights.union(Rights::DUPLICATE),
            Self::Profiler => Rights::MANAGE.union(Rights::DUPLICATE),
            Self::Bootfs {
                makes_processes: true,
            } => Rights::READ.union(Rights::EXECUTE),
            Self::Bootfs { .. } => Rights::READ,
            Self::Notification => Rights::SIGNAL.union(Rights::WAIT).union(SHARE),
            Self::Interrupt { .. } => Rights::MANAGE,
            Self::Ports { .. } => Rights::READ.union(Rights::WRITE),
            Self::Device { .. } => Rights::READ.union(Rights::WRITE),
        }
    }
}

/// The handles that a program's entry gives it. A notification comes before the interrupts that signal it.
#[must_use]
pub fn plan(program: &Program) -> Vec<Grant<'_>> {
    let mut plan = Vec::new();
    let mut grant = |name: String, what| plan.push(Grant { name, what });
    for name in &program.serves {
        grant(format!("{}{name}", names::SERVE), What::Serve(name));
    }
    for name in &program.calls {
        grant(name.clone(), What::Call(name));
    }
    if program.log {
        grant(names::LOG.into(), What::System(Rights::LOG_WRITE));
    }
    let system = program.system_rights();
    if !system.is_empty() {
        grant(names::SYSTEM.into(), What::System(system));
    }
    if program.profiler {
        grant(names::PROFILER.into(), What::Profiler);
    }
    if program.bootfs {
        let makes_processes = system.contains(Rights::SPAWN);
        grant(names::BOOTFS.into(), What::Bootfs { makes_processes });
    }
    if !program.interrupts.is_empty() {
        grant(names::NOTIFICATION.into(), What::Notification);
    }
    for (&line, bit) in program.interrupts.iter().zip(0..) {
        grant(
            format!("{}{line}", names::INTERRUPT),
            What::Interrupt { line, bit },
        );
    }
    for range in &program.ports {
        let (first, count) = (range.first, range.count);
        grant(
            format!("{}{first:x}", names::PORTS),
            What::Ports { first, count },
        );
    }
    for range in &program.device_memory {
        let (base, pages) = (range.base, range.bytes.div_ceil(PAGE_SIZE));
        grant(
            format!("{}{base:x}", names::DEVICE),
            What::Device { base, pages },
        );
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::program;
    use ipc::proto::system::{DeviceRange, PortRange, SystemRight};

    const READ_ONLY: What<'static> = What::Bootfs {
        makes_processes: false,
    };

    #[test]
    fn the_default_program_gets_nothing() {
        assert_eq!(plan(&program("default")), []);
    }

    #[test]
    fn a_handle_for_each_right_of_the_entry_and_no_other() {
        let program = Program {
            serves: vec!["console".into()],
            calls: vec!["init".into()],
            ports: vec![PortRange {
                first: 0x3f8,
                count: 8,
            }],
            interrupts: vec![4, 11],
            device_memory: vec![DeviceRange {
                base: 0xfed0_0000,
                bytes: 4096,
            }],
            profiler: true,
            bootfs: true,
            log: true,
            system: vec![SystemRight::Inspect, SystemRight::Power],
            ..program("console")
        };
        let plan = plan(&program);
        let named: Vec<_> = plan
            .iter()
            .map(|grant| (grant.name.as_str(), grant.what))
            .collect();
        assert_eq!(
            named,
            [
                ("serve:console", What::Serve("console")),
                ("init", What::Call("init")),
                ("log", What::System(Rights::LOG_WRITE)),
                ("system", What::System(Rights::INSPECT | Rights::POWER)),
                ("profiler", What::Profiler),
                ("bootfs", READ_ONLY),
                ("notification", What::Notification),
                ("irq:4", What::Interrupt { line: 4, bit: 0 }),
                ("irq:11", What::Interrupt { line: 11, bit: 1 }),
                (
                    "ports:3f8",
                    What::Ports {
                        first: 0x3f8,
                        count: 8
                    }
                ),
                (
                    "device:fed00000",
                    What::Device {
                        base: 0xfed0_0000,
                        pages: 1
                    }
                ),
            ]
        );
    }

    #[test]
    fn a_caller_cannot_receive_and_a_log_cannot_be_read() {
        assert!(
            !What::Call("x")
                .rights()
                .intersects(Rights::RECEIVE | Rights::MINT)
        );
        let log = What::System(Rights::LOG_WRITE).rights();
        assert!(!log.intersects(Rights::LOG_READ | Rights::SPAWN | Rights::TRANSFER));
        assert_eq!(READ_ONLY.rights(), Rights::READ);
    }

    #[test]
    fn what_makes_processes_has_code_for_them() {
        let program = Program {
            bootfs: true,
            system: vec![SystemRight::Spawn],
            ..program("loader")
        };
        let plan = plan(&program);
        let rights = plan.last().map(|grant| grant.what.rights());
        assert_eq!(rights, Some(Rights::READ | Rights::EXECUTE));
    }
}

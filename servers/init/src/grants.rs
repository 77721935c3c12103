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

use crate::pci::devices::Device;
use crate::pci::function::Interrupts;

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
    /// The configuration of its PCI function, whose badge this is.
    Configuration {
        /// Badge.
        badge: u64,
    },
    /// The wired interrupt of its PCI function, unless somebody else has that line; it signals this bit of the notification before it.
    Line {
        /// Line.
        line: u32,
        /// Bit.
        bit: u32,
    },
    /// An interrupt of its PCI function, by message, which signals this bit of the notification before it.
    Message {
        /// Bit.
        bit: u32,
    },
    /// Its memory for DMA.
    Dma,
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
            Self::Device { .. } | Self::Dma => Rights::READ.union(Rights::WRITE),
            // It cannot be passed on, so what is asked through it is asked by the driver.
            Self::Configuration { .. } => Rights::CALL,
            Self::Line { .. } | Self::Message { .. } => Rights::MANAGE,
        }
    }
}

/// The handles that a program's entry gives it, and those of the PCI function that it drives, if there is one. A notification
/// comes before the interrupts that signal it.
#[must_use]
pub fn plan<'a, H>(program: &'a Program, device: Option<&Device<H>>) -> Vec<Grant<'a>> {
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
    let interrupts = device.map(|device| device.function.interrupts);
    let device_interrupts = interrupts.is_some_and(|it| it != Interrupts::None);
    if device_interrupts || !program.interrupts.is_empty() {
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
    if let Some(device) = device {
        let first_bit = program.interrupts.len() as u32;
        plan_device(device, first_bit, &mut plan);
    }
    plan
}

/// The handles of a PCI function, whose interrupts signal the bits from `first_bit` on.
fn plan_device<H>(device: &Device<H>, first_bit: u32, plan: &mut Vec<Grant<'_>>) {
    let mut grant = |name: String, what| plan.push(Grant { name, what });
    let badge = device.badge();
    grant(names::PCI.into(), What::Configuration { badge });
    for piece in &device.function.pieces {
        let name = format!("{}{}:{:x}", names::PCI_BAR, piece.bar, piece.offset);
        let (base, pages) = (piece.base, piece.pages);
        grant(name, What::Device { base, pages });
    }
    match device.function.interrupts {
        Interrupts::Messages(_) => {
            for vector in 0..device.vectors {
                let bit = first_bit + u32::from(vector);
                let name = format!("{}{vector}", names::PCI_VECTOR);
                grant(name, What::Message { bit });
            }
        }
        Interrupts::Line(line) => {
            let (line, bit) = (line.into(), first_bit);
            grant(names::PCI_LINE.into(), What::Line { line, bit });
        }
        Interrupts::None => {}
    }
    grant(names::PCI_DMA.into(), What::Dma);
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
        assert_eq!(plan::<()>(&program("default"), None), []);
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
        let plan = plan::<()>(&program, None);
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
        let plan = plan::<()>(&program, None);
        let rights = plan.last().map(|grant| grant.what.rights());
        assert_eq!(rights, Some(Rights::READ | Rights::EXECUTE));
    }
}

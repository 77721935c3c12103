//! What the tests are made of: small ELF files, records, and a driver that can be told to misbehave.
#![expect(dead_code, reason = "each test crate uses a part")]

pub mod course;
pub mod driver;
pub mod elf;
pub mod fold;
pub mod record;

use ipc::abi::info::InfoPage;
use ipc::proto::Text;
use ipc::proto::init::{BUILD_ID_MAX, Name};
use profd::catalog::{Catalog, Content};
use profd::clock::Clock;
use profd::process::{Process, Processes};

/// A millisecond, in nanoseconds and, with [`clock`], in TSC ticks.
pub const MS: u64 = 1_000_000;

/// A clock whose TSC counts nanoseconds since boot.
pub fn clock() -> Clock {
    Clock::new(InfoPage {
        tsc_mult: 1 << 32,
        tsc_hz: 1_000_000_000,
        ..InfoPage::default()
    })
}

/// A process that runs `bin/NAME`.
pub fn process(name: &str) -> Process {
    Process {
        name: Name::cut(name),
        image: Text::cut(&format!("bin/{name}")),
        build_id: [0; BUILD_ID_MAX],
        load_bias: 0,
        ended: None,
    }
}

/// The images and processes of most tests: a kernel, `shares` (pids 12 and 13), `netload` (20) and `net` (21).
pub struct World {
    kernel: Vec<u8>,
    programs: Vec<(&'static str, Vec<u8>)>,
    pub processes: Processes,
}

impl World {
    pub fn new() -> Self {
        let mut processes = Processes::default();
        for (pid, name) in [(12, "shares"), (13, "shares"), (20, "netload"), (21, "net")] {
            processes.start(pid, process(name));
        }
        let program = |names: &[&str]| {
            let functions = names.iter().zip(0..);
            elf::Elf::new(functions.map(|(name, at)| (*name, 0x40_1000 + at * 0x100, 0x100)))
                .build()
        };
        let kernel = ["idle", "_RNvNtCs1_6kernel3ipc8transfer", "syscall_entry"];
        let kernel = kernel
            .iter()
            .zip(0..)
            .map(|(name, at)| (*name, KERNEL + at * 0x100, 0x100));
        Self {
            kernel: elf::Elf::new(kernel).build(),
            programs: vec![
                (
                    "bin/shares",
                    program(&[
                        "_RNvCs1_6shares4main",
                        "_RNvCs1_6shares7share_a",
                        "_RNvCs1_6shares7share_b",
                    ]),
                ),
                ("bin/netload", program(&["_RNvCs1_7netload4main"])),
                ("bin/net", program(&["_RNvNtCs1_3net7sockets4send"])),
            ],
            processes,
        }
    }

    pub fn catalog(&self) -> Catalog<'_> {
        let mut catalog = Catalog::new(Some(Content::Bytes(&self.kernel)));
        for (name, data) in &self.programs {
            catalog.add(name, Content::Bytes(data));
        }
        catalog
    }
}

/// Where the kernel of a [`World`] begins: `idle`, `ipc::transfer` and `syscall_entry`, 0x100 bytes each. Programs begin at
/// 0x401000.
pub const KERNEL: u64 = 0xffff_ffff_8000_1000;

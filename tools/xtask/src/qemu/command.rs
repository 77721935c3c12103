//! QEMU's command line.
//!
//! - `-nodefaults`: only what is named here exists. `-no-reboot`: a triple fault ends QEMU instead of looping.
//! - The CPU model `max` is all that the accelerator can offer: everything TCG emulates (SMEP, SMAP, UMIP, NX, 1 GiB pages),
//!   or under KVM the host's CPU. Named models under TCG warn about what it lacks, on stderr.
//! - The network card needs no boot ROM, so it needs no package that has one.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use ipc::abi::layout::EXIT_PORT;

use crate::build::Image;
use pmu_model::CPUS_MAX;
use pmu_model::record::PORT;
use pmu_model::setup::WORD;

use crate::child;
use crate::cli::{Accel, BootOptions, Forward, Shim};

/// UDP port of the remote shell, in the guest and, unless another is asked for, on the host.
pub const REMOTE_SHELL_PORT: u16 = remote_shell::PORT;

/// Where the guest's serial line goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serial {
    /// A terminal in raw mode; Ctrl-A X ends QEMU.
    Terminal,
    /// Stdin and stdout, byte for byte.
    Pipes,
}

/// What reaches the guest's network from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Nothing: there is no network card.
    Absent,
    /// Nothing.
    Closed,
    /// The remote shell, by this UDP port of the loopback interface.
    Forward(u16),
    /// Ethernet frames, from who listens at this TCP port of the loopback interface.
    Cable(u16),
}

/// Everything that QEMU's command line depends on.
#[derive(Clone, Debug)]
pub struct Machine {
    /// What was asked for.
    pub options: BootOptions,
    /// Where the serial line goes.
    pub serial: Serial,
    /// What the host can reach.
    pub network: Network,
    /// Port of the loopback interface on which the machine waits for a debugger before its first instruction.
    pub debugger: Option<u16>,
}

impl Machine {
    /// Bytes that QEMU keeps at the end of memory, above the archive, for the ACPI tables (QEMU 7.2, `hw/i386/x86.c`:
    /// `acpi_data_size` and the page that it begins in).
    pub const ACPI_BYTES: u64 = 160 << 10;

    /// The command that boots an image; its standard streams are those of this process until changed.
    #[must_use]
    pub fn command(&self, image: &Image) -> Command {
        let options = &self.options;
        let mut qemu = bare();
        qemu.arg("-no-reboot");
        qemu.args(["-accel", accel(options), "-cpu", &options.cpu]);
        qemu.arg("-smp").arg(options.smp.to_string());
        qemu.arg("-m").arg(format!("{}M", options.mem));
        let shim = options.shim.as_ref();
        qemu.arg("-kernel")
            .arg(shim.map_or(&image.kernel, |shim| &shim.path));
        if let Some(bootfs) = &image.bootfs {
            qemu.arg("-initrd").arg(bootfs);
        }
        match shim {
            None => qemu.args(["-append", &options.cmdline]),
            Some(shim) => add_shim(&mut qemu, shim, &options.cmdline),
        };
        let exit = format!("isa-debug-exit,iobase={EXIT_PORT:#x},iosize=4");
        qemu.args(["-device", &exit]);
        qemu.args(match self.serial {
            Serial::Terminal => &["-serial", "mon:stdio"][..],
            Serial::Pipes => &["-serial", "stdio"],
        });
        let wire = match self.network {
            Network::Absent => None,
            Network::Closed => Some(wire(&options.forwards)),
            Network::Forward(host) => {
                let shell = Forward {
                    host,
                    guest: REMOTE_SHELL_PORT,
                };
                Some(wire(&[&[shell], &options.forwards[..]].concat()))
            }
            Network::Cable(port) => Some(format!("socket,id=net,connect=127.0.0.1:{port}")),
        };
        if let Some(wire) = wire {
            qemu.args(["-netdev", &wire]);
            qemu.args(["-device", "virtio-net-pci,netdev=net,romfile="]);
        }
        if options.icount {
            qemu.args(["-icount", "shift=0,sleep=off"]);
        }
        if let Some(port) = self.debugger {
            qemu.args(["-S", "-gdb", &format!("tcp:127.0.0.1:{port}")]);
        }
        qemu.args(&options.qemu_args);
        qemu
    }
}

/// A network that the loopback interface reaches by these ports.
fn wire(forwards: &[Forward]) -> String {
    let mut wire = "user,id=net".to_owned();
    for Forward { host, guest } in forwards {
        wire.push_str(&format!(",hostfwd=udp:127.0.0.1:{host}-:{guest}"));
    }
    wire
}

/// What the shim needs of the machine: timers that send messages, one for each CPU, and a port to write its record to.
fn add_shim<'a>(qemu: &'a mut Command, shim: &Shim, cmdline: &str) -> &'a mut Command {
    let counters = &shim.counters;
    qemu.args(["-append", &format!("{WORD}{counters} {cmdline}")]);
    qemu.args(["-global", &format!("hpet.timers={CPUS_MAX}")]);
    qemu.args(["-global", "hpet.msi=on"]);
    let record = format!("file,id=record,path={}", shim.record.display());
    qemu.args(["-chardev", &record]);
    let console = format!("isa-debugcon,iobase={PORT:#x},chardev=record");
    qemu.args(["-device", &console])
}

/// Deterministic time needs one thread for all CPUs.
const fn accel(options: &BootOptions) -> &'static str {
    match (options.accel, options.icount) {
        (Accel::Kvm, _) => "kvm",
        (Accel::Tcg, true) => "tcg,thread=single",
        (Accel::Tcg, false) => "tcg,thread=multi",
    }
}

/// QEMU with a machine that has only what is named behind this.
pub fn bare() -> Command {
    let mut qemu = qemu();
    qemu.args(["-machine", "pc", "-nodefaults", "-no-user-config"]);
    qemu.args(["-display", "none"]);
    qemu
}

/// What QEMU is called, unless the environment gives another name.
pub fn name() -> OsString {
    let name = env::var_os("QEMU").filter(|name| !name.is_empty());
    name.unwrap_or_else(|| "qemu-system-x86_64".into())
}

/// QEMU, in the directory that `run.sh` was called from. It ends with this process.
fn qemu() -> Command {
    let mut qemu = child::command(name());
    if let Some(directory) = env::var_os("SONDE_INVOKED_FROM") {
        qemu.current_dir(PathBuf::from(directory));
    }
    qemu
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(options: BootOptions, network: Network) -> String {
        let machine = Machine {
            options,
            serial: Serial::Pipes,
            network,
            debugger: None,
        };
        let image = Image {
            kernel: "/k".into(),
            bootfs: Some("/b".into()),
        };
        let command = machine.command(&image);
        let words = command
            .get_args()
            .map(|word| word.to_string_lossy().into_owned());
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn ports_are_forwarded_from_loopback_only() {
        let alone = line(BootOptions::default(), Network::Forward(9000));
        assert!(
            alone.contains("hostfwd=udp:127.0.0.1:9000-:5555 "),
            "{alone}"
        );
        assert_eq!(alone.matches("hostfwd").count(), 1);
        let options = BootOptions {
            forwards: vec!["9001:7".parse().unwrap()],
            ..BootOptions::default()
        };
        let both = line(options, Network::Forward(9000));
        let says = "hostfwd=udp:127.0.0.1:9000-:5555,hostfwd=udp:127.0.0.1:9001-:7 ";
        assert!(both.contains(says), "{both}");
    }

    #[test]
    fn options_reach_qemu_and_its_own_arguments_come_last() {
        let options = BootOptions {
            smp: 2,
            mem: 64,
            cmdline: "a b".into(),
            icount: true,
            qemu_args: vec!["-d".into(), "int".into()],
            ..BootOptions::default()
        };
        let line = line(options, Network::Closed);
        for part in [
            "-smp 2 ",
            "-m 64M ",
            "-append a b ",
            "-accel tcg,thread=single ",
            "-icount shift=0,sleep=off ",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
        assert!(line.ends_with("-d int"), "{line}");
        assert!(!line.contains("hostfwd"), "{line}");
    }
}

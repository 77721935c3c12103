//! The command line. `run.sh` knows the names of the options and prints the usage; values are checked here.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::process;
use std::str::FromStr;

use arguments::{number, one_line};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::child;
use crate::text;

/// Status for an argument that is wrong, after a line that names it.
pub const WRONG_ARGUMENT: u8 = 2;
/// Most CPUs: those that the kernel would leave out are not made.
const SMP_MAX: u32 = 64;
/// Most memory, in MiB.
const MEM_MAX: u32 = 1 << 20;
/// Kernel command line of `run.sh`: the remote shell is on. That of tests is empty.
const CMDLINE: &str = "udpshell=5555";
/// Longest time that soaks can be given, in minutes: about a week.
const SOAK_MINUTES_MAX: u64 = 10_000;
/// Longest time that can be given to a machine, in seconds: a week.
const TIMEOUT_MAX: u64 = 7 * 24 * 60 * 60;

/// The whole command line; a mistake ends the process with status 2.
#[derive(Debug, Parser)]
#[command(name = "xtask", about = "Builds, boots and tests Sonde")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// What the process was told to do. A mistake ends it, after a line that names it, with status 2.
    #[must_use]
    pub fn read() -> Self {
        Self::try_parse().unwrap_or_else(|error| {
            eprintln!("{}", text::wrapped(&one_line(&error)));
            process::exit(error.exit_code());
        })
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Build the image.
    Build,
    /// Build, then boot with the serial line on stdin and stdout.
    Boot(BootOptions),
    /// Build, then count the instructions of what is done most.
    Bench {
        /// Fail if a figure is above its budget.
        #[arg(long)]
        check: bool,
    },
    /// Build, then go through random rounds until the time is over or something breaks.
    Soak {
        /// How long.
        #[arg(default_value_t = 10, value_parser = number(1..=SOAK_MINUTES_MAX))]
        minutes: u64,
        /// Only the soaks whose name contains this.
        filter: Option<String>,
    },
    /// Make the skeleton of a program.
    New {
        /// What it is called.
        name: String,
        /// A server instead: a package, a protocol, and a program that calls it.
        #[arg(long)]
        server: bool,
    },
    /// Become a program that ends with its parent.
    #[command(name = child::BECOME, hide = true)]
    Become {
        /// The parent's process id.
        parent: u32,
        /// The program, and its arguments.
        #[arg(last = true, required = true)]
        program: Vec<OsString>,
    },
    /// Build the client of the remote shell, and become it.
    #[command(disable_help_flag = true)]
    Sonde {
        /// Its arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Build, then pass every test.
    Test {
        /// Only the tests whose `suite::name` contains this.
        filter: Option<String>,
    },
}

/// The machine to boot on.
#[derive(Args, Clone, Debug)]
pub struct BootOptions {
    /// CPUs.
    #[arg(long, value_name = "N", default_value_t = 4, allow_hyphen_values = true, value_parser = number(1..=SMP_MAX))]
    pub smp: u32,
    /// Memory in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 256, allow_hyphen_values = true, value_parser = number(1..=MEM_MAX))]
    pub mem: u32,
    /// CPU model, in QEMU's words. The default is all that the accelerator can offer.
    #[arg(long, value_name = "MODEL", default_value = "max")]
    pub cpu: String,
    /// Accelerator.
    #[arg(long, value_enum, default_value_t = Accel::Tcg)]
    pub accel: Accel,
    /// Kernel command line.
    #[arg(
        long,
        value_name = "STR",
        default_value = CMDLINE,
        allow_hyphen_values = true
    )]
    pub cmdline: String,
    /// Loopback UDP port that reaches the guest's remote shell. Without it, the default if that is free.
    #[arg(long, value_name = "P", allow_hyphen_values = true, value_parser = number(1..=u16::MAX))]
    pub udp_port: Option<u16>,
    /// Another loopback UDP port, and the one of the guest's that it reaches; may be repeated.
    #[arg(long = "forward", value_name = "P:G", allow_hyphen_values = true)]
    pub forwards: Vec<Forward>,
    /// Seconds after which the machine is stopped, with status 124.
    #[arg(long, value_name = "S", allow_hyphen_values = true, value_parser = number(1..=TIMEOUT_MAX))]
    pub timeout: Option<u64>,
    /// Wait for gdb, and print the command that starts it.
    #[arg(long)]
    pub gdb: bool,
    /// Deterministic time: one nanosecond an instruction.
    #[arg(long, conflicts_with = "accel")]
    pub icount: bool,
    /// Performance counters that the emulator has not: for tests.
    #[arg(skip)]
    pub shim: Option<Shim>,
    /// More arguments for QEMU.
    #[arg(last = true, value_name = "QEMU ARGS")]
    pub qemu_args: Vec<String>,
}

/// A UDP port of the loopback interface that reaches one of the guest's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The host's.
    pub host: u16,
    /// The guest's.
    pub guest: u16,
}

/// Not two ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoForward;

impl fmt::Display for NoForward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("P:G, two numbers from 1 to 65535")
    }
}

impl std::error::Error for NoForward {}

impl FromStr for Forward {
    type Err = NoForward;

    fn from_str(text: &str) -> Result<Self, NoForward> {
        let (host, guest) = text.split_once(':').ok_or(NoForward)?;
        let port = |word: &str| word.parse().ok().filter(|&port: &u16| port > 0);
        let (host, guest) = port(host).zip(port(guest)).ok_or(NoForward)?;
        Ok(Self { host, guest })
    }
}

/// What is booted in the kernel's place, and gives the kernel performance counters.
#[derive(Clone, Debug)]
pub struct Shim {
    /// Its ELF file.
    pub path: PathBuf,
    /// Which counters, in its words.
    pub counters: String,
    /// The file to which it writes a byte for each interrupt of theirs.
    pub record: PathBuf,
}

/// What runs the guest's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Accel {
    /// QEMU's translator.
    Tcg,
    /// The host's CPU.
    Kvm,
}

impl Default for BootOptions {
    fn default() -> Self {
        Self {
            smp: 4,
            mem: 256,
            cpu: "max".into(),
            accel: Accel::Tcg,
            cmdline: String::new(),
            udp_port: None,
            forwards: Vec::new(),
            timeout: None,
            gdb: false,
            icount: false,
            shim: None,
            qemu_args: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn boot(arguments: &str) -> Result<BootOptions, clap::Error> {
        let words = ["xtask", "boot"]
            .into_iter()
            .chain(arguments.split_whitespace());
        match Cli::try_parse_from(words)?.command {
            Command::Boot(options) => Ok(options),
            other => panic!("not boot: {other:?}"),
        }
    }

    #[test]
    fn the_default_machine_is_the_documented_one() {
        let default = BootOptions {
            cmdline: CMDLINE.into(),
            ..BootOptions::default()
        };
        let parsed = boot("").unwrap();
        assert_eq!(format!("{parsed:?}"), format!("{default:?}"));
        assert_eq!((parsed.smp, parsed.mem), (4, 256));
        let port = format!("udpshell={}", crate::qemu::REMOTE_SHELL_PORT);
        assert_eq!(parsed.cmdline, port);
    }

    /// The usage of `run.sh` must have each option of `boot`, with its default in brackets if it has one.
    #[test]
    fn the_usage_of_run_sh_has_every_option_and_its_default() {
        let script = include_str!("../../../run.sh");
        let (_, usage) = script.split_once("options:\n").unwrap();
        let usage: Vec<&str> = usage
            .lines()
            .take_while(|line| line.starts_with("  --"))
            .collect();
        let cli = Cli::command();
        let boot = cli.find_subcommand("boot").unwrap();
        let options: Vec<_> = boot
            .get_arguments()
            .filter_map(|argument| Some((argument.get_long()?, argument)))
            .collect();
        assert_eq!(usage.len(), options.len(), "{usage:#?}");
        for (name, argument) in options {
            let line = usage
                .iter()
                .find(|line| line.split_whitespace().next() == Some(&format!("--{name}")));
            let line = line.unwrap_or_else(|| panic!("no --{name} in {usage:#?}"));
            let default = match (name, argument.get_default_values()) {
                ("udp-port", _) => crate::qemu::REMOTE_SHELL_PORT.to_string(),
                (_, [value]) if argument.get_action().takes_values() => {
                    value.to_string_lossy().into_owned()
                }
                _ => String::new(),
            };
            if !default.is_empty() {
                assert!(
                    line.contains(&format!("({default})")),
                    "{line}, not {default}"
                );
            }
        }
        let soak = cli.find_subcommand("soak").unwrap();
        let minutes = soak.get_positionals().next().unwrap().get_default_values();
        let minutes = minutes[0].to_string_lossy();
        assert!(
            script.contains(&format!("for MINUTES ({minutes})")),
            "{minutes}"
        );
    }

    #[test]
    fn values_are_checked() {
        for bad in [
            "--smp 0",
            "--smp x",
            "--smp 65",
            "--smp=",
            "--mem 0",
            "--accel hvf",
            "--udp-port 0",
            "--udp-port 65536",
            "--forward 7",
            "--forward 7:0",
            "--forward 7:7:7",
            "--forward 65536:7",
            "--timeout 0",
            "--timeout -1",
            "--timeout 604801",
            "--icount --accel kvm",
            "--bogus",
            "word",
        ] {
            let error = boot(bad).expect_err(bad);
            assert_eq!(error.exit_code(), 2, "{bad}");
        }
    }

    #[test]
    fn a_mistake_is_told_in_one_line_with_what_is_allowed() {
        let told = |words: &str| one_line(&boot(words).unwrap_err());
        for word in ["0", "x", "-1", "65"] {
            let refusal = "for '--smp <N>': a number from 1 to 64";
            assert_eq!(
                told(&format!("--smp {word}")),
                format!("error: invalid value '{word}' {refusal}")
            );
        }
        assert_eq!(
            told("--accel hvf"),
            "error: invalid value 'hvf' for '--accel <ACCEL>' [possible values: tcg, kvm]"
        );
    }

    #[test]
    fn as_many_cpus_are_made_as_the_kernel_runs() {
        let kernel = include_str!("../../../microkernel/core/src/base/cpu.rs");
        let declared = format!("pub const CPUS_MAX: usize = {SMP_MAX};");
        assert!(kernel.contains(&declared), "no {declared}");
        let usage = format!("CPUs, 1 to {SMP_MAX} (");
        assert!(
            include_str!("../../../run.sh").contains(&usage),
            "no {usage}"
        );
    }

    #[test]
    fn a_value_may_stand_behind_an_equals_sign() {
        let options = boot("--smp=2 --cmdline=-x=y").unwrap();
        assert_eq!((options.smp, options.cmdline.as_str()), (2, "-x=y"));
    }

    #[test]
    fn everything_after_two_dashes_is_for_qemu() {
        let options = boot("--smp 2 -- -d int --smp").unwrap();
        assert_eq!(options.qemu_args, ["-d", "int", "--smp"]);
        assert_eq!(options.smp, 2);
    }

    #[test]
    fn a_command_line_may_begin_with_a_dash() {
        assert_eq!(boot("--cmdline -x").unwrap().cmdline, "-x");
    }
}

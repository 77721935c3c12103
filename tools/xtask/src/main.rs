//! Builds the image, boots it in QEMU and tests it: what `run.sh` hands over to.
#![forbid(unsafe_code)]

mod bench;
mod build;
mod child;
mod cli;
mod gdb;
mod new;
mod qemu;
mod remote;
mod soak;
mod system;
mod test;
mod text;
mod workspace;

use std::process::ExitCode;

use cli::{Cli, Command};
use new::Kind;
use remote::Machines;
use workspace::Workspace;

fn main() -> ExitCode {
    let cli = Cli::read();
    let result = Workspace::find().and_then(|workspace| match cli.command {
        Command::Build => build::build(&workspace, &build::SHIPPED).map(|_| ExitCode::SUCCESS),
        Command::Boot(options) => {
            let image = build::build(&workspace, &build::SHIPPED)?;
            let machines = Machines::of(&workspace);
            qemu::boot(&image, &options, &machines).map(ExitCode::from)
        }
        Command::Bench { check } => bench::run(&workspace, check),
        Command::Soak { minutes, filter } => {
            soak::run(&workspace, minutes, filter.as_deref().unwrap_or(""))
        }
        Command::New { name, server } => {
            let kind = if server { Kind::Server } else { Kind::Program };
            new::run(&workspace, &name, kind)
        }
        Command::Become { parent, program } => Err(child::replace(parent, &program)),
        Command::Sonde { arguments } => Err(remote::replace(&workspace, &arguments)),
        Command::Test { filter } => test::run(&workspace, filter.as_deref().unwrap_or("")),
    });
    result.unwrap_or_else(|error| {
        eprintln!("{}", text::wrapped(&format!("error: {error:#}")));
        ExitCode::FAILURE
    })
}

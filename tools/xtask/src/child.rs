//! Children that end when this process does, however it ends. QEMU would run on if who waits for it were killed.
//!
//! Linux signals a child at its parent's death if the child itself asked for that, behind the fork; what was asked outlives an exec
//! (prctl(2), `PR_SET_PDEATHSIG`). So a child is this program first, which asks, and then becomes the other. The parent is the thread that
//! forked: it has to live as long as its children may.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::process::{self, Command};

use anyhow::{Context as _, Error, Result, ensure};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

/// The command by which this program becomes another.
pub const BECOME: &str = "become";

/// A program that ends with this process.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    // This program as it was started, also where another was built in its place since.
    let mut command = Command::new("/proc/self/exe");
    command.args([BECOME, &process::id().to_string(), "--"]);
    command.arg(program);
    command
}

/// Becomes a program that ends with its parent, which has this process id.
///
/// # Errors
/// Always: else this does not return.
pub fn replace(parent: u32, program: &[OsString]) -> Error {
    match ask(parent) {
        Ok(()) => {}
        Err(error) => return error,
    }
    let Some((program, arguments)) = program.split_first() else {
        return Error::msg("no program");
    };
    let error = Command::new(program).args(arguments).exec();
    Error::new(error).context(format!("cannot run {}", program.display()))
}

/// Asks to be killed at the parent's death, if it is not dead already.
fn ask(parent: u32) -> Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL)).context("prctl")?;
    let alive = getppid().is_some_and(|pid| pid.as_raw_nonzero().get().cast_unsigned() == parent);
    ensure!(alive, "whoever wanted it has ended");
    Ok(())
}

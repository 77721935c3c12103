//! What a debugger needs: a script for gdb in the image, a port, and the command that uses both.

use std::io;
use std::mem::offset_of;
use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result};
use ipc::abi::ABI_VERSION;
use ipc::abi::layout::{PAGE_SIZE, PROGRAM_BASE};
use ipc::abi::startup::{STARTUP_PAGE, StartupHeader};

use crate::build::Image;

/// Name of the script in the image's directory.
pub const SCRIPT: &str = "gdb.py";
/// Where QEMU's documentation, and so many an editor, expects a machine to wait.
const USUAL_PORT: u16 = 1234;

/// The script, with the ABI's numbers above it.
#[must_use]
pub fn script() -> String {
    let numbers = [
        ("ABI_VERSION", ABI_VERSION.into()),
        ("PAGE_SIZE", PAGE_SIZE),
        ("PROGRAM_BASE", PROGRAM_BASE),
        ("STARTUP_PAGE", STARTUP_PAGE),
        ("VERSION_OFFSET", offset_of!(StartupHeader, version) as u64),
        ("HEAP_OFFSET", offset_of!(StartupHeader, heap_base) as u64),
        ("PID_OFFSET", offset_of!(StartupHeader, pid) as u64),
        ("ARGS_OFFSET", offset_of!(StartupHeader, args) as u64),
        ("TEXTS_OFFSET", size_of::<StartupHeader>() as u64),
    ];
    let lines = numbers.map(|(name, number)| format!("{name} = {number:#x}\n"));
    lines.concat() + include_str!("sonde.py")
}

/// The usual port of the loopback interface, or a free one if somebody has that.
///
/// # Errors
/// If there is none.
pub fn port() -> Result<u16> {
    let usual = free_port(USUAL_PORT);
    usual.or_else(|_| free_port(0)).context("no port is free")
}

/// This port, if it is free; any that is free for 0.
///
/// # Errors
/// If it is taken.
pub fn free_port(port: u16) -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    Ok(listener.local_addr()?.port())
}

/// The command that debugs a machine that waits on this port, for a shell.
#[must_use]
pub fn command_line(image: &Image, port: u16) -> String {
    let script = image.kernel.with_file_name(SCRIPT);
    format!(
        "gdb -x '{}' -ex 'target remote 127.0.0.1:{port}'",
        script.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_no_failure() {
        // Held by this test, or by somebody else: taken either way.
        let _held = TcpListener::bind((Ipv4Addr::LOCALHOST, USUAL_PORT));
        let port = port().unwrap();
        assert_ne!(port, USUAL_PORT);
    }
}

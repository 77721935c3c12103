//! `./run.sh sonde`: the client, which is told where the machine is that runs, and its keys.

use std::env;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use anyhow::{Context as _, Error, Result, ensure};

use super::Machines;
use crate::workspace::Workspace;

/// The package, and its program.
const CLIENT: &str = "sonde";

/// Builds the client and becomes it, with the machine that was started last. What the caller says of machine and key comes first.
///
/// # Errors
/// Always: else this does not return.
pub fn replace(workspace: &Workspace, arguments: &[OsString]) -> Error {
    let mut client = match client(workspace) {
        Ok(client) => client,
        Err(error) => return error,
    };
    if env::var_os("SONDE_HOST").is_none() {
        match port(workspace) {
            Ok(Some(port)) => {
                client.env(
                    "SONDE_HOST",
                    SocketAddrV4::new(Ipv4Addr::LOCALHOST, port).to_string(),
                );
            }
            Ok(None) => {}
            Err(error) => return error,
        }
    }
    client.args(arguments);
    let error = client.exec();
    Error::new(error).context("the client cannot be started")
}

/// The client, which is built, and knows the keys of this working tree, unless the environment has others.
///
/// # Errors
/// If it does not build, or there are no keys.
pub fn client(workspace: &Workspace) -> Result<Command> {
    let mut cargo = workspace.cargo("build");
    let built = cargo.args(["--quiet", "--package", CLIENT]).status()?;
    ensure!(built.success(), "the client does not build");
    let mut client = Command::new(workspace.target.join("debug").join(CLIENT));
    if let Some(directory) = env::var_os("SONDE_INVOKED_FROM") {
        client.current_dir(directory);
    }
    if env::var_os("SONDE_KEY_FILE").is_none() {
        client.env("SONDE_KEY_FILE", super::keys(workspace)?);
    }
    Ok(client)
}

/// Where the machine is reached that was started last.
fn port(workspace: &Workspace) -> Result<Option<u16>> {
    let machines = Machines::of(workspace);
    let ports = machines
        .ports()
        .context("which machines run is not known")?;
    if let [.., before, last] = ports[..] {
        eprintln!(
            "xtask: {} machines run, also at port {before}; this is {last}",
            ports.len()
        );
    }
    Ok(ports.last().copied())
}

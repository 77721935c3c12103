//! `./run.sh sonde`: the client, which is told where the machine is that runs, and its keys.

use std::env;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Error, Result, ensure};

use super::Machines;
use crate::workspace::Workspace;

/// The package, and its program.
const CLIENT: &str = "sonde";
/// How long its build takes before who waits is told what for: when there is nothing to build, a tenth of that.
const PATIENCE: Duration = Duration::from_secs(2);

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
    // Quiet, as else it had a line for each command; so it does not say either that it waits for another cargo.
    cargo.args(["--quiet", "--package", CLIENT]);
    let tell =
        || eprintln!("xtask: cargo builds the client, or waits for another cargo that builds");
    let built = patiently(PATIENCE, tell, || cargo.status())?;
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

/// Does what may take long, and tells so once when it has.
fn patiently<T>(patience: Duration, tell: impl FnOnce() + Send, work: impl FnOnce() -> T) -> T {
    let (working, end) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if end.recv_timeout(patience) == Err(mpsc::RecvTimeoutError::Timeout) {
                tell();
            }
        });
        let done = work();
        drop(working);
        done
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_long_is_told_and_who_does_not_is_not() {
        let (tell, told) = mpsc::channel();
        let long = || told.recv_timeout(Duration::from_secs(60));
        assert_eq!(
            patiently(Duration::ZERO, || tell.send(()).unwrap(), long),
            Ok(())
        );
        patiently(Duration::from_secs(3600), || tell.send(()).unwrap(), || ());
        assert!(told.try_recv().is_err());
    }
}

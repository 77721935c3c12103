//! How long `./run.sh sonde exec "profile 1000"` takes a user, beyond the second that is profiled. It is seconds of this host, so it has
//! no budget: it is printed, with what the client alone takes, and with the host's load.

use std::fmt;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::build::Image;
use crate::child;
use crate::cli::BootOptions;
use crate::qemu::{self, Network, REMOTE_SHELL_PORT};
use crate::remote;
use crate::system::calm::until;
use crate::system::guest::Guest;
use crate::system::session::Session;
use crate::workspace::Workspace;

/// Times of each, of which the median is told.
const ROUNDS: usize = 7;
/// What is asked, and the time that it samples for.
const PROFILE: &str = "profile 1000";
const WINDOW: Duration = Duration::from_millis(1000);

/// Medians.
pub struct Exec {
    /// From the command to its end.
    whole: Duration,
    /// The same of the client, started by itself.
    client: Duration,
    /// Processes that wanted a CPU of this host, a minute's mean.
    load: String,
}

impl fmt::Display for Exec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            whole,
            client,
            load,
        } = self;
        write!(
            f,
            "./run.sh sonde exec \"{PROFILE}\": {} ms, {} ms beyond the window; the client alone {} ms beyond it; host's load {load}",
            whole.as_millis(),
            whole.saturating_sub(WINDOW).as_millis(),
            client.saturating_sub(WINDOW).as_millis()
        )
    }
}

/// Boots the shipped image as `./run.sh` does, and asks it.
///
/// # Errors
/// If it does not answer.
pub fn exec(workspace: &Workspace, image: &Image) -> Result<Exec> {
    let port = qemu::free_port().context("no UDP port is free")?;
    let options = BootOptions {
        smp: 1,
        cmdline: format!("udpshell={REMOTE_SHELL_PORT}"),
        ..BootOptions::default()
    };
    let guest = Guest::boot_on(image, options, Network::Forward(port))?;
    let mut session = Session::begin(guest)?;
    until(&mut session, |session| session.expect("net", &["by DHCP"]))?;
    let host = format!("127.0.0.1:{port}");
    let keys = remote::keys(workspace)?;
    let run = |mut command: Command| {
        command
            .env("SONDE_HOST", &host)
            .env("SONDE_KEY_FILE", &keys);
        command.args(["exec", PROFILE]).stdin(Stdio::null());
        let start = Instant::now();
        let output = command.output()?;
        let took = start.elapsed();
        ensure!(output.status.success(), "{output:?}");
        Ok(took)
    };
    let client = median(|| run(remote::client(workspace)?))?;
    let whole = median(|| {
        let mut script = child::command(workspace.root.join("run.sh"));
        script.arg("sonde");
        run(script)
    })?;
    session.power_off()?;
    let load = fs::read_to_string("/proc/loadavg")?;
    let load = load.split_whitespace().next().unwrap_or("?").to_owned();
    Ok(Exec {
        whole,
        client,
        load,
    })
}

fn median(mut once: impl FnMut() -> Result<Duration>) -> Result<Duration> {
    let times: Result<Vec<_>> = (0..ROUNDS).map(|_| once()).collect();
    let mut times = times?;
    times.sort_unstable();
    Ok(times[ROUNDS / 2])
}

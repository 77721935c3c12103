//! The client `sonde` and a machine whose remote shell it asks, over UDP on the loopback interface.

mod outage;
mod tamper;

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::cli::BootOptions;
use crate::qemu::{self, Network, REMOTE_SHELL_PORT};
use crate::remote;
use crate::test::{Case, Context, Verdict};

use super::calm::until;
use super::guest::{Guest, PATIENCE};
use super::session::Session;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    let mut cases = vec![Case::new("sonde_asks_a_machine", || asks(context))];
    cases.extend(outage::cases(context));
    cases
}

/// A machine with a remote shell, and the client that knows it.
struct Asked<'a> {
    context: &'a Context<'a>,
    session: Session,
    host: String,
}

impl<'a> Asked<'a> {
    fn boot(context: &'a Context<'_>) -> Result<Self> {
        Self::boot_with(context, Vec::new())
    }

    fn boot_with(context: &'a Context<'_>, qemu_args: Vec<String>) -> Result<Self> {
        let port = qemu::free_port().context("no UDP port is free")?;
        let options = BootOptions {
            smp: 2,
            cmdline: format!("udpshell={REMOTE_SHELL_PORT}"),
            qemu_args,
            ..BootOptions::default()
        };
        let guest = Guest::boot_on(context.image()?, options, Network::Forward(port))?;
        Ok(Self {
            context,
            session: Session::begin(guest)?,
            host: format!("127.0.0.1:{port}"),
        })
    }

    /// The client with these arguments.
    fn sonde(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = remote::client(self.context.workspace)?;
        command.args(arguments).env("SONDE_HOST", &self.host);
        command.env("SONDE_KEY_FILE", remote::keys(self.context.workspace)?);
        command.env_remove("SONDE_KEY");
        command.stdin(Stdio::null());
        Ok(command)
    }

    /// What it prints on stdout. It ends with this status, and says nothing on stderr.
    fn prints(&self, arguments: &[&str], status: i32) -> Result<String> {
        let output = self.sonde(arguments)?.output()?;
        ensure!(
            output.status.code() == Some(status) && output.stderr.is_empty(),
            "{arguments:?}: {output:?}, not status {status}"
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Waits until the machine has an address and its shell accepts sessions: both come behind the first prompt.
    fn wait(&self) -> Verdict {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let Output { status, stderr, .. } = self.sonde(&["exec", "version"])?.output()?;
            if status.success() {
                return Ok(());
            }
            let stderr = String::from_utf8_lossy(&stderr);
            ensure!(status.code() == Some(3), "{status}: {stderr}");
            ensure!(Instant::now() < deadline, "it never answers: {stderr}");
        }
    }
}

fn asks(context: &Context<'_>) -> Verdict {
    let mut asked = Asked::boot(context)?;
    asked.wait()?;
    let ping = asked.prints(&["ping"], 0)?;
    ensure!(ping.ends_with(" ms, role control\n"), "{ping}");
    let ping = asked.prints(&["ping", "--role", "observe"], 0)?;
    ensure!(ping.ends_with(" ms, role observe\n"), "{ping}");

    // The command's output is that of the serial line, without its prompt, echo and ends of lines.
    let ps = asked.prints(&["exec", "ps"], 0)?;
    ensure!(
        ps.starts_with("PID ") || ps.trim_start().starts_with("PID "),
        "{ps}"
    );
    ensure!(ps.contains(" init ") && ps.contains(" session "), "{ps}");
    ensure!(!ps.contains(['\r', '\x1b', '>']), "{ps:?}");
    let refused = asked.prints(&["exec", "bogus", "1"], 1)?;
    ensure!(refused.starts_with("no command `bogus`"), "{refused}");
    let refused = asked.prints(&["exec", "--role", "observe", "kill", "1"], 1)?;
    ensure!(refused.starts_with("kill: "), "{refused}");
    // A load that does not begin is a failure, and says why; a command with an address in it is no host.
    let refused = asked.prints(&["exec", "netload start 65536"], 1)?;
    ensure!(
        refused.starts_with("netload: PORT `65536`: 1 to 65535\n"),
        "{refused}"
    );
    asked.prints(&["exec", "netload send 10.0.2.2 9 count=1"], 0)?;

    interrupt(&mut asked)?;
    profile(&asked)?;
    let said = lines(&asked, b"echo one\n\necho two\n")?;
    ensure!(said.ends_with("\none\ntwo\n"), "{said}");
    ensure!(!said.contains(['\r', '\x1b', '>']), "{said:?}");

    let said = lines(&asked, b"echo one\nexit\necho two\n")?;
    ensure!(said.ends_with("\none\n"), "{said}");

    let Asked { session, .. } = asked;
    session.power_off()
}

/// Ctrl-C ends the program that a command runs, and the command tells so.
fn interrupt(asked: &mut Asked<'_>) -> Verdict {
    let mut command = asked.sonde(&["exec", "run", "spin"])?;
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let runs = |session: &mut Session| -> Result<bool> {
        let processes = session.processes()?;
        Ok(processes.iter().any(|process| process.name == "spin"))
    };
    until(&mut asked.session, |session| {
        ensure!(runs(session)?, "spin does not run");
        Ok(())
    })?;
    kill_process(Pid::from_child(&child), Signal::INT)?;
    let output = child.wait_with_output()?;
    ensure!(output.status.code() == Some(130), "{output:?}");
    until(&mut asked.session, |session| {
        ensure!(!runs(session)?, "spin still runs");
        Ok(())
    })
}

/// A profile is kept in both forms.
fn profile(asked: &Asked<'_>) -> Verdict {
    let directory = asked.context.workspace.target.join("system-tests");
    fs::create_dir_all(&directory)?;
    let [folded, svg] = ["sonde.folded", "sonde.svg"].map(|name| directory.join(name));
    let path = |path: &PathBuf| path.display().to_string();
    let arguments = [
        "profile",
        "200",
        "all",
        "--folded",
        &path(&folded),
        "--svg",
        &path(&svg),
    ];
    let output = asked.sonde(&arguments)?.output()?;
    ensure!(
        output.status.success() && output.stdout.is_empty(),
        "{output:?}"
    );
    let stderr = String::from_utf8(output.stderr)?;
    let samples = stderr
        .strip_prefix("sonde: ")
        .and_then(|rest| rest.strip_suffix(" samples\n"));
    let samples: u64 = samples.with_context(|| stderr.clone())?.parse()?;
    let mut sum = 0;
    for line in fs::read_to_string(&folded)?.lines() {
        let (stack, count) = line.rsplit_once(' ').with_context(|| line.to_owned())?;
        ensure!(!stack.contains(['\r', '\x1b']), "{line:?}");
        sum += count.parse::<u64>()?;
    }
    ensure!(
        sum == samples && sum > 0,
        "{sum} in the file, {samples} told"
    );
    let svg = fs::read_to_string(&svg)?;
    ensure!(svg.contains("<svg ") && svg.contains("kernel`"), "{svg}");
    Ok(())
}

/// What a shell prints that gets these lines.
fn lines(asked: &Asked<'_>, lines: &[u8]) -> Result<String> {
    let mut command = asked.sonde(&["shell"])?;
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn()?;
    let Some(mut stdin) = child.stdin.take() else {
        bail!("no stdin");
    };
    stdin.write_all(lines)?;
    drop(stdin);
    let output = child.wait_with_output()?;
    ensure!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    Ok(String::from_utf8(output.stdout)?)
}

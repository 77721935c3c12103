//! The program as it is called, with machines that only pretend: what it prints where, and the status that it ends with.

#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is how a failure is told"
)]

mod machine;
mod pty;

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{self, Command, Output, Stdio};

use machine::{CONTROL, FOLDED, Kind, Machine, OBSERVE, big};
use pty::Pty;
use rustix::process::{Pid, Signal, kill_process};

/// What the editor writes when it begins to read keys: pasted text is to be marked from now on.
const PROMPT: &str = "\x1b[?2004h";

/// The program, told of this machine and key, and of nothing else.
fn sonde(machine: SocketAddr, key: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sonde"));
    command.args(arguments).stdin(Stdio::null());
    command.env("SONDE_HOST", machine.to_string());
    command.env("SONDE_KEY", key).env_remove("SONDE_KEY_FILE");
    command
}

/// What it prints on stdout, and its status. With status 0 nothing is on stderr.
fn succeeds(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.success() && stderr.is_empty(),
        "{}: {stderr}",
        output.status
    );
    output.stdout
}

/// The one line on stderr of a machine that could not be asked.
fn trouble(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let stderr = String::from_utf8(stderr).unwrap();
    assert_eq!(
        (status.code(), &stdout[..]),
        (Some(3), &b""[..]),
        "{stderr}"
    );
    let line = stderr
        .strip_suffix('\n')
        .and_then(|line| line.strip_prefix("sonde: "));
    let line = line.unwrap_or_else(|| panic!("not a line: {stderr}"));
    assert!(!line.contains('\n'), "{stderr}");
    line.to_owned()
}

#[test]
fn the_output_of_a_command_alone_is_on_stdout() {
    let machine = Machine::start(Kind::default());
    assert_eq!(
        succeeds(&mut sonde(machine.address, CONTROL, &["exec", "ps"])),
        b"PID NAME\n1 init\n"
    );
    let address = machine.address.to_string();
    let elsewhere = "127.0.0.1:1".parse().unwrap();
    let arguments = ["exec", "--key", OBSERVE, &address, "ps"];
    assert_eq!(
        succeeds(&mut sonde(elsewhere, "bad", &arguments)),
        b"PID NAME\n1 init\n"
    );
}

#[test]
fn a_command_that_failed_is_told_by_the_status() {
    let machine = Machine::start(Kind::default());
    let output = sonde(machine.address, CONTROL, &["exec", "no", "--such"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stdout, b"no command `no --such`\n");
    assert_eq!(output.stderr, b"");
}

#[test]
fn ctrl_c_goes_to_the_command() {
    let machine = Machine::start(Kind::default());
    let mut command = sonde(machine.address, CONTROL, &["exec", "wait"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "waiting");
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "interrupted");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn nothing_is_lost_on_a_link_that_loses_a_fifth() {
    let machine = Machine::start(Kind {
        loss: 20,
        ..Kind::default()
    });
    let output = succeeds(&mut sonde(machine.address, CONTROL, &["exec", "big"]));
    assert!(
        output == big(),
        "{} bytes, and not those that were sent",
        output.len()
    );
}

#[test]
fn a_ping_tells_the_role() {
    let machine = Machine::start(Kind::default());
    for (key, role) in [(CONTROL, "control"), (OBSERVE, "observe")] {
        let line = succeeds(&mut sonde(machine.address, key, &["ping"]));
        let line = String::from_utf8(line).unwrap();
        assert!(
            line.starts_with(&format!("{} answered in ", machine.address)),
            "{line}"
        );
        assert!(line.ends_with(&format!(" ms, role {role}\n")), "{line}");
    }
    let open = Machine::start(Kind {
        open: true,
        ..Kind::default()
    });
    let line = succeeds(&mut sonde(open.address, "", &["ping", "--open"]));
    assert!(line.ends_with(b" ms, role control\n"));
}

#[test]
fn what_does_not_answer_is_told_in_a_line() {
    let keyed = Machine::start(Kind::default());
    let wrong = "3".repeat(64);
    // All wait at the same time: each for the five seconds of the protocol.
    let silent = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let silent = (silent.local_addr().unwrap(), silent);
    std::thread::scope(|scope| {
        for (address, key, arguments, says) in [
            (keyed.address, &*wrong, &["ping"][..], "wrong key?"),
            (keyed.address, &*wrong, &["exec", "ps"], "wrong key?"),
            (
                keyed.address,
                CONTROL,
                &["ping", "--open"],
                "does it want a key?",
            ),
            (silent.0, CONTROL, &["shell"], "wrong key?"),
        ] {
            scope.spawn(move || {
                let line = trouble(&mut sonde(address, key, arguments));
                let says = format!("{address} does not answer: {says} Or no machine is there");
                assert!(line.starts_with(&says), "{line}");
            });
        }
    });
}

#[test]
fn whom_nobody_can_ask_is_told_in_a_line() {
    let closed = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let line = trouble(&mut sonde(address, CONTROL, &["exec", "ps"]));
    assert_eq!(line, format!("{address}: nobody listens at this port"));
    let line = trouble(&mut sonde(
        address,
        CONTROL,
        &["ping", "no-such-host.invalid"],
    ));
    assert!(
        line.starts_with("no host `no-such-host.invalid`: "),
        "{line}"
    );
    let line = trouble(&mut sonde(address, "12", &["ping"]));
    assert_eq!(line, "SONDE_KEY: a key is 64 hexadecimal digits, not 2");
    let line = trouble(sonde(address, CONTROL, &["ping"]).env_remove("SONDE_HOST"));
    assert!(line.starts_with("which machine? Say HOST"), "{line}");
    // 0.0.0.0/8 is nobody's (RFC 791), and a broadcast is not sent by who did not ask for it.
    let line = trouble(&mut sonde(address, CONTROL, &["ping", "255.255.255.255"]));
    assert!(
        line.starts_with("255.255.255.255:5555 cannot be reached: "),
        "{line}"
    );
    let off = Machine::start(Kind {
        serves: false,
        ..Kind::default()
    });
    let line = trouble(&mut sonde(off.address, CONTROL, &["exec", "ps"]));
    assert_eq!(
        line,
        format!(
            "{}: the server has no shell that would run a session",
            off.address
        )
    );
}

/// A file for a test, which is removed in the end.
struct Kept(PathBuf);

impl Kept {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("sonde-client-{}-{name}", process::id())))
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_profile_is_kept_as_folded_stacks_and_as_a_flame_graph() {
    let machine = Machine::start(Kind::default());
    let (folded, svg) = (Kept::new("folded"), Kept::new("svg"));
    let arguments = [
        "profile",
        "300",
        "all",
        "--folded",
        folded.path(),
        "--svg",
        svg.path(),
    ];
    let output = sonde(machine.address, CONTROL, &arguments)
        .output()
        .unwrap();
    assert!(
        output.status.success() && output.stdout.is_empty(),
        "{output:?}"
    );
    assert_eq!(fs::read(&folded.0).unwrap(), FOLDED);
    let svg = fs::read_to_string(&svg.0).unwrap();
    assert!(svg.contains("<svg ") && svg.contains("shares`share_a"));
    // A refusal of the machine's is told in its words, and nothing is kept.
    let kept = Kept::new("refused");
    let arguments = ["profile", "depth", "99", "--folded", kept.path()];
    let output = sonde(machine.address, CONTROL, &arguments)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stderr, b"no command `profile depth 99 folded`\n");
    assert!(!kept.0.exists());
}

/// What a shell prints that gets these lines and has no terminal.
fn shell(machine: &Machine, lines: &[u8]) -> String {
    let mut command = sonde(machine.address, CONTROL, &["shell"]);
    let command = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(lines).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn without_a_terminal_a_shell_takes_lines_and_prints_their_output() {
    let machine = Machine::start(Kind {
        loss: 20,
        ..Kind::default()
    });
    assert_eq!(
        shell(&machine, b"one\n\n  two words\nlast"),
        "a shell, role control\nran one\nran two words\nran last\n"
    );
    assert_eq!(
        shell(&machine, b"one\nexit\nnever\n"),
        "a shell, role control\nran one\n"
    );
}

#[test]
fn at_a_terminal_lines_are_edited_here() {
    let machine = Machine::start(Kind::default());
    let home = Kept::new("home");
    let mut pty = Pty::open();
    let mut command = sonde(machine.address, CONTROL, &["shell"]);
    command.env("TERM", "xterm").env("XDG_STATE_HOME", &home.0);
    let mut child = pty.spawn(&mut command);
    pty.until("a shell, role control");
    pty.until(PROMPT);
    // The line goes to the machine when it is whole: `x` never does.
    pty.write(b"onx\x7fe\r");
    pty.until("ran one\r\n");
    pty.until(PROMPT);
    // The line before, from the history, and a word that is completed.
    pty.write(b"\x1b[A\r");
    pty.until("ran one\r\n");
    pty.until(PROMPT);
    pty.write(b"prof\t300\r");
    pty.until("ran profile 300\r\n");
    pty.until(PROMPT);
    pty.write(b"abandoned\x03");
    pty.until("abandoned");
    pty.until(PROMPT);
    pty.write(b"exit\r");
    assert!(child.wait().unwrap().success());
    let mut child = pty.spawn(&mut command);
    pty.until(PROMPT);
    pty.write(b"leave\r");
    pty.until("the session has ended");
    assert!(child.wait().unwrap().success());
    let history = fs::read_to_string(home.0.join("sonde/history")).unwrap();
    assert!(
        history.contains("one\nprofile 300\nexit\nleave"),
        "{history}"
    );
    fs::remove_dir_all(&home.0).unwrap();
}

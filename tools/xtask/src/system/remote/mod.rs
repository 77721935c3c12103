//! The remote shell on a machine, over UDP on the loopback interface: sessions on a bad link and many at once, and datagrams
//! that nobody should have sent.

mod hostile;
mod lengths;
mod off;
pub mod relay;
pub mod wire;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use remote_shell::{ClientEvent, Key, Mode, Purpose, Status};

use super::guest::{Guest, PATIENCE};
use super::session::Session;
use crate::cli::BootOptions;
use crate::qemu::{self, Network, REMOTE_SHELL_PORT};
use crate::remote;
use crate::test::{Case, Context, Verdict};
use relay::Relay;
use wire::{Ran, Wire};
pub use wire::{exec, random};

/// Datagrams of the flood in a second, all of which go to the remote shell's own port: some lost ones a session bears.
const FLOOD: u64 = 20_000;
/// Sessions that a machine must have room for.
const SESSIONS: usize = 24;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    let mut cases = vec![
        Case::new("remote_sessions_survive_a_bad_link", || bad_link(context)),
        Case::new("remote_sessions_go_on_at_once", || at_once(context)),
        Case::new("a_flood_does_not_stop_remote_commands", || flood(context)),
        Case::new("an_open_remote_shell_answers_a_line_of_text", || {
            open(context)
        }),
    ];
    cases.extend(hostile::cases(context));
    cases.extend(lengths::cases(context));
    cases.extend(off::cases(context));
    cases
}

/// A machine with a remote shell.
pub struct Machine {
    /// The serial line.
    pub session: Session,
    /// Where its remote shell is.
    pub address: SocketAddr,
    /// How the remote shell is spoken to, with all rights.
    pub mode: Mode,
}

impl Machine {
    /// Boots one with 2 CPUs whose shell wants a key, and waits until it accepts sessions.
    fn keyed(context: &Context<'_>) -> Result<Self> {
        let options = BootOptions {
            smp: 2,
            ..BootOptions::default()
        };
        Self::keyed_with(context, options)
    }

    /// The same with these options; the remote shell is added to the command line.
    ///
    /// # Errors
    /// If it never accepts sessions.
    pub fn keyed_with(context: &Context<'_>, mut options: BootOptions) -> Result<Self> {
        options.cmdline += &format!(" udpshell={REMOTE_SHELL_PORT}");
        let mode = Mode::Keyed(key(context, "control")?);
        Self::boot(context, options, mode)
    }

    fn boot(context: &Context<'_>, options: BootOptions, mode: Mode) -> Result<Self> {
        let port = qemu::free_port().context("no UDP port is free")?;
        let guest = Guest::boot_on(context.image()?, options, Network::Forward(port))?;
        let mut machine = Self {
            session: Session::begin(guest)?,
            address: (Ipv4Addr::LOCALHOST, port).into(),
            mode,
        };
        machine.wait()?;
        Ok(machine)
    }

    /// Waits until the machine has an address and its shell accepts sessions: both come behind the first prompt.
    fn wait(&mut self) -> Verdict {
        let deadline = Instant::now() + PATIENCE;
        for seed in 1_000.. {
            let mut wire = Wire::open(self.address, &self.mode, exec("version")?, seed)?;
            loop {
                match wire.event()? {
                    ClientEvent::Finished(Status::Success) => return Ok(()),
                    ClientEvent::Connected { .. } | ClientEvent::Output(..) => {}
                    ClientEvent::Silent | ClientEvent::Refused(_) => break,
                    other => bail!("{other:?}"),
                }
            }
            ensure!(Instant::now() < deadline, "the remote shell never answers");
        }
        Ok(())
    }

    fn run(&self, to: SocketAddr, line: &str, seed: u64) -> Result<Ran> {
        Wire::open(to, &self.mode, exec(line)?, seed)?.finish()
    }
}

/// The key of a role, from this working tree's file.
pub fn key(context: &Context<'_>, role: &str) -> Result<Key> {
    let file = std::fs::read_to_string(remote::keys(context.workspace)?)?;
    let digits = file
        .lines()
        .find_map(|line| line.strip_prefix(role)?.strip_prefix(' '))
        .context("no key of that role")?;
    Ok(Key::parse(digits.trim())?)
}

/// Through a relay that loses a fifth of the datagrams each way, and lets others overtake.
fn bad_link(context: &Context<'_>) -> Verdict {
    let mut machine = Machine::keyed(context)?;
    let relay = Relay::new(machine.address)?;
    let (address, relay) = (relay.address()?, &relay);
    std::thread::scope(|scope| {
        let relaying = scope.spawn(|| relay.run(17));
        let seen = through(&mut machine, address);
        relay.stop();
        match relaying.join() {
            Ok(relayed) => relayed?,
            Err(_) => bail!("the relay panicked"),
        }
        seen
    })?;
    let [came, lost] =
        [&relay.came, &relay.lost].map(|count| count.load(std::sync::atomic::Ordering::Relaxed));
    let figures = format!("relay: {lost} of {came} datagrams lost\n");
    std::fs::write(
        context.workspace.target.join("remote-bad-link.txt"),
        figures,
    )?;
    ensure!(lost * 10 > came, "the relay lost {lost} of {came}");
    machine.session.power_off()
}

fn through(machine: &mut Machine, address: SocketAddr) -> Verdict {
    // Long and always the same, so that the good link tells what is right.
    let right = machine.run(machine.address, "help profile", 1)?;
    ensure!(
        right.status == Status::Success && right.output.len() > 500,
        "{right:?}"
    );
    for seed in 2..6 {
        let ran = machine.run(address, "help profile", seed)?;
        ensure!(ran == right, "{ran:?}\nnot\n{right:?}");
    }
    let mut shell = Wire::open(address, &machine.mode, Purpose::Shell, 7)?;
    shell.wait_for("> ")?;
    for number in 0..20 {
        shell.send(format!("echo {number}-{number}\r").as_bytes())?;
        shell.wait_for(&format!("\r\n{number}-{number}\r\n"))?;
    }
    // Ctrl-C travels, and ends what runs.
    shell.send(b"run spin\r")?;
    runs(machine, &mut shell, true)?;
    shell.send(b"\x03")?;
    runs(machine, &mut shell, false)?;
    shell.send(b"echo interrupted\r")?;
    shell.wait_for("\r\ninterrupted\r\n")?;
    shell.close()
}

/// Waits until `spin` runs, or does no more.
fn runs(machine: &mut Machine, shell: &mut Wire, wanted: bool) -> Verdict {
    super::calm::until(&mut machine.session, |session| {
        shell.turn()?;
        let processes = session.processes()?;
        let runs = processes.iter().any(|process| process.name == "spin");
        ensure!(runs == wanted, "spin runs: {runs}");
        Ok(())
    })
}

/// What a thread came to.
fn joined(thread: ScopedJoinHandle<'_, Verdict>) -> Verdict {
    thread.join().unwrap_or_else(|_| bail!("a client panicked"))
}

/// As many sessions as a machine must have room for: all of them live, each is answered, and a profile in one holds up no
/// other.
fn at_once(context: &Context<'_>) -> Verdict {
    let mut machine = Machine::keyed(context)?;
    let mut shells = Vec::new();
    for seed in 0..SESSIONS as u64 {
        let mut shell = Wire::open(machine.address, &machine.mode, Purpose::Shell, seed)?;
        shell.wait_for("> ")?;
        shells.push(shell);
        // The others are to say that they live.
        for other in &mut shells {
            other.turn()?;
        }
    }
    let processes = machine.session.processes()?;
    let sessions = processes.iter().filter(|process| process.name == "session");
    let sessions = sessions.count();
    ensure!(sessions >= SESSIONS, "{sessions} sessions run");
    // From here on one session has a profile on, and the next behind it, until all the others are done.
    let (first, others) = shells.split_first_mut().context("no session")?;
    first.send(b"repeat 1000000 profile 2000\r")?;
    first.wait_for("profiled 2000 ms")?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let profiling = scope.spawn(|| -> Verdict {
            while !done.load(Relaxed) {
                first.turn()?;
            }
            Ok(())
        });
        let working: Vec<_> = (others.iter_mut().enumerate())
            .map(|(index, shell)| {
                scope.spawn(move || -> Verdict {
                    for round in 0..3 {
                        shell.send(format!("echo {index}:{round}.\r").as_bytes())?;
                        shell.wait_for(&format!("\r\n{index}:{round}.\r\n"))?;
                    }
                    Ok(())
                })
            })
            .collect();
        let answered = working.into_iter().try_for_each(joined);
        done.store(true, Relaxed);
        joined(profiling)?;
        answered
    })?;
    first.send(b"\x03")?;
    first.send(b"echo still profiled\r")?;
    let shown = first.wait_for("\r\nstill profiled\r\n")?;
    ensure!(shown.contains("profiled "), "{shown}");
    for shell in shells {
        shell.close()?;
    }
    super::calm::until(&mut machine.session, |session| {
        let processes = session.processes()?;
        let left = processes.iter().any(|process| process.name == "session");
        ensure!(!left, "a session goes on without its client");
        Ok(())
    })?;
    machine.session.power_off()
}

/// On one CPU, while datagrams come faster than they can be refused, commands of a session run: their calls get through to the net
/// server, and it lets them run.
fn flood(context: &Context<'_>) -> Verdict {
    let options = BootOptions {
        smp: 1,
        ..BootOptions::default()
    };
    let machine = Machine::keyed_with(context, options)?;
    let socket = wire::socket(machine.address)?;
    let (ends, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let begin = Instant::now();
            while !ends.load(Relaxed) {
                let passed = begin.elapsed();
                let due = FLOOD * u64::try_from(passed.as_micros()).unwrap_or(u64::MAX) / 1_000_000;
                while sent.load(Relaxed) < due {
                    // What the host has no room for is lost, as on any link.
                    let _ = socket.send(&[1; 64]);
                    sent.fetch_add(1, Relaxed);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        // For a second, however fast the commands are.
        let mut seeds = (0..).take_while(|&seed| seed < 5 || sent.load(Relaxed) < FLOOD);
        let answered = seeds.try_for_each(|seed| -> Verdict {
            let ran = machine.run(machine.address, "ps", 100 + seed)?;
            ensure!(
                ran.status == Status::Success && ran.output.contains(" session "),
                "{ran:?}"
            );
            Ok(())
        });
        ends.store(true, Relaxed);
        answered
    })?;
    let mut machine = machine;
    let net = machine.session.run("net")?;
    ensure!(net.contains(" of no known form"), "{net}");
    machine.session.power_off()
}

/// `nc -u` is enough of a client.
fn open(context: &Context<'_>) -> Verdict {
    let options = BootOptions {
        smp: 2,
        cmdline: format!("udpshell={REMOTE_SHELL_PORT} udpshell-open"),
        ..BootOptions::default()
    };
    let machine = Machine::boot(context, options, Mode::Open)?;
    let mut buffer = [0; 2048];
    for (line, answer) in [
        ("echo one two\n", "\rone two\n"),
        ("bogus", "\rno command `bogus`"),
    ] {
        // From an address of its own: the command of the one before may not have ended yet.
        let socket = wire::socket(machine.address)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.send(line.as_bytes())?;
        let length = socket.recv(&mut buffer)?;
        let text = std::str::from_utf8(&buffer[..length])?;
        ensure!(text.starts_with(answer), "{line:?}: {text:?}");
    }
    let ran = machine.run(machine.address, "echo framed", 1)?;
    ensure!(
        ran.output == "framed\n" && ran.status == Status::Success,
        "{ran:?}"
    );
    machine.session.power_off()
}

//! Datagrams of every length that UDP can have, for the remote shell of a machine. What an Ethernet does not carry whole arrives in fragments, which
//! the machine counts: the count tells that each of them came.

use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use fastrand::Rng;
use remote_shell::Purpose;

use super::Machine;
use super::wire::{self, Wire};
use crate::system::guest::PATIENCE;
use crate::test::{Case, Context, Verdict};

/// The longest datagram of UDP over IPv4.
const LENGTH_MAX: usize = 65_507;
/// The longest that an Ethernet carries whole.
const WHOLE_MAX: usize = 1472;
/// Bytes of a datagram, with its UDP header, in each fragment: as many as fit into a frame, a multiple of eight.
const FRAGMENT: usize = 1480;
const UDP_HEADER: usize = 8;
/// Frames that are sent before the machine is to say that it has taken them: QEMU keeps 10,000 for a card that is slow.
const BATCH: usize = 4_000;
/// Bytes that may wait at the host's socket: Linux has room for 212,992.
const WAITING_MAX: usize = 64 << 10;
/// Bytes of Linux's own for each datagram that waits, at most.
const DATAGRAM_COST: usize = 1 << 10;
/// How often that is looked at.
const POLL: Duration = Duration::from_micros(200);

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![Case::new("datagrams_of_every_length_do_no_harm", || {
        every(context)
    })]
}

/// Frames that a datagram of this length comes in.
fn frames(length: usize) -> usize {
    (UDP_HEADER + length).div_ceil(FRAGMENT)
}

fn every(context: &Context<'_>) -> Verdict {
    let mut machine = Machine::keyed(context)?;
    let mut before = machine.session.processes()?;
    // The session that waited for the machine may still be ending.
    before.retain(|process| process.name != "session");
    let mut victim = Wire::open(machine.address, &machine.mode, Purpose::Shell, 1)?;
    victim.wait_for("> ")?;

    let mut garbage = vec![0; LENGTH_MAX];
    Rng::with_seed(3).fill(&mut garbage);
    // Half of them begin as a good one does.
    let mut good = garbage.clone();
    let frame = victim.sent.last().context("nothing was sent")?.clone();
    good[..frame.len()].copy_from_slice(&frame);

    let socket = wire::socket(machine.address)?;
    let began = Instant::now();
    let (mut waiting, mut under_way, mut fragments) = (0, 0, 0);
    for length in 0..=LENGTH_MAX {
        let bytes = match length % 2 {
            // The frame itself is no garbage.
            0 if length != frame.len() => &good,
            _ => &garbage,
        };
        waiting += length + DATAGRAM_COST;
        if waiting > WAITING_MAX {
            Backlog::at(machine.address.port())?.wait()?;
            waiting = length + DATAGRAM_COST;
        }
        socket.send(&bytes[..length])?;
        under_way += frames(length);
        if length > WHOLE_MAX {
            fragments += frames(length);
        }
        if under_way > BATCH {
            // Behind all others in the same queues.
            victim.send(format!("echo {length}.\r").as_bytes())?;
            victim.wait_for(&format!("\r\n{length}.\r\n"))?;
            under_way = 0;
        }
    }
    victim.send(b"echo still here\r")?;
    victim.wait_for("\r\nstill here\r\n")?;
    let took = began.elapsed();
    let Backlog { dropped, .. } = Backlog::at(machine.address.port())?;
    ensure!(dropped == 0, "the host dropped {dropped}");
    let said = machine.session.run("net")?;
    let came: usize = said
        .lines()
        .find_map(|line| line.trim().strip_suffix(" fragment"))
        .and_then(|count| count.split_whitespace().last()?.parse().ok())
        .with_context(|| said.clone())?;
    let mut figures = String::new();
    writeln!(
        figures,
        "{} lengths in {} ms; {came} of {fragments} fragments came",
        LENGTH_MAX + 1,
        took.as_millis()
    )?;
    let file = context.workspace.target.join("remote-lengths.txt");
    std::fs::write(file, &figures)?;
    ensure!(came == fragments, "{figures}{said}");
    ensure!(socket_is_silent(&socket)?, "garbage was answered");
    victim.close()?;
    machine.session.expect_alive(&before)?;
    let ran = machine.run(machine.address, "echo new", 2)?;
    ensure!(ran.output == "new\n", "{ran:?}");
    machine.session.power_off()
}

/// Whether nothing has come: the machine has answered what was sent behind it.
fn socket_is_silent(socket: &std::net::UdpSocket) -> Result<bool> {
    socket.set_nonblocking(true)?;
    Ok(socket.recv(&mut [0; 2048]).is_err())
}

/// What Linux says of a UDP port of the loopback interface: proc(5), `/proc/net/udp`.
struct Backlog {
    port: u16,
    /// Bytes that nobody took yet, with Linux's own.
    waiting: u64,
    /// Datagrams for which there was no room.
    dropped: u64,
}

impl Backlog {
    fn at(port: u16) -> Result<Self> {
        let table = std::fs::read_to_string("/proc/net/udp")?;
        let local = format!("0100007F:{port:04X}");
        let fields = table.lines().find_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            (fields.get(1) == Some(&local.as_str())).then_some(fields)
        });
        let fields = fields.with_context(|| format!("nobody has port {port}"))?;
        let queues = fields.get(4).and_then(|queues| queues.split_once(':'));
        let (_, waiting) = queues.context("no queues")?;
        Ok(Self {
            port,
            waiting: u64::from_str_radix(waiting, 16)?,
            dropped: fields.last().context("no drops")?.parse()?,
        })
    }

    /// Waits until all is taken.
    fn wait(mut self) -> Verdict {
        let deadline = Instant::now() + PATIENCE;
        while self.waiting > 0 {
            ensure!(Instant::now() < deadline, "QEMU takes no datagram");
            thread::sleep(POLL);
            self = Self::at(self.port)?;
        }
        Ok(())
    }
}

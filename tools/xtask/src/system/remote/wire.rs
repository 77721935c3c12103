//! One end of the remote shell's protocol on a UDP socket, which a test can hold up, record and repeat.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use remote_shell::{Client, ClientEvent, Command, DATAGRAM_MAX, Mode, Purpose, Random, Status};

use crate::system::guest::PATIENCE;

/// A session or a ping, from its hello on.
pub struct Wire {
    socket: UdpSocket,
    client: Client,
    epoch: Instant,
    /// What was sent.
    pub sent: Vec<Vec<u8>>,
}

/// What a command gave.
#[derive(Debug, PartialEq, Eq)]
pub struct Ran {
    pub output: String,
    pub status: Status,
}

/// Random bytes from a seed. These tests keep no secret, and are to be the same each time.
pub fn random(seed: u64) -> Random {
    let mut dice = fastrand::Rng::with_seed(seed);
    Box::new(move |bytes| dice.fill(bytes))
}

/// A purpose that runs this line.
///
/// # Errors
/// If it is too long.
pub fn exec(line: &str) -> Result<Purpose> {
    Ok(Purpose::Exec(Command::new(line)?))
}

/// A socket of the loopback interface that hears from this address only.
pub fn socket(to: SocketAddr) -> Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(to)?;
    Ok(socket)
}

impl Wire {
    /// Asks the server at an address for a session. Each session has a seed of its own.
    pub fn open(to: SocketAddr, mode: &Mode, purpose: Purpose, seed: u64) -> Result<Self> {
        let client = Client::new(mode.clone(), purpose, random(seed), now(Instant::now()));
        Self::of(client, to)
    }

    /// Asks with this client.
    pub fn of(client: Client, to: SocketAddr) -> Result<Self> {
        Ok(Self {
            socket: socket(to)?,
            client,
            epoch: Instant::now(),
            sent: Vec::new(),
        })
    }

    /// Sends what is due, and takes what comes within a moment.
    pub fn turn(&mut self) -> Result<()> {
        let mut datagram = [0; DATAGRAM_MAX];
        while let Some(length) = self.client.transmit(now(self.epoch), &mut datagram) {
            self.sent.push(datagram[..length].to_vec());
            // A port that is shut answers the next call on the socket; the protocol deals with silence.
            let _ = self.socket.send(&datagram[..length]);
        }
        let due = self
            .client
            .deadline()
            .map_or(Duration::MAX, |due| due.since(now(self.epoch)));
        let wait = due.clamp(Duration::from_micros(100), Duration::from_millis(20));
        self.socket.set_read_timeout(Some(wait))?;
        let mut datagram = [0; 2048];
        if let Ok(length) = self.socket.recv(&mut datagram) {
            self.client.receive(now(self.epoch), &datagram[..length]);
        }
        Ok(())
    }

    /// The next event.
    pub fn event(&mut self) -> Result<ClientEvent> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(event) = self.client.event() {
                return Ok(event);
            }
            ensure!(Instant::now() < deadline, "nothing happens in the session");
            self.turn()?;
        }
    }

    /// Types into the session.
    pub fn send(&mut self, mut bytes: &[u8]) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !bytes.is_empty() {
            bytes = &bytes[self.client.send(bytes)..];
            ensure!(Instant::now() < deadline, "the session takes no input");
            self.turn()?;
        }
        Ok(())
    }

    /// Waits until a text was shown; gives all that was shown with it.
    pub fn wait_for(&mut self, text: &str) -> Result<String> {
        let mut shown = Vec::new();
        loop {
            match self.event()? {
                ClientEvent::Connected { .. } => {}
                ClientEvent::Output(_, bytes) => shown.extend_from_slice(&bytes),
                other => bail!(
                    "{other:?} before {text:?}, after {}",
                    String::from_utf8_lossy(&shown)
                ),
            }
            let all = String::from_utf8_lossy(&shown);
            if all.contains(text) {
                return Ok(all.into_owned());
            }
        }
    }

    /// Waits for the end of the session's command, and until the server knows that it was heard of.
    pub fn finish(&mut self) -> Result<Ran> {
        let mut output = Vec::new();
        let status = loop {
            match self.event()? {
                ClientEvent::Connected { .. } => {}
                ClientEvent::Output(_, bytes) => output.extend_from_slice(&bytes),
                ClientEvent::Finished(status) => break status,
                other => bail!("{other:?} after {}", String::from_utf8_lossy(&output)),
            }
        };
        while !self.client.is_over() {
            self.turn()?;
        }
        let output = String::from_utf8(output)?;
        Ok(Ran { output, status })
    }

    /// Leaves.
    pub fn close(mut self) -> Result<()> {
        self.client.close(now(self.epoch));
        while !self.client.is_over() {
            self.turn()?;
            while self.client.event().is_some() {}
        }
        Ok(())
    }
}

/// The time since then, as the protocol has it.
fn now(epoch: Instant) -> remote_shell::Instant {
    remote_shell::Instant::default() + epoch.elapsed()
}

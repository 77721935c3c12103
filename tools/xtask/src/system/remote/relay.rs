//! A bad link: a relay between clients and a machine that loses datagrams and lets others overtake.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::Result;
use fastrand::Rng;

/// One in five is lost, each way.
const LOSS_PERCENT: u8 = 20;
/// How long one is under way at most. They differ, so that many are overtaken.
const DELAY_MAX_US: u64 = 8_000;
/// How often the relay looks for more.
const POLL: Duration = Duration::from_micros(500);

/// Passes datagrams on until it is told to stop.
pub struct Relay {
    front: UdpSocket,
    to: SocketAddr,
    /// Datagrams that came, and that were lost.
    pub came: AtomicU64,
    pub lost: AtomicU64,
    stop: AtomicBool,
}

impl Relay {
    /// A relay to an address.
    pub fn new(to: SocketAddr) -> Result<Self> {
        let front = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        front.set_nonblocking(true)?;
        Ok(Self {
            front,
            to,
            came: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        })
    }
    /// Where clients send to.
    pub fn address(&self) -> Result<SocketAddr> {
        Ok(self.front.local_addr()?)
    }
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// Relays. Which datagrams are lost is the same each time for the same traffic.
    pub fn run(&self, seed: u64) -> Result<()> {
        let mut dice = Rng::with_seed(seed);
        let mut backs: HashMap<SocketAddr, UdpSocket> = HashMap::new();
        // By the time of arrival; the count keeps those apart that arrive together.
        let mut flying: BTreeMap<(Instant, u64), (bool, SocketAddr, Vec<u8>)> = BTreeMap::new();
        let mut buffer = [0; 65_536];
        while !self.stop.load(Relaxed) {
            let mut came = Vec::new();
            while let Some((length, client)) = taken(self.front.recv_from(&mut buffer))? {
                if let Entry::Vacant(new) = backs.entry(client) {
                    let back = super::wire::socket(self.to)?;
                    back.set_nonblocking(true)?;
                    new.insert(back);
                }
                came.push((true, client, buffer[..length].to_vec()));
            }
            for (&client, back) in &backs {
                while let Some(length) = taken(back.recv(&mut buffer))? {
                    came.push((false, client, buffer[..length].to_vec()));
                }
            }
            for datagram in came {
                let count = self.came.fetch_add(1, Relaxed);
                if dice.u8(0..100) < LOSS_PERCENT {
                    self.lost.fetch_add(1, Relaxed);
                    continue;
                }
                let delay = Duration::from_micros(dice.u64(..DELAY_MAX_US));
                flying.insert((Instant::now() + delay, count), datagram);
            }
            while let Some(first) = flying.first_entry()
                && first.key().0 <= Instant::now()
            {
                let (to_server, client, bytes) = first.remove();
                // One that cannot be sent is lost.
                let _ = match backs.get(&client) {
                    Some(back) if to_server => back.send(&bytes),
                    _ => self.front.send_to(&bytes, client),
                };
            }
            std::thread::sleep(POLL);
        }
        Ok(())
    }
}

/// Nothing there is no error, and neither is a port that was shut.
fn taken<T>(result: io::Result<T>) -> Result<Option<T>> {
    match result {
        Ok(taken) => Ok(Some(taken)),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionRefused => Ok(None),
            _ => Err(error.into()),
        },
    }
}

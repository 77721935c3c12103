//! The port over a device that fails.

use core::net::Ipv4Addr;

use ipc::abi::Error;
use ipc::proto::remote::{self, Client as RemoteClient};
use ipc::proto::stream::{Client as StreamClient, StreamError};
use ipc::proto::{Desk, Loopback, Message, Transport};
use remote_shell::{Client, Instant, Mode, Purpose, Random, ServerMode};
use smoltcp::wire::Ipv4Cidr;

use super::*;
use crate::fake::{Cable, FakeNic, Faults};
use crate::settings::Settings;

const PORT: u16 = 5555;
const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

struct Numbers;

impl Mint for Numbers {
    type Handle = u32;
    fn mint(&mut self, _: u64) -> Result<u32, Error> {
        Ok(0)
    }
}

fn random(seed: u64) -> Random {
    let mut rng = fastrand::Rng::with_seed(seed);
    Box::new(move |bytes| rng.fill(bytes))
}

fn stack(nic: &FakeNic, host: u8) -> Stack<FakeNic> {
    let address = Ipv4Cidr::new(Ipv4Addr::new(10, 0, 0, host), 24);
    let gateway = None;
    Stack::new(
        nic.clone(),
        Settings::Static { address, gateway },
        host.into(),
        0,
    )
}

/// The shell's calls.
struct Line<'a>(&'a mut Loopback<Remote<Numbers, Desk>>);

impl Transport for Line<'_> {
    type Handle = u32;
    fn call(&mut self, message: &mut Message<u32>) -> Result<(), Error> {
        self.0.call(message)
    }
}

/// A server with its port, and a client on the same cable.
struct World {
    now: u64,
    cable: Cable,
    nic: FakeNic,
    stack: Stack<FakeNic>,
    outlet: Outlet,
    shell: Loopback<Remote<Numbers, Desk>>,
    peer: Stack<FakeNic>,
    socket: SocketId,
    client: Client,
}

impl World {
    fn new() -> Self {
        let nics = [FakeNic::new(1), FakeNic::new(2)];
        let [mut peer, mut stack] = [1, 2].map(|host| stack(&nics[usize::from(host) - 1], host));
        let outlet = Outlet::new(stack.bind(PORT).unwrap());
        let remote = Remote::new(Numbers, ServerMode::Open, random(1), 0);
        let socket = peer.bind(7).unwrap();
        let now = Instant::from_nanos(0);
        Self {
            now: 0,
            nic: nics[1].clone(),
            cable: Cable::new(nics, Faults::default(), 1),
            stack,
            outlet,
            shell: Loopback::new(remote, remote::serve),
            peer,
            socket,
            client: Client::new(Mode::Open, Purpose::Shell, random(2), now),
        }
    }

    /// Lets everything happen that is due, until a time.
    fn until(&mut self, time: u64) {
        let server = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), PORT);
        let mut datagram = [0; DATAGRAM_MAX];
        while self.now < time {
            self.now += MS;
            let now = Instant::from_nanos(self.now);
            while let Some(length) = self.client.transmit(now, &mut datagram) {
                let fill = |room: &mut [u8]| room.copy_from_slice(&datagram[..length]);
                let sent = self.peer.send(self.socket, server, length, &fill, self.now);
                sent.unwrap();
            }
            self.peer.poll(self.now);
            self.cable.carry();
            self.stack.poll(self.now);
            let Loopback { service, desk, .. } = &mut self.shell;
            self.outlet.turn(&mut self.stack, service, desk, self.now);
            self.cable.carry();
            self.peer.poll(self.now);
            while let Some((_, bytes)) = self.peer.datagram(self.socket, 0) {
                self.client.receive(now, bytes);
                self.peer.discard(self.socket, 1);
            }
        }
    }
}

fn is_ended_by(fail: fn(&FakeNic)) {
    let mut world = World::new();
    world.shell.badge = 7;
    assert!(
        RemoteClient::new(Line(&mut world.shell))
            .accept(&())
            .is_err()
    );
    world.until(SECOND);
    let (_, answer) = world.shell.desk.last_answer.take().unwrap();
    assert_eq!(answer.handles, [0], "a session");
    world.shell.badge = super::super::SESSION_BADGE;
    assert!(StreamClient::new(Line(&mut world.shell)).read(&1).is_err());
    fail(&world.nic);
    world.until(15 * SECOND);
    assert!(world.shell.desk.last_answer.is_none());
    // What would have been heard of the other side for 20 s, and what it takes to see a stall.
    world.until(30 * SECOND);
    let (_, answer) = world.shell.desk.last_answer.take().unwrap();
    assert_eq!(answer.get::<StreamError>().unwrap(), StreamError::Closed);
}

#[test]
fn sessions_over_a_device_that_fails_are_lost_in_their_time() {
    is_ended_by(|nic| nic.rings.borrow_mut().has_failed = true);
}

#[test]
fn sessions_over_a_device_without_room_are_lost_in_their_time() {
    is_ended_by(|nic| nic.rings.borrow_mut().room = 0);
}

//! The protocol, called as programs call it, over two hosts and a cable.

mod calls;
mod failures;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use ipc::proto::net::{Client, Header, dispatch};
use ipc::proto::{CallError, Disposition, Message, Responder, Transport};

use super::*;
use crate::fake::{Cable, FakeNic, Faults};
use crate::settings::Settings;
use crate::stack::SocketId;
use core::net::SocketAddrV4;

type Bytes = Rc<RefCell<Vec<u8>>>;

/// A program's memory.
struct Shared(Bytes);

impl Memory for Shared {
    fn word(&self, at: usize) -> u64 {
        let mut word = [0; 8];
        self.read(at, &mut word);
        u64::from_le_bytes(word)
    }
    fn set_word(&self, at: usize, word: u64) {
        self.write(at, &word.to_le_bytes());
    }
    fn read(&self, at: usize, out: &mut [u8]) {
        assert!(at.is_multiple_of(8));
        out.copy_from_slice(&self.0.borrow()[at..at + out.len()]);
    }
    fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at.is_multiple_of(8));
        self.0.borrow_mut()[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

/// The kernel: handles are numbers, of memory objects and of badges.
#[derive(Clone, Default)]
struct FakeKernel {
    now: Rc<RefCell<u64>>,
    memory: Rc<RefCell<BTreeMap<u64, Bytes>>>,
}

impl Machine for FakeKernel {
    type Handle = u64;
    type Memory = Shared;

    fn now(&self) -> u64 {
        *self.now.borrow()
    }
    fn mint(&mut self, badge: u64) -> Result<u64, Error> {
        Ok(badge)
    }
    fn map(&mut self, memory: u64, pages: u64) -> Result<Shared, Error> {
        let objects = self.memory.borrow();
        let bytes = objects.get(&memory).ok_or(Error::BadHandle)?;
        let fits = bytes.borrow().len() as u64 >= pages * 4096;
        fits.then(|| Shared(Rc::clone(bytes)))
            .ok_or(Error::BadArgument)
    }
}

/// Keeps the answers to parked calls.
#[derive(Default)]
struct Desk {
    parked: u32,
    answers: Vec<(u32, Message<u64>)>,
    /// Callers that have given up.
    gone: Vec<u32>,
    /// No more can be parked.
    is_full: bool,
}

impl Responder for Desk {
    type Handle = u64;
    type Parked = u32;

    fn park(&mut self) -> Result<u32, Error> {
        if self.is_full {
            return Err(Error::LimitReached);
        }
        self.parked += 1;
        Ok(self.parked)
    }
    fn answer(&mut self, parked: u32, message: &mut Message<u64>) -> Result<(), Error> {
        if self.gone.contains(&parked) {
            return Err(Error::NoReply);
        }
        self.answers.push((parked, core::mem::take(message)));
        Ok(())
    }
}

type Host = Server<FakeKernel, FakeNic, Desk>;

/// A server that is 10.0.0.2, and the host 10.0.0.1, whose socket has port 7.
struct Bench {
    server: Host,
    desk: Desk,
    kernel: FakeKernel,
    badge: u64,
    nic: FakeNic,
    peer: Stack<FakeNic>,
    cable: Cable,
    socket: SocketId,
}

impl Transport for &mut Bench {
    type Handle = u64;

    fn call(&mut self, message: &mut Message<u64>) -> Result<(), Error> {
        match dispatch(&mut self.server, &mut self.desk, self.badge, message) {
            Disposition::Reply => Ok(()),
            Disposition::Parked => Err(Error::TimedOut),
        }
    }
}

const PARKED: CallError<NetError> = CallError::Transport(Error::TimedOut);
const PEER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 1), 7);

fn settings(host: u8) -> Settings {
    Settings::Static {
        address: smoltcp::wire::Ipv4Cidr::new([10, 0, 0, host].into(), 24),
        gateway: None,
    }
}

fn slots(first: u16, count: u16) -> Slots {
    Slots { first, count }
}

impl Bench {
    fn new() -> Self {
        let nics = [FakeNic::new(1), FakeNic::new(2)];
        let [mut peer, own] = [1, 2].map(|host: u8| {
            Stack::new(
                nics[usize::from(host) - 1].clone(),
                settings(host),
                host.into(),
                0,
            )
        });
        let kernel = FakeKernel::default();
        Self {
            server: Server::new(kernel.clone(), Some(own)),
            desk: Desk::default(),
            kernel,
            badge: 5,
            nic: nics[1].clone(),
            socket: peer.bind(7).unwrap(),
            peer,
            cable: Cable::new(nics, Faults::default(), 1),
        }
    }

    fn client(&mut self) -> Client<&mut Self> {
        Client::new(self)
    }

    /// The same, by another caller.
    fn through(&mut self, badge: u64) -> Client<&mut Self> {
        self.badge = badge;
        Client::new(self)
    }

    fn settle(&mut self) {
        loop {
            self.server.poll(&mut self.desk);
            self.peer.poll(self.kernel.now());
            if !self.cable.carry() {
                break;
            }
        }
    }

    fn pass(&mut self, ms: u64) {
        *self.kernel.now.borrow_mut() += ms * 1_000_000;
        self.settle();
    }

    /// A memory object with so many slots.
    fn memory(&mut self, count: u16) -> (u64, Bytes) {
        let bytes = Bytes::new(RefCell::new(vec![0; Slots::pages(count) as usize * 4096]));
        let mut objects = self.kernel.memory.borrow_mut();
        let handle = objects.len() as u64;
        objects.insert(handle, Rc::clone(&bytes));
        (handle, bytes)
    }

    /// A socket of the program with this badge; the socket's badge and memory.
    fn socket(&mut self, owner: u64, count: u16) -> Result<(u64, Shared), CallError<NetError>> {
        let (handle, bytes) = self.memory(count);
        let ((), [badge]) = self.through(owner).socket(&count, [handle])?;
        Ok((badge, Shared(bytes)))
    }

    fn bound(&mut self, port: u16) -> (u64, Shared) {
        let (badge, memory) = self.socket(5, 8).unwrap();
        assert_eq!(self.through(badge).bind(&port), Ok(port));
        (badge, memory)
    }

    fn peer_sends(&mut self, bytes: &[u8]) {
        let to = SocketAddrV4::new([10, 0, 0, 2].into(), 9);
        let fill = |room: &mut [u8]| room.copy_from_slice(bytes);
        let now = self.kernel.now();
        self.peer
            .send(self.socket, to, bytes.len(), &fill, now)
            .unwrap();
        self.settle();
    }

    fn peer_has(&mut self) -> Vec<Vec<u8>> {
        let all: Vec<_> = (0..)
            .map_while(|index| self.peer.datagram(self.socket, index))
            .map(|(_, bytes)| bytes.to_vec())
            .collect();
        self.peer.discard(self.socket, all.len());
        all
    }

    fn answer<T: serde::de::DeserializeOwned>(&mut self) -> T {
        self.desk.answers.pop().unwrap().1.get().unwrap()
    }
}

fn put(memory: &Shared, index: u16, peer: SocketAddrV4, bytes: &[u8]) {
    let (word, place) = Slots::place(index);
    let len = bytes.len() as u16;
    memory.write(place, bytes);
    memory.set_word(word, Header { peer, len }.to_word());
}

fn get(memory: &Shared, index: u16) -> (SocketAddrV4, Vec<u8>) {
    let (word, place) = Slots::place(index);
    let Header { peer, len } = Header::from_word(memory.word(word));
    let mut bytes = vec![0; len.into()];
    memory.read(place, &mut bytes);
    (peer, bytes)
}

fn refused<T>(error: NetError) -> Result<T, CallError<NetError>> {
    Err(CallError::Service(error))
}

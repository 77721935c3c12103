//! A machine that only pretends: the protocol's own server on a socket of the loopback interface, and a few commands behind it. Between
//! the two a link can lose datagrams.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fastrand::Rng;
use remote_shell::{
    DATAGRAM_MAX, End, Instant as Moment, KeyRing, Purpose, Role, Server, ServerEvent, ServerMode,
    Status, Stream,
};

/// The keys that it takes.
pub const CONTROL: &str = "1111111111111111111111111111111111111111111111111111111111111111";
pub const OBSERVE: &str = "2222222222222222222222222222222222222222222222222222222222222222";
/// What `profile` prints: recorded on a machine that ran the demo.
pub const FOLDED: &[u8] = include_bytes!("../../src/recorded.folded");
/// Longest that anything takes on any host that is not broken.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What `big` prints.
pub fn big() -> Vec<u8> {
    let mut random = Rng::with_seed(7);
    (0..200_000).map(|_| random.u8(..)).collect()
}

/// What a machine is like.
pub struct Kind {
    /// No key is asked for.
    pub open: bool,
    /// There is a shell that runs sessions.
    pub serves: bool,
    /// Of a hundred datagrams, in each direction, so many are lost.
    pub loss: u8,
}

impl Default for Kind {
    fn default() -> Self {
        Self {
            open: false,
            serves: true,
            loss: 0,
        }
    }
}

/// The machine, until it is dropped.
pub struct Machine {
    /// Where it is.
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Machine {
    /// Starts it.
    pub fn start(kind: Kind) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        // It looks after its timers as often as that.
        let wait = Some(Duration::from_millis(2));
        socket.set_read_timeout(wait).unwrap();
        let address = socket.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let stop = Arc::clone(&stop);
            move || serve(&socket, &kind, &stop)
        });
        Self {
            address,
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            assert!(thread.join().is_ok(), "the machine has panicked");
        }
    }
}

/// What a session is still to print, and how it ends.
#[derive(Default)]
struct Session {
    purpose: Option<Purpose>,
    typed: Vec<u8>,
    output: Vec<u8>,
    status: Option<Status>,
    opened: Option<Instant>,
    is_left: bool,
}

fn serve(socket: &UdpSocket, kind: &Kind, stop: &AtomicBool) {
    let ring = format!("control {CONTROL}\nobserve {OBSERVE}\n");
    let mode = match kind.open {
        true => ServerMode::Open,
        false => ServerMode::Keyed(KeyRing::parse(ring.as_bytes()).unwrap()),
    };
    let mut server = Server::new(mode, Box::new(|bytes| Rng::new().fill(bytes)));
    server.set_serves(kind.serves);
    let epoch = Instant::now();
    let now = || Moment::default() + epoch.elapsed();
    let mut link = Rng::with_seed(1);
    let mut arrives = || link.u8(..100) >= kind.loss;
    let mut sessions: HashMap<u32, Session> = HashMap::new();
    let mut buffer = [0; 2048];
    while !stop.load(Ordering::Relaxed) {
        match socket.recv_from(&mut buffer) {
            Ok((length, SocketAddr::V4(peer))) if arrives() => {
                server.receive(now(), peer, &buffer[..length]);
            }
            Ok(_) => {}
            Err(error) => assert!(
                matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
                "{error}"
            ),
        }
        while let Some(event) = server.event() {
            match event {
                ServerEvent::Opened {
                    number,
                    role,
                    purpose,
                    ..
                } => {
                    let session = sessions.entry(number).or_default();
                    session.open(role, purpose);
                }
                ServerEvent::Input(number) => {
                    let session = sessions.entry(number).or_default();
                    loop {
                        let read = server.read(now(), number, &mut buffer);
                        if read == 0 {
                            break;
                        }
                        session.input(&buffer[..read]);
                    }
                }
                ServerEvent::Closed(number, _) => drop(sessions.remove(&number)),
            }
        }
        sessions.retain(|&number, session| {
            let stream = match session.purpose {
                Some(Purpose::Shell) => Stream::Text,
                _ => Stream::Binary,
            };
            let taken = server.write(number, stream, &session.output);
            session.output.drain(..taken);
            if !session.output.is_empty() {
                return true;
            }
            // A client that does not go on fails its test, rather than to keep it waiting.
            if session.is_left || session.opened.is_some_and(|at| at.elapsed() > PATIENCE) {
                server.close(now(), number, End::Left);
                return false;
            }
            let Some(status) = session.status else {
                return true;
            };
            server.finish(now(), number, status);
            false
        });
        let mut datagram = [0; DATAGRAM_MAX];
        while let Some((peer, length)) = server.transmit(now(), &mut datagram) {
            if arrives() {
                send(socket, &datagram[..length], peer);
            }
        }
    }
}

/// A client that is gone already is no failure.
fn send(socket: &UdpSocket, datagram: &[u8], peer: SocketAddrV4) {
    if let Err(error) = socket.send_to(datagram, peer) {
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
    }
}

impl Session {
    fn open(&mut self, role: Role, purpose: Purpose) {
        match &purpose {
            Purpose::Shell => {
                self.print(format!("a shell, role {role}\r\n").as_bytes());
                self.prompt();
            }
            Purpose::Exec(command) => {
                let command = command.as_str().to_owned();
                self.status = self.run(&command);
            }
        }
        self.purpose = Some(purpose);
        self.opened = Some(Instant::now());
    }

    fn run(&mut self, command: &str) -> Option<Status> {
        let (output, status) = match command.split(' ').next() {
            Some("ps") => (&b"PID NAME\n1 init\n"[..], Status::Success),
            Some("big") => (&big()[..], Status::Success),
            Some("profile") if command.ends_with(" folded depth 48") => (FOLDED, Status::Success),
            Some("wait") => {
                self.print(b"waiting\n");
                return None;
            }
            _ => {
                let refused = format!("no command `{command}`\n");
                self.print(refused.as_bytes());
                return Some(Status::Failed);
            }
        };
        self.print(output);
        Some(status)
    }

    fn input(&mut self, bytes: &[u8]) {
        if let Some(Purpose::Exec(_)) = self.purpose {
            if bytes.contains(&3) {
                self.print(b"interrupted\n");
                self.status = Some(Status::Interrupted);
            }
            return;
        }
        for &byte in bytes {
            match byte {
                // Ctrl-U behind Ctrl-E.
                5 => {}
                0x15 => {
                    self.typed.clear();
                    self.prompt();
                }
                b'\r' => {
                    self.print(b"\r\n");
                    let line = String::from_utf8(std::mem::take(&mut self.typed)).unwrap();
                    match &*line {
                        "leave" => self.is_left = true,
                        "exit" => self.status = Some(Status::Success),
                        _ => {
                            self.print(format!("ran {line}\r\n").as_bytes());
                            self.prompt();
                        }
                    }
                }
                3 => {
                    self.typed.clear();
                    self.print(b"^C\r\n");
                    self.prompt();
                }
                byte => {
                    self.typed.push(byte);
                    self.print(&[byte]);
                }
            }
        }
    }

    fn print(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
    }

    fn prompt(&mut self) {
        self.print(b"\r> \x1b[K");
    }
}

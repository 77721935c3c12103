//! The shell's calls on one side, clients of the remote shell on the other, joined in memory.

use core::net::{Ipv4Addr, SocketAddrV4};
use core::time::Duration;

use ipc::abi::Error;
use ipc::proto::remote::{
    self, Client as RemoteClient, Opened, Peer, Purpose, RemoteError, Role, Status,
};
use ipc::proto::stream::{Chunk, Client as StreamClient, StreamError};
use ipc::proto::{CallError, Desk, Loopback, Message, Text, Transport};
use remote_shell::{
    Client, ClientEvent, Command, DATAGRAM_MAX, End, Instant, Mode, Random, ServerMode, Stream,
};

use super::{Mint, Remote, SESSION_BADGE};

/// The process id of the shell.
const SHELL: u64 = 7;
const BORN: u64 = 1_000_000_000;

/// Handles are the badges' low bits.
struct Numbers {
    full: bool,
}

impl Mint for Numbers {
    type Handle = u32;
    fn mint(&mut self, badge: u64) -> Result<u32, Error> {
        if self.full {
            return Err(Error::LimitReached);
        }
        Ok((badge - SESSION_BADGE - BORN) as u32)
    }
}

fn random(seed: u64) -> Random {
    let mut rng = fastrand::Rng::with_seed(seed);
    Box::new(move |bytes| rng.fill(bytes))
}

fn peer() -> SocketAddrV4 {
    SocketAddrV4::new(Ipv4Addr::new(10, 0, 2, 2), 4000)
}

/// The shell's end of a call.
struct Line<'a>(&'a mut Loopback<Remote<Numbers, Desk>>);

impl Transport for Line<'_> {
    type Handle = u32;
    fn call(&mut self, message: &mut Message<u32>) -> Result<(), Error> {
        self.0.call(message)
    }
}

struct World {
    now: u64,
    shell: Loopback<Remote<Numbers, Desk>>,
    client: Client,
}

impl World {
    fn new(purpose: remote_shell::Purpose) -> Self {
        let remote = Remote::new(Numbers { full: false }, ServerMode::Open, random(1), BORN);
        let mut shell = Loopback::new(remote, remote::serve);
        shell.badge = SHELL;
        let now = Instant::from_nanos(BORN);
        Self {
            now: BORN,
            shell,
            client: Client::new(Mode::Open, purpose, random(2), now),
        }
    }
    fn exec(line: &str) -> Self {
        Self::new(remote_shell::Purpose::Exec(Command::new(line).unwrap()))
    }

    fn remote(&mut self) -> &mut Remote<Numbers, Desk> {
        &mut self.shell.service
    }
    fn accept(&mut self) -> Result<((), [u32; 1]), CallError<RemoteError>> {
        self.shell.badge = SHELL;
        RemoteClient::new(Line(&mut self.shell)).accept(&())
    }
    /// The session that a parked accept was answered with: its badge.
    fn accepted(&mut self) -> u64 {
        let (_, message) = self.shell.desk.last_answer.take().unwrap();
        let [handle] = message.handles[..] else {
            panic!("no handle")
        };
        SESSION_BADGE + BORN + u64::from(handle)
    }
    fn session(&mut self, badge: u64) -> RemoteClient<Line<'_>> {
        self.shell.badge = badge;
        RemoteClient::new(Line(&mut self.shell))
    }
    fn stream(&mut self, badge: u64) -> StreamClient<Line<'_>> {
        self.shell.badge = badge;
        StreamClient::new(Line(&mut self.shell))
    }

    /// Lets both ends say what they have to, for so long.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time.as_nanos() as u64;
        let mut datagram = [0; DATAGRAM_MAX];
        while self.now < end {
            self.now += 1_000_000;
            let now = Instant::from_nanos(self.now);
            self.shell.service.at(self.now);
            while let Some(length) = self.client.transmit(now, &mut datagram) {
                self.shell.service.receive(peer(), &datagram[..length]);
            }
            self.shell.service.poll(&mut self.shell.desk);
            while let Some((_, length)) = self.shell.service.transmit(&mut datagram) {
                self.client.receive(now, &datagram[..length]);
            }
            self.shell.service.poll(&mut self.shell.desk);
        }
    }
    fn moment(&mut self) {
        self.pass(Duration::from_millis(100));
    }
    fn events(&mut self) -> Vec<ClientEvent> {
        core::iter::from_fn(|| self.client.event()).collect()
    }
}

const WAITS: Result<((), [u32; 1]), CallError<RemoteError>> =
    Err(CallError::Transport(Error::TimedOut));

fn chunk(bytes: &[u8]) -> Chunk {
    Chunk::try_from(bytes).unwrap()
}

#[test]
fn a_command_comes_to_the_shell_and_its_output_goes_back() {
    let mut world = World::exec("ps");
    assert_eq!(world.accept(), WAITS);
    world.moment();
    let badge = world.accepted();
    let opened = Opened {
        number: 1,
        role: Role::Control,
        purpose: Purpose::Exec(Text::cut("ps")),
        peer: Peer {
            address: [10, 0, 2, 2],
            port: 4000,
        },
    };
    assert_eq!(world.session(badge).describe(&()), Ok(opened));
    assert_eq!(world.stream(badge).write(&chunk(b"1 init\n")), Ok(()));
    assert_eq!(world.session(badge).finish(&Status::Failed), Ok(()));
    let over = Err(CallError::Service(RemoteError::Over));
    assert_eq!(world.session(badge).finish(&Status::Success), over);
    world.moment();
    let role = Role::Control;
    let output = ClientEvent::Output(Stream::Binary, b"1 init\n".to_vec());
    let expected = [
        ClientEvent::Connected { role },
        output,
        ClientEvent::Finished(Status::Failed),
    ];
    assert_eq!(world.events(), expected);
    world.remote().closed(badge);
    assert!(world.remote().sessions.is_empty());
}

#[test]
fn a_flush_behind_the_end_waits_for_the_other_side_to_have_it() {
    let mut world = World::exec("poweroff");
    assert_eq!(world.accept(), WAITS);
    world.moment();
    let badge = world.accepted();
    assert_eq!(world.session(badge).finish(&Status::Success), Ok(()));
    let timed_out = Err(CallError::Transport(Error::TimedOut));
    assert_eq!(world.stream(badge).flush(&()), timed_out);
    assert!(world.shell.desk.last_answer.is_none());
    world.moment();
    assert!(
        world
            .events()
            .contains(&ClientEvent::Finished(Status::Success))
    );
    let (_, message) = world.shell.desk.last_answer.take().unwrap();
    assert_eq!(message.op, 0, "answered");
    // So it is at once where nobody is left to wait for.
    assert_eq!(world.stream(badge).flush(&()), Ok(()));
}

#[test]
fn what_is_typed_is_given_to_who_reads_and_waits_for_who_does_not() {
    let mut world = World::new(remote_shell::Purpose::Shell);
    assert_eq!(world.accept(), WAITS);
    world.moment();
    let badge = world.accepted();
    let timed_out = CallError::Transport(Error::TimedOut);
    assert_eq!(world.stream(badge).read(&10), Err(timed_out));
    assert_eq!(
        world.stream(badge).read(&10),
        Err(CallError::Service(StreamError::Busy))
    );
    assert_eq!(world.client.send(b"ps\r"), 3);
    world.moment();
    let (_, message) = world.shell.desk.last_answer.take().unwrap();
    assert_eq!(message.get::<Chunk>().unwrap(), chunk(b"ps\r"));
    assert_eq!(world.client.send(b"mem\r"), 4);
    world.moment();
    assert_eq!(world.stream(badge).read(&3).unwrap(), chunk(b"mem"));
    assert_eq!(world.stream(badge).read(&3).unwrap(), chunk(b"\r"));
    assert_eq!(world.stream(badge).read(&0).unwrap(), chunk(b""));
}

#[test]
fn a_client_that_leaves_is_told_and_one_whose_session_dies_is_told_too() {
    let mut world = World::new(remote_shell::Purpose::Shell);
    assert_eq!(world.accept(), WAITS);
    world.moment();
    let badge = world.accepted();
    assert!(world.stream(badge).read(&10).is_err());
    let now = Instant::from_nanos(world.now);
    world.client.close(now);
    world.moment();
    let (_, message) = world.shell.desk.last_answer.take().unwrap();
    assert_eq!(message.get::<StreamError>().unwrap(), StreamError::Closed);
    let closed = Err(CallError::Service(StreamError::Closed));
    assert_eq!(world.stream(badge).write(&chunk(b"x")), closed);

    let mut world = World::new(remote_shell::Purpose::Shell);
    assert_eq!(world.accept(), WAITS);
    world.moment();
    let badge = world.accepted();
    world.remote().closed(badge);
    world.moment();
    assert!(world.events().contains(&ClientEvent::Closed(End::Left)));
}

#[test]
fn a_session_that_nobody_takes_ends_and_clients_are_refused_while_there_is_no_shell() {
    let mut world = World::new(remote_shell::Purpose::Shell);
    world.moment();
    let off = ClientEvent::Refused(remote_shell::Refusal::Off);
    assert_eq!(world.events(), [off]);

    let mut world = World::new(remote_shell::Purpose::Shell);
    assert_eq!(world.accept(), WAITS);
    world.remote().acceptor = None;
    world.pass(Duration::from_secs(11));
    assert!(world.events().contains(&ClientEvent::Closed(End::Failed)));
    assert!(world.remote().sessions.is_empty());
}

#[test]
fn a_later_accept_takes_the_place_of_the_earlier_and_no_other_badge_may() {
    let mut world = World::exec("ps");
    assert_eq!(world.accept(), WAITS);
    assert_eq!(world.accept(), WAITS);
    let (first, message) = world.shell.desk.last_answer.take().unwrap();
    assert_eq!(first, 1);
    assert_eq!(message.get::<RemoteError>().unwrap(), RemoteError::Busy);
    let not_yours = Err(CallError::Service(RemoteError::NotYours));
    assert_eq!(world.session(SHELL).finish(&Status::Success), not_yours);
    world.shell.badge = SESSION_BADGE;
    let client = RemoteClient::new(Line(&mut world.shell)).accept(&());
    assert_eq!(client, Err(CallError::Service(RemoteError::NotYours)));
    world.remote().mint.full = true;
    world.moment();
    let (_, message) = world.shell.desk.last_answer.take().unwrap();
    assert_eq!(message.get::<RemoteError>().unwrap(), RemoteError::Busy);
    world.remote().mint.full = false;
    assert_eq!(world.accept(), WAITS);
    world.moment();
    world.accepted();
}

#[test]
fn a_writer_waits_for_the_link_and_the_memory_is_bounded() {
    let mut world = World::exec("dmesg");
    assert_eq!(world.accept(), WAITS);
    world.moment();
    let badge = world.accepted();
    let full = chunk(&[b'x'; 1024]);
    let mut written = 0;
    while world.stream(badge).write(&full).is_ok() {
        written += 1;
    }
    // What waits to be cut, and no more: nothing was sent meanwhile.
    assert_eq!(written, 16);
    assert!(world.stream(badge).flush(&()).is_err());
    world.moment();
    let output = world.events().into_iter().filter_map(|event| match event {
        ClientEvent::Output(Stream::Binary, bytes) => Some(bytes.len()),
        _ => None,
    });
    assert_eq!(output.sum::<usize>(), 17 * 1024);
    // The writer was answered, then the flush.
    let (last, _) = world.shell.desk.last_answer.take().unwrap();
    assert_eq!(last, 3);
}

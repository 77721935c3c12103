//! The remote shell on the machine: from the command line, the boot archive and the processor's random numbers to a port.

use alloc::boxed::Box;
use core::fmt;

use ipc::abi::{Error, Handle, Rights};
use ipc::bootfs::{Bootfs, REMOTE_KEYS};
use ipc::proto::Message;
use ipc::proto::net::NetError;
use ipc::proto::remote::{self, Statistics};
use net::device::Nic;
use net::remote::off::Off;
use net::remote::refusals::Refusals;
use net::remote::settings::{self, Mistake, Wanted};
use net::remote::{Mint, Outlet, Remote};
use net::stack::Stack;
use remote_shell::Random;
use sysroot::random::Generator;
use sysroot::{OwnedHandle, Port, handle, mapping, println, startup, time};

/// Where the shell waits for sessions.
pub const ENDPOINT: &str = "serve:remote";

/// Why the remote shell is off although the command line asks for it.
enum Reason<'a> {
    Mistake(Mistake<'a>),
    /// There is nothing by which somebody could reach it.
    NoDevice,
    /// The program's entry does not give it the endpoint.
    NotGiven,
    /// Keys of sessions could be guessed.
    NoRandom,
    /// The port cannot be had.
    Bind(NetError),
}

impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mistake(mistake) => mistake.fmt(f),
            Self::NoDevice => f.write_str("no network device"),
            Self::NotGiven => write!(f, "was not given {ENDPOINT}"),
            Self::NoRandom => {
                f.write_str("the processor has no RDRAND that works, and keys could be guessed")
            }
            Self::Bind(error) => write!(f, "its port cannot be had: {error}"),
        }
    }
}

/// The remote shell.
pub enum Shell {
    /// Nobody comes.
    Off(Off<Port>),
    /// It has a port.
    On(Box<Open>),
}

/// The remote shell, on.
pub struct Open {
    remote: Remote<Sessions, Port>,
    outlet: Outlet,
    refusals: Refusals,
}

/// Turns the remote shell on, if the command line asks for it; the log says whether it is.
pub fn open<D: Nic>(line: &str, stack: Option<&mut Stack<D>>) -> Shell {
    let opened = try_open(line, stack).unwrap_or_else(|reason| {
        println!("{reason}; the remote shell is off");
        None
    });
    opened.map_or_else(
        || Shell::Off(Off::default()),
        |open| Shell::On(Box::new(open)),
    )
}

fn try_open<'a, D: Nic>(
    line: &'a str,
    stack: Option<&mut Stack<D>>,
) -> Result<Option<Open>, Reason<'a>> {
    let keys = mapping::bootfs().ok().and_then(|bytes| {
        let archive = Bootfs::parse(bytes).ok()?;
        Some(archive.find(REMOTE_KEYS)?.data)
    });
    let (port, access) = match settings::read(line, keys).map_err(Reason::Mistake)? {
        Wanted::Off => return Ok(None),
        Wanted::At(port, access) => (port.get(), access),
    };
    let stack = stack.ok_or(Reason::NoDevice)?;
    let endpoint = startup::handle(ENDPOINT).ok_or(Reason::NotGiven)?;
    let random = random(Generator::new().ok_or(Reason::NoRandom)?);
    let socket = stack.bind(port).map_err(Reason::Bind)?;
    println!("remote shell at UDP port {port}, {access}");
    let sessions = Sessions { endpoint };
    Ok(Some(Open {
        remote: Remote::new(sessions, access.into_mode(), random, time::now()),
        outlet: Outlet::new(socket),
        refusals: Refusals::default(),
    }))
}

/// A generator that breaks ends the program: what would go on without it has keys that can be guessed.
fn random(generator: Generator) -> Random {
    Box::new(move |bytes| {
        assert!(
            generator.fill(bytes).is_ok(),
            "the processor's random numbers have come to an end"
        );
    })
}

impl Shell {
    /// Serves a call.
    pub fn serve(&mut self, badge: u64, message: &mut Message<OwnedHandle>, port: &mut Port) {
        match self {
            Self::Off(off) => port.serve(badge, message, off, remote::serve),
            Self::On(open) => port.serve(badge, message, open.remote(), remote::serve),
        }
    }

    /// Nobody has a handle with this badge any more.
    pub fn closed(&mut self, badge: u64) {
        if let Self::On(open) = self {
            open.remote().closed(badge);
        }
    }

    /// What came of the datagrams; `None` if it is off.
    pub const fn statistics(&self) -> Option<Statistics> {
        match self {
            Self::Off(_) => None,
            Self::On(open) => Some(*open.remote.statistics()),
        }
    }

    /// Lets it go on; gives the time when it has something to do by itself.
    pub fn turn<D: Nic>(&mut self, stack: &mut Stack<D>, port: &mut Port) -> Option<u64> {
        match self {
            Self::Off(_) => None,
            Self::On(open) => open.turn(stack, port),
        }
    }
}

impl Open {
    /// Its sessions, at the present time.
    fn remote(&mut self) -> &mut Remote<Sessions, Port> {
        self.remote.at(time::now());
        &mut self.remote
    }

    fn turn<D: Nic>(&mut self, stack: &mut Stack<D>, port: &mut Port) -> Option<u64> {
        let (remote, now) = (&mut self.remote, time::now());
        self.outlet.turn(stack, remote, port, now);
        if let Some(refused) = self.refusals.tell(remote.statistics(), now) {
            println!("{refused}");
        }
        let dues = [
            self.outlet.deadline(stack, remote),
            self.refusals.deadline(remote.statistics()),
        ];
        dues.into_iter().flatten().min()
    }
}

/// Makes the handles of sessions.
pub struct Sessions {
    endpoint: Handle,
}

impl Mint for Sessions {
    type Handle = OwnedHandle;

    fn mint(&mut self, badge: u64) -> Result<OwnedHandle, Error> {
        let rights = Rights::CALL | Rights::DUPLICATE | Rights::TRANSFER;
        handle::mint(self.endpoint, badge, rights)
    }
}

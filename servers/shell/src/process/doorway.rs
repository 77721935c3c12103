//! The door of this system: sessions come from the server of `remote`, and init starts the program `session` for each.

use ipc::abi::Rights;
use ipc::proto::CallError;
use ipc::proto::init::{self, Args, InitError, Name, Spawn};
use ipc::proto::remote::{self, RemoteError, Status};
use ipc::proto::stream::{self, Chunk};
use ipc::proto::system::INIT;
use sysroot::{Connection, OwnedHandle, thread, time};

use super::ends::Time;
use crate::door::{self, Door};
use crate::terminal::Closed;

/// Name under which the server of sessions is reached.
const REMOTE: &str = "remote";
/// The program that runs one.
const SESSION: &str = "session";
/// How long one that is turned away may take to be told why, in nanoseconds: others wait meanwhile.
const TELL_NS: u64 = 100 * time::MILLISECOND;

/// The server of sessions, and init.
struct Doorway {
    remote: remote::Client<Connection>,
    init: init::Client<Connection>,
}

impl Door for Doorway {
    type Session = OwnedHandle;

    fn accept(&mut self) -> Result<OwnedHandle, CallError<RemoteError>> {
        let ((), [session]) = self.remote.accept(&())?;
        Ok(session)
    }

    fn start(&mut self, session: &OwnedHandle) -> Result<(), CallError<InitError>> {
        let its_own = session
            .duplicate(Rights::CALL | Rights::TRANSFER)
            .map_err(CallError::Transport)?;
        let spawn = Spawn {
            program: Name::cut(SESSION),
            args: Args::new(),
            held: false,
        };
        self.init.spawn(&spawn, Some(its_own)).map(|_pid| ())
    }

    fn turn_away(&mut self, session: OwnedHandle, why: &str) {
        let connection = Connection::new(session.raw()).timeout(TELL_NS);
        // Who is not reached in time hears that the session has ended, and no more.
        let why = Chunk::try_from(why.as_bytes()).unwrap_or_default();
        let _ = stream::Client::new(connection).write(&why);
        let _ = remote::Client::new(connection).finish(&Status::Failed);
    }
}

/// Begins to let sessions in, in a thread of its own, if this program was given where they come from.
pub fn attend() {
    let (Some(remote), Some(init)) = (Connection::named(REMOTE), Connection::named(INIT)) else {
        return;
    };
    let mut doorway = Doorway {
        remote: remote::Client::new(remote),
        init: init::Client::new(init),
    };
    let attending = thread::spawn(move || {
        let Closed = door::attend(&mut doorway, &Time);
        sysroot::println!("no more sessions from elsewhere: their server is gone");
    });
    if let Err(error) = attending {
        sysroot::println!("no sessions from elsewhere: no thread: {}", error.text());
    }
}

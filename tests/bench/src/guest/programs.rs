//! Starting programs, and what it takes to start one and see it end.

use ipc::proto::init::{Args, Client, Ending, Name, Spawn};
use ipc::proto::system::INIT;
use sysroot::Connection;

use super::counter::Counter;
use super::failure::{Effect, Failure, ensure};
use super::rounds::Rounds;
use crate::figure::Figure;

/// Rounds: an end takes tens of thousands of instructions.
const ROUNDS: usize = 20;

/// init, as this program calls it.
struct Init(Client<Connection>);

impl Init {
    /// The connection that the program was given.
    fn connect() -> Result<Self, Failure> {
        let connection = Connection::named(INIT).ok_or(Failure::NotGiven(INIT))?;
        Ok(Self(Client::new(connection)))
    }

    /// Starts a program without an output.
    fn start(&mut self, program: &str) -> Result<u32, Failure> {
        let spawn = Spawn {
            program: Name::cut(program),
            args: Args::new(),
            held: false,
        };
        self.0.spawn(&spawn, None).map_err(Failure::Init)
    }

    /// Waits until it has ended well and its memory is back.
    fn wait(&mut self, pid: u32) -> Result<(), Failure> {
        let report = self.0.wait(&pid).map_err(Failure::Init)?;
        let is_good = report.ending == Ending::Exited && report.code == 0;
        ensure(is_good, Effect::ExitedWell)
    }
}

/// Measures a program that does nothing, from the request to start it to the answer that it has ended.
pub fn measure(counter: Counter) -> Result<(), Failure> {
    let mut init = Init::connect()?;
    let round = || {
        let (count, result) = counter.count(|| {
            let pid = init.start("bench-exit")?;
            init.wait(pid)
        });
        result.map(|()| count)
    };
    Rounds::collect(ROUNDS, round)?.print(Figure::Process);
    Ok(())
}

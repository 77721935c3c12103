//! Other programs, started and ended by init.

use core::fmt;

use ipc::proto::CallError;
use ipc::proto::init::{Args, Client, InitError, Name, Spawn};
use sysroot::{Connection, ExitCode, println, startup};

/// init, as a program calls it.
pub struct Init(Client<Connection>);

impl Init {
    /// The connection that the program was given.
    ///
    /// # Errors
    /// The exit code if it was given none, after a line that says so.
    pub fn connect() -> Result<Self, ExitCode> {
        let connection = Connection::named("init").ok_or_else(|| failure("it was not given"))?;
        Ok(Self(Client::new(connection)))
    }

    /// Starts a program without an output.
    ///
    /// # Errors
    /// The exit code if it does not start, after a line that says so.
    pub fn start(&mut self, program: &str, words: &[&str]) -> Result<u32, ExitCode> {
        let mut args = Args::new();
        for word in words {
            args.push(word).map_err(|_| failure("too long arguments"))?;
        }
        let program = Name::cut(program);
        let held = false;
        let spawn = Spawn {
            program,
            args,
            held,
        };
        self.0.spawn(&spawn, None).map_err(failure)
    }

    /// Ends a process, if it has not ended by itself.
    ///
    /// # Errors
    /// The exit code if it does not end, after a line that says so.
    pub fn kill(&mut self, pid: u32) -> Result<(), ExitCode> {
        match self.0.kill(&pid) {
            Ok(()) | Err(CallError::Service(InitError::Ended)) => Ok(()),
            Err(error) => Err(failure(error)),
        }
    }

    /// Waits until a process has ended and its memory is back.
    ///
    /// # Errors
    /// The exit code if init does not know of it, after a line that says so.
    pub fn wait(&mut self, pid: u32) -> Result<(), ExitCode> {
        self.0.wait(&pid).map(drop).map_err(failure)
    }
}

fn failure(error: impl fmt::Display) -> ExitCode {
    println!("{}: init: {error}", startup::name());
    ExitCode::FAILURE
}

//! What a session needs of the system: the handles that the program was given, and those that its threads share.

use ipc::abi::Handle;
use ipc::abi::startup::names;
use ipc::proto::system::INIT;
use sysroot::startup;

/// What a program's entry has to give to one with a session.
#[derive(Clone, Copy)]
pub enum Given {
    /// The stream that carries it, under its own name.
    Stream(&'static str),
    /// init.
    Init,
    /// profd.
    Profd,
    /// The system.
    System,
}

impl Given {
    /// Its name in the entry.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stream(name) => name,
            Self::Init => INIT,
            Self::Profd => "profd",
            Self::System => names::SYSTEM,
        }
    }

    /// The handle, if the program was given it.
    pub fn handle(self) -> Option<Handle> {
        startup::handle(self.name())
    }
}

/// What the threads of a session share.
#[derive(Clone, Copy)]
pub struct Wiring {
    /// The shell's own process id.
    pub pid: u32,
    /// The stream that carries the session; also its name towards others.
    pub stream: (&'static str, Handle),
    /// The terminal's endpoint, to make handles for programs.
    pub terminal: Handle,
    /// Notification that ends a wait of the thread that runs commands.
    pub wake: Handle,
    /// init.
    pub init: Handle,
    /// profd.
    pub profd: Handle,
    /// The system, to ask about memory and the like.
    pub system: Handle,
}

//! What a session needs of the system: the handles that the program was given, and those that its threads share.

use core::fmt::Write;

use ipc::abi::Handle;
use ipc::abi::startup::names;
use ipc::proto::profd::SessionName;
use ipc::proto::system::INIT;
use sysroot::startup;

/// Whose session it is.
#[derive(Clone, Copy, Debug)]
pub enum Whose {
    /// That of who sits at the console.
    Console,
    /// The one that came from elsewhere with this number.
    Remote(u32),
}

impl Whose {
    /// The stream that carries it.
    pub const fn stream(self) -> Given {
        Given::Stream(match self {
            Self::Console => "console",
            // Its starter gave it the session as its output.
            Self::Remote(_) => names::STDOUT,
        })
    }

    /// Its name towards others.
    pub fn name(self) -> SessionName {
        let mut name = SessionName::new();
        let written = match self {
            Self::Console => name.write_str("console"),
            Self::Remote(number) => write!(name, "{number}"),
        };
        // Either fits.
        debug_assert!(written.is_ok());
        name
    }
}

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
    /// Whose session it is.
    pub whose: Whose,
    /// The stream that carries it.
    pub stream: Handle,
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

//! What the two ends of a session tell each other, in order with the bytes of the terminal.
//!
//! | message | from | bytes |
//! |---|---|---|
//! | a shell, please | client | 1 |
//! | run this | client | 2, command |
//! | I am going | client | 3 |
//! | the command ended | server | 4, status |
//! | the session ends | server | 5, why |

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use ipc::proto::remote::{COMMAND_MAX, Status};

/// A command line: 1 to 1,024 bytes without control characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command(String);

/// Why a text is no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// There is nothing in it.
    Empty,
    /// It has more than [`COMMAND_MAX`] bytes.
    TooLong,
    /// It has a control character in it, such as an end of line.
    ControlCharacter,
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the command is empty"),
            Self::TooLong => write!(f, "the command has more than {COMMAND_MAX} bytes"),
            Self::ControlCharacter => {
                f.write_str("the command has a control character in it; it is one line of text")
            }
        }
    }
}

impl core::error::Error for CommandError {}

impl Command {
    /// Checks it.
    ///
    /// # Errors
    /// Says what is not allowed.
    pub fn new(text: &str) -> Result<Self, CommandError> {
        if text.trim().is_empty() {
            Err(CommandError::Empty)
        } else if text.len() > COMMAND_MAX {
            Err(CommandError::TooLong)
        } else if text.contains(char::is_control) {
            Err(CommandError::ControlCharacter)
        } else {
            Ok(Self(text.into()))
        }
    }
    /// The line.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a session is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Somebody at a terminal.
    Shell,
    /// One command.
    Exec(Command),
}

/// Why a session ended, other than that its command did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The other end said that it goes; to a client: its shell has ended.
    Left,
    /// Nothing was heard of the other end for too long.
    Lost,
    /// The server answers, and has the session no more.
    Forgotten,
    /// The server had nobody to run it.
    Failed,
    /// The other end did what this protocol does not know.
    Violated,
    /// The server had room at the hello, and the last place went to another since.
    Busy,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Left => "the session has ended",
            Self::Lost => "nothing was heard from the other side for too long",
            Self::Forgotten => {
                "the machine has this session no more: its network server has started again, or had not heard from here for too long"
            }
            Self::Failed => "the session could not be run",
            Self::Violated => "the other side does not keep to the protocol",
            Self::Busy => "the server has as many sessions as it can have",
        })
    }
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Control {
    Open(Purpose),
    Leave,
    Finished(Status),
    Ended(End),
}

impl Control {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Open(Purpose::Shell) => [1].into(),
            Self::Open(Purpose::Exec(command)) => {
                let mut bytes = Vec::from([2]);
                bytes.extend_from_slice(command.0.as_bytes());
                bytes
            }
            Self::Leave => [3].into(),
            Self::Finished(status) => [4, *status as u8].into(),
            Self::Ended(why) => {
                let why = match why {
                    End::Left => 0,
                    End::Lost => 1,
                    End::Failed => 2,
                    End::Violated => 3,
                    End::Busy => 4,
                    End::Forgotten => 5,
                };
                [5, why].into()
            }
        }
    }

    /// `None` if it is none.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        Some(match bytes {
            [1] => Self::Open(Purpose::Shell),
            [2, command @ ..] => {
                let text = core::str::from_utf8(command).ok()?;
                Self::Open(Purpose::Exec(Command::new(text).ok()?))
            }
            [3] => Self::Leave,
            [4, status] => Self::Finished(Status::from_number(*status)?),
            [5, 0] => Self::Ended(End::Left),
            [5, 1] => Self::Ended(End::Lost),
            [5, 2] => Self::Ended(End::Failed),
            [5, 3] => Self::Ended(End::Violated),
            [5, 4] => Self::Ended(End::Busy),
            [5, 5] => Self::Ended(End::Forgotten),
            _ => return None,
        })
    }
}

//! What the systematic cases need to know about a call: how it is made rightly, and what each of its arguments allows.

use ipc::abi::{Error, NOW, ObjectType, Rights, Syscall};

use crate::raw::Returned;
use crate::table::Kind;
use crate::world::World;

/// What a call must answer.
pub type Want = Result<(), Error>;

/// A value of an argument, what it is, and what the call must answer to it.
pub type Value = (&'static str, u64, Want);

/// What a handle argument makes of 0.
#[derive(Clone, Copy, Debug)]
pub enum Zero {
    /// It names nothing.
    Refused,
    /// It stands for the caller, and the call answers this.
    Caller(Want),
    /// It has cases of its own.
    Apart,
}

/// What an argument allows.
#[derive(Clone, Copy, Debug)]
pub enum Arg {
    /// A handle to an object of this type, or of any, with these rights.
    Handle {
        /// Type.
        kind: Option<ObjectType>,
        /// Rights, each of which is needed.
        rights: Rights,
        /// What 0 is.
        zero: Zero,
    },
    /// Rights: values beside those that no rights are.
    Rights(&'static [Value]),
    /// The tag of a message.
    Tag,
    /// A number: values at its boundaries.
    Number(&'static [Value]),
    /// A number of which every value is as good.
    Any,
    /// Tried in cases of its own, because the call does not return.
    Apart,
}

impl Arg {
    /// The kind that the table must have in this place; none if any will do.
    pub const fn kind(self) -> Option<Kind> {
        match self {
            Self::Handle { .. } => Some(Kind::Handle),
            Self::Rights(_) => Some(Kind::Rights),
            Self::Tag => Some(Kind::Tag),
            Self::Number(_) | Self::Any => Some(Kind::Number),
            Self::Apart => None,
        }
    }
}

/// A handle to an object of this type.
pub const fn handle(kind: ObjectType, rights: Rights) -> Arg {
    Arg::Handle {
        kind: Some(kind),
        rights,
        zero: Zero::Refused,
    }
}

/// As [`handle`], with something that 0 stands for.
pub const fn handle_or(kind: ObjectType, rights: Rights, zero: Zero) -> Arg {
    Arg::Handle {
        kind: Some(kind),
        rights,
        zero,
    }
}

/// A handle to whatever it is.
pub const fn any_handle(rights: Rights) -> Arg {
    Arg::Handle {
        kind: None,
        rights,
        zero: Zero::Refused,
    }
}

/// Deadlines that have passed, for a call that has to wait.
pub const PAST: Arg = Arg::Number(&[
    ("now", NOW, Err(Error::TimedOut)),
    ("the first nanosecond", 1, Err(Error::TimedOut)),
]);

/// Registers of a call that is right.
pub type Arguments = [u64; 6];

/// A call.
#[derive(Clone, Copy)]
pub struct Spec {
    /// Which.
    pub call: Syscall,
    /// Arguments to which it answers `answer`; none if it does not return.
    pub valid: Option<fn(&mut World) -> Arguments>,
    /// What it answers to them.
    pub answer: Want,
    /// What its arguments allow, in order.
    pub arguments: &'static [Arg],
    /// Undoes what a case may have done, whether it succeeded or not.
    pub undo: fn(&mut World, &Arguments, &Returned),
    /// What it answers about a process that has ended, in its first argument.
    pub dead: Option<Want>,
}

impl Spec {
    /// A call that succeeds with these arguments and leaves nothing but the handles it returns.
    pub const fn new(
        what: Syscall,
        valid: fn(&mut World) -> Arguments,
        arguments: &'static [Arg],
    ) -> Self {
        Self {
            call: what,
            valid: Some(valid),
            answer: Ok(()),
            arguments,
            undo: |_, _, _| (),
            dead: None,
        }
    }
    /// Answers this instead of success.
    pub const fn fails(mut self, error: Error) -> Self {
        self.answer = Err(error);
        self
    }
    /// Needs this to be undone.
    pub const fn undo(mut self, undo: fn(&mut World, &Arguments, &Returned)) -> Self {
        self.undo = undo;
        self
    }
    /// Answers this about a process that has ended.
    pub const fn dead(mut self, want: Want) -> Self {
        self.dead = Some(want);
        self
    }
    /// A call that does not return.
    pub const fn never(what: Syscall, arguments: &'static [Arg]) -> Self {
        Self {
            call: what,
            valid: None,
            answer: Ok(()),
            arguments,
            undo: |_, _, _| (),
            dead: None,
        }
    }
}

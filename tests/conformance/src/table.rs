//! The types of each call's arguments and results, from the one table: what decides which cases it must have.

use ipc::abi::{Handle, Rights, Syscall, Tag};

/// What an argument or a result is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A handle.
    Handle,
    /// Rights.
    Rights,
    /// The tag of a message.
    Tag,
    /// A number: of pages, bits, an address, a deadline.
    Number,
}

/// A type that the table uses.
trait Typed {
    const KIND: Kind;
}
impl Typed for Handle {
    const KIND: Kind = Kind::Handle;
}
impl Typed for Rights {
    const KIND: Kind = Kind::Rights;
}
impl Typed for Tag {
    const KIND: Kind = Kind::Tag;
}
impl Typed for u64 {
    const KIND: Kind = Kind::Number;
}

macro_rules! kinds {
    ($($number:literal $name:ident($($arg:ident: $arg_type:ty),*) -> ($($ret:ident: $ret_type:ty),*) $text:literal;)*) => {
        /// The kinds of a call's arguments.
        pub const fn arguments(what: Syscall) -> &'static [Kind] {
            match what { $(Syscall::$name => &[$(<$arg_type as Typed>::KIND),*],)* }
        }
        /// The kinds of its results.
        pub const fn results(what: Syscall) -> &'static [Kind] {
            match what { $(Syscall::$name => &[$(<$ret_type as Typed>::KIND),*],)* }
        }
    };
}
ipc::for_each_syscall!(kinds);

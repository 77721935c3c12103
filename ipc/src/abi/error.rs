//! Why a system call failed. Each error says who is at fault, so that a caller knows whether to mend its call, wait,
//! or give up on its peer.

/// Declares the error enum, its numbers and its texts in one place.
macro_rules! errors {
    ($($(#[$doc:meta])* $number:literal $name:ident = $text:literal;)*) => {
        /// The status of a system call that did not succeed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u64)]
        pub enum Error { $($(#[$doc])* $name = $number,)* }

        impl Error {
            /// Every error, for tables and tests.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The error with this number; `None` for zero (success) and for numbers that are not in the table.
            #[must_use]
            pub const fn from_raw(raw: u64) -> Option<Self> {
                match raw { $($number => Some(Self::$name),)* _ => None }
            }

            /// One line for a person.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

errors! {
    // The caller's call is wrong.
    /// No such system call.
    1 BadSyscall = "no such system call";
    /// The handle names nothing in the caller's table, or what it named is gone.
    2 BadHandle = "no such handle";
    /// The handle names an object of another type.
    3 WrongType = "handle of the wrong type";
    /// The handle does not carry a right that the call needs.
    4 MissingRight = "the handle lacks a right that this needs";
    /// An argument is outside what the call allows.
    5 BadArgument = "argument out of range";
    /// An address is not in the user half, or its range overflows.
    6 BadAddress = "address out of range";
    /// An address or a size is not a multiple of the page size.
    7 Misaligned = "not a multiple of the page size";
    /// The range is already mapped, in part or whole.
    8 Overlap = "range already mapped";
    /// The range is not mapped.
    9 NotMapped = "range not mapped";
    /// Nothing to reply to: the thread serves no call.
    10 NoReply = "no call to reply to";
    /// The message or its buffer is too large.
    11 TooLarge = "message too large";

    // A resource has run out.
    /// The process's memory quota is used up.
    20 QuotaExceeded = "memory quota used up";
    /// The machine, or one of the kernel's pools, has none left.
    21 OutOfMemory = "out of memory or kernel objects";
    /// A fixed limit of the object is reached.
    22 LimitReached = "limit reached";

    // The peer, or the time.
    /// The deadline passed.
    30 TimedOut = "timed out";
    /// The peer died, dropped the call, or closed its end.
    31 PeerDied = "the other side is gone";
    /// The object is in use in a way that excludes this.
    32 Busy = "busy";
    /// The object's state does not allow this now.
    33 WrongState = "not possible in this state";
    /// The machine or this version cannot do that.
    34 Unsupported = "not supported here";
    /// Nothing at that index.
    35 NotFound = "not found";
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.text())
    }
}

impl core::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip_and_zero_is_success() {
        assert_eq!(Error::from_raw(0), None);
        for &error in Error::ALL {
            assert_eq!(Error::from_raw(error as u64), Some(error));
        }
    }
}

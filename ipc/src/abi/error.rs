//! Why a system call failed. Each error says who is at fault, so that a caller knows whether to mend its call, wait,
//! or give up on its peer.

use super::numbered::numbered;

numbered! {
    /// The status of a system call that did not succeed. Success is 0, which no error is.
    #[derive(Hash)]
    pub enum Error: u64, text {
        // The caller's call is wrong.
        /// No such system call.
        BadSyscall = 1 => "no such system call",
        /// The handle names nothing in the caller's table, or what it named is gone.
        BadHandle = 2 => "no such handle",
        /// The handle names an object of another type.
        WrongType = 3 => "handle of the wrong type",
        /// The handle does not carry a right that the call needs.
        MissingRight = 4 => "the handle lacks a right that this needs",
        /// An argument is outside what the call allows.
        BadArgument = 5 => "argument out of range",
        /// An address is not in the user half, or its range overflows.
        BadAddress = 6 => "address out of range",
        /// An address or a size is not a multiple of the page size.
        Misaligned = 7 => "not a multiple of the page size",
        /// The range is already mapped, in part or whole.
        Overlap = 8 => "range already mapped",
        /// The range is not mapped.
        NotMapped = 9 => "range not mapped",
        /// Nothing to reply to: the thread serves no call.
        NoReply = 10 => "no call to reply to",
        /// The message or its buffer is too large.
        TooLarge = 11 => "message too large",

        // A resource has run out.
        /// The process's memory quota is used up.
        QuotaExceeded = 20 => "memory quota used up",
        /// The machine, or one of the kernel's pools, has none left.
        OutOfMemory = 21 => "out of memory or kernel objects",
        /// A fixed limit of the object is reached.
        LimitReached = 22 => "limit reached",

        // The peer, or the time.
        /// The deadline passed.
        TimedOut = 30 => "timed out",
        /// The peer died, dropped the call, or closed its end.
        PeerDied = 31 => "the other side is gone",
        /// The object is in use in a way that excludes this.
        Busy = 32 => "busy",
        /// The object's state does not allow this now.
        WrongState = 33 => "not possible in this state",
        /// The machine or this version cannot do that.
        Unsupported = 34 => "not supported here",
        /// Nothing at that index.
        NotFound = 35 => "not found",
    }
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
    fn zero_is_success() {
        assert_eq!(Error::from_raw(0), None);
    }
}

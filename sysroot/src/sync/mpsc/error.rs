//! Why a channel gives or takes nothing: the same types as in `std::sync::mpsc`.

use core::error::Error;
use core::fmt;

/// The receiver is gone; here is the value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

/// The value was not sent; here it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// There is no room now.
    Full(T),
    /// The receiver is gone.
    Disconnected(T),
}

/// All senders are gone, and nothing is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvError;

/// Nothing was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// Nothing is there now.
    Empty,
    /// All senders are gone, and nothing is left.
    Disconnected,
}

/// Nothing was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecvTimeoutError {
    /// Nothing came in time.
    Timeout,
    /// All senders are gone, and nothing is left.
    Disconnected,
}

const NO_RECEIVER: &str = "the receiver of the channel is gone";
const NO_SENDER: &str = "the senders of the channel are gone";

impl<T> SendError<T> {
    const fn text(&self) -> &'static str {
        NO_RECEIVER
    }
}

impl<T> TrySendError<T> {
    const fn text(&self) -> &'static str {
        match self {
            Self::Full(_) => "the channel is full",
            Self::Disconnected(_) => NO_RECEIVER,
        }
    }
}

impl RecvError {
    const fn text(self) -> &'static str {
        NO_SENDER
    }
}

impl TryRecvError {
    const fn text(self) -> &'static str {
        match self {
            Self::Empty => "the channel is empty",
            Self::Disconnected => NO_SENDER,
        }
    }
}

impl RecvTimeoutError {
    const fn text(self) -> &'static str {
        match self {
            Self::Timeout => "nothing came in time",
            Self::Disconnected => NO_SENDER,
        }
    }
}

// A value need not be printable for its error to be, so these are not derived.
impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SendError(..)")
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Disconnected(_) => "Disconnected(..)",
        })
    }
}

macro_rules! errors {
    ($($error:ty $(, $value:ident)?;)*) => {
        $(
            impl $(<$value>)? fmt::Display for $error {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str(self.text())
                }
            }
            impl $(<$value>)? Error for $error {}
        )*
    };
}
errors! {
    SendError<T>, T;
    TrySendError<T>, T;
    RecvError;
    TryRecvError;
    RecvTimeoutError;
}

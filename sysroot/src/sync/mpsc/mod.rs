//! Channels: many senders, one receiver, first in first out. The shape is that of `std::sync::mpsc`.
//!
//! A channel is a queue behind one mutex, with two conditions: something came, and there is room. [`channel`] has room for
//! whatever memory holds and its sends never wait; [`sync_channel`] has a bound, and with a bound of 0 a send returns once its
//! value was received. What was sent is in order for each sender. The other side's end is seen at once, by a thread that
//! waits, too.

mod error;
mod state;

pub use error::{RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};

use alloc::sync::Arc;
use core::marker::PhantomData;
use core::time::Duration;

use state::Shared;

/// A channel without a bound: a send takes memory, and does not wait.
#[must_use]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared::new(None));
    (Sender(Arc::clone(&shared)), Receiver::new(shared))
}

/// A channel that holds at most `bound` values; further sends wait until one was received. With 0, each send waits for its own.
#[must_use]
pub fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Receiver<T>) {
    let shared = Arc::new(Shared::new(Some(bound)));
    (SyncSender(Arc::clone(&shared)), Receiver::new(shared))
}

/// The sending side of [`channel`].
#[derive(Debug)]
pub struct Sender<T>(Arc<Shared<T>>);

impl<T> Sender<T> {
    /// Sends a value. Does not wait.
    ///
    /// # Errors
    /// The value, if the receiver is gone.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.0.send(value)
    }
}

/// The sending side of [`sync_channel`].
#[derive(Debug)]
pub struct SyncSender<T>(Arc<Shared<T>>);

impl<T> SyncSender<T> {
    /// Sends a value, and waits for room.
    ///
    /// # Errors
    /// The value, if the receiver is gone.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        self.0.send(value)
    }

    /// Sends a value if there is room now; with a bound of 0, if the receiver waits.
    ///
    /// # Errors
    /// The value, if there is no room or the receiver is gone.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        self.0.try_send(value)
    }
}

/// Both kinds of sender are counted.
macro_rules! counted {
    ($($sender:ident)*) => {
        $(
            impl<T> Clone for $sender<T> {
                fn clone(&self) -> Self {
                    self.0.add_sender();
                    Self(Arc::clone(&self.0))
                }
            }

            impl<T> Drop for $sender<T> {
                fn drop(&mut self) {
                    self.0.remove_sender();
                }
            }
        )*
    };
}
counted!(Sender SyncSender);

/// The receiving side. One thread has it.
#[derive(Debug)]
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// Two threads cannot receive at once, as in `std`.
    not_sync: PhantomData<core::cell::Cell<()>>,
}

impl<T> Receiver<T> {
    const fn new(shared: Arc<Shared<T>>) -> Self {
        Self {
            shared,
            not_sync: PhantomData,
        }
    }

    /// Waits for a value.
    ///
    /// # Errors
    /// All senders are gone, and nothing is left of what they sent.
    pub fn recv(&self) -> Result<T, RecvError> {
        self.shared.receive().ok_or(RecvError)
    }

    /// A value that is there now.
    ///
    /// # Errors
    /// There is none, or there will never be one again.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.shared.try_receive()
    }

    /// Waits for a value, but not longer than `timeout`.
    ///
    /// # Errors
    /// None came in time, or none will ever come.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.shared.receive_within(timeout)
    }

    /// Values as they come, until all senders are gone.
    pub const fn iter(&self) -> Iter<'_, T> {
        Iter(self)
    }

    /// The values that are there now.
    pub const fn try_iter(&self) -> TryIter<'_, T> {
        TryIter(self)
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.shared.remove_receiver();
    }
}

/// See [`Receiver::iter`].
#[derive(Debug)]
pub struct Iter<'a, T>(&'a Receiver<T>);

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

/// See [`Receiver::try_iter`].
#[derive(Debug)]
pub struct TryIter<'a, T>(&'a Receiver<T>);

impl<T> Iterator for TryIter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.try_recv().ok()
    }
}

impl<'a, T> IntoIterator for &'a Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// See [`Receiver::iter`]; this one has the receiver.
#[derive(Debug)]
pub struct IntoIter<T>(Receiver<T>);

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok()
    }
}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self)
    }
}

//! What both sides of a channel share.

use alloc::collections::VecDeque;
use core::time::Duration;

use super::{RecvTimeoutError, SendError, TryRecvError, TrySendError};
use crate::sync::{Condvar, Mutex};

/// A channel.
#[derive(Debug)]
pub struct Shared<T> {
    state: Mutex<State<T>>,
    /// A value came, or the last sender left.
    came: Condvar,
    /// A value was received, or the receiver left.
    went: Condvar,
}

#[derive(Debug)]
struct State<T> {
    queue: VecDeque<T>,
    bound: Option<usize>,
    senders: usize,
    has_receiver: bool,
    /// The receiver waits for a value.
    receiving: bool,
    /// Values sent since the beginning, and received.
    sent: u64,
    received: u64,
}

impl<T> State<T> {
    /// Whether a value may be queued. With a bound of 0 one may be, whose sender then waits until it was received.
    fn has_room(&self) -> bool {
        self.bound
            .is_none_or(|bound| self.queue.len() < bound.max(1))
    }

    /// Queues a value; its number.
    fn push(&mut self, value: T) -> u64 {
        self.queue.push_back(value);
        self.sent += 1;
        self.sent
    }

    fn pop(&mut self) -> Option<T> {
        let value = self.queue.pop_front()?;
        self.received += 1;
        Some(value)
    }

    /// Whether the receiver may still hope.
    fn is_pending(&self) -> bool {
        self.queue.is_empty() && self.senders > 0
    }
}

impl<T> Shared<T> {
    /// A channel with one sender and its receiver.
    pub const fn new(bound: Option<usize>) -> Self {
        Self {
            state: Mutex::new(State {
                queue: VecDeque::new(),
                bound,
                senders: 1,
                has_receiver: true,
                receiving: false,
                sent: 0,
                received: 0,
            }),
            came: Condvar::new(),
            went: Condvar::new(),
        }
    }

    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        let state = self.state.lock();
        let mut state = self
            .went
            .wait_while(state, |state| state.has_receiver && !state.has_room());
        if !state.has_receiver {
            return Err(SendError(value));
        }
        let number = state.push(value);
        let is_handed_over = state.bound == Some(0);
        drop(state);
        self.came.notify_one();
        if !is_handed_over {
            return Ok(());
        }
        let state = self.state.lock();
        let mut state = self
            .went
            .wait_while(state, |state| state.has_receiver && state.received < number);
        if state.received >= number {
            return Ok(());
        }
        // The receiver left without it, so it is the only one in the queue.
        state
            .queue
            .pop_front()
            .map_or(Ok(()), |value| Err(SendError(value)))
    }

    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        let mut state = self.state.lock();
        if !state.has_receiver {
            return Err(TrySendError::Disconnected(value));
        }
        let would_wait = state.bound == Some(0) && !state.receiving;
        if would_wait || !state.has_room() {
            return Err(TrySendError::Full(value));
        }
        state.push(value);
        drop(state);
        self.came.notify_one();
        Ok(())
    }

    /// `None` if nothing will ever come again.
    pub fn receive(&self) -> Option<T> {
        let mut state = self.state.lock();
        state.receiving = true;
        let mut state = self.came.wait_while(state, |state| state.is_pending());
        state.receiving = false;
        let value = state.pop();
        drop(state);
        self.made_room(value)
    }

    pub fn receive_within(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        let mut state = self.state.lock();
        state.receiving = true;
        let (mut state, _) = self
            .came
            .wait_timeout_while(state, timeout, |state| state.is_pending());
        state.receiving = false;
        let nothing = if state.senders > 0 {
            RecvTimeoutError::Timeout
        } else {
            RecvTimeoutError::Disconnected
        };
        let value = state.pop();
        drop(state);
        self.made_room(value).ok_or(nothing)
    }

    pub fn try_receive(&self) -> Result<T, TryRecvError> {
        let mut state = self.state.lock();
        let nothing = if state.senders > 0 {
            TryRecvError::Empty
        } else {
            TryRecvError::Disconnected
        };
        let value = state.pop();
        drop(state);
        self.made_room(value).ok_or(nothing)
    }

    /// Tells the senders that a value was received, if one was.
    fn made_room(&self, value: Option<T>) -> Option<T> {
        let value = value?;
        // Those that wait for room and those that wait for their own value are one queue.
        self.went.notify_all();
        Some(value)
    }

    pub fn add_sender(&self) {
        self.state.lock().senders += 1;
    }

    pub fn remove_sender(&self) {
        let mut state = self.state.lock();
        state.senders -= 1;
        let was_last = state.senders == 0;
        drop(state);
        if was_last {
            self.came.notify_all();
        }
    }

    pub fn remove_receiver(&self) {
        let mut state = self.state.lock();
        state.has_receiver = false;
        let given_back = state.bound == Some(0);
        // Nobody will receive these. They are dropped without the lock, which they may want.
        let queue = if given_back {
            VecDeque::new()
        } else {
            core::mem::take(&mut state.queue)
        };
        drop(state);
        drop(queue);
        self.went.notify_all();
    }
}

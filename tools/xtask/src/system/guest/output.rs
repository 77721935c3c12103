//! What a machine has printed: read by threads of its own, and waited for.

use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::super::screen::Screen;
use super::GuestError;

/// How long a guest that prints all the time is seldom silent.
const QUIET: Duration = Duration::from_millis(300);

/// Shared with the threads that read it.
#[derive(Default)]
pub struct Output {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    screen: Screen,
    errors: Vec<u8>,
    /// Streams that are still read.
    open: u8,
}

impl Output {
    /// Shows on the screen what comes from this stream.
    pub fn show(self: &Arc<Self>, stream: impl Read + Send + 'static) {
        self.read(stream, |state, bytes| state.screen.feed(bytes));
    }

    /// Keeps the messages that come from this stream.
    pub fn keep_errors(self: &Arc<Self>, stream: impl Read + Send + 'static) {
        self.read(stream, |state, bytes| state.errors.extend(bytes));
    }

    /// Reads a stream to its end, or to an error, which is an end too.
    fn read(
        self: &Arc<Self>,
        mut stream: impl Read + Send + 'static,
        take: impl Fn(&mut State, &[u8]) + Send + 'static,
    ) {
        self.lock().open += 1;
        let output = Arc::clone(self);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(len @ 1..) = stream.read(&mut buffer) {
                take(&mut output.lock(), &buffer[..len]);
                output.changed.notify_all();
            }
            output.lock().open -= 1;
            output.changed.notify_all();
        });
    }

    /// Whether every stream has been read to its end.
    pub fn is_over(&self) -> bool {
        self.lock().open == 0
    }

    /// Everything so far.
    pub fn transcript(&self) -> String {
        self.lock().transcript()
    }

    /// Waits until `found` says where in the new text something lies, as (start, end); consumes it, and returns what came before.
    pub fn wait_until(
        &self,
        deadline: Instant,
        waiting_for: &str,
        found: impl Fn(&[u8]) -> Option<(usize, usize)>,
    ) -> Result<String, GuestError> {
        let mut state = self.lock();
        loop {
            let new = state.screen.new_text();
            if let Some((start, end)) = found(&new) {
                state.screen.consume(end);
                return Ok(String::from_utf8_lossy(&new[..start]).into_owned());
            }
            let waiting_for = waiting_for.to_owned();
            let left = deadline.saturating_duration_since(Instant::now());
            if state.open == 0 {
                let transcript = state.transcript();
                return Err(GuestError::Ended {
                    waiting_for,
                    transcript,
                });
            }
            if left.is_zero() {
                let transcript = state.transcript();
                return Err(GuestError::Timeout {
                    waiting_for,
                    transcript,
                });
            }
            let woken = self.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until nothing has come for a while; consumes and returns what came before.
    pub fn quiet(&self, deadline: Instant) -> Result<String, GuestError> {
        let mut before = self.lock().screen.new_text();
        loop {
            thread::sleep(QUIET);
            let mut state = self.lock();
            let now = state.screen.new_text();
            if now.len() == before.len() {
                state.screen.consume(now.len());
                return Ok(String::from_utf8_lossy(&now).into_owned());
            }
            before = now;
            if Instant::now() >= deadline {
                let transcript = state.transcript();
                return Err(GuestError::Timeout {
                    waiting_for: "the end of output".into(),
                    transcript,
                });
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A reader that panicked leaves bytes that are still worth showing.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn transcript(&self) -> String {
        let text = self.screen.text();
        let (text, errors) = (
            String::from_utf8_lossy(&text).into_owned(),
            String::from_utf8_lossy(&self.errors),
        );
        if errors.is_empty() {
            text
        } else {
            format!("{text}\n(stderr)\n{errors}")
        }
    }
}

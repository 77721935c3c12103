//! One session as its user sees it.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use ipc::proto::Parked;
use ipc::proto::remote::{Opened, Status};
use ipc::proto::stream::{CHUNK_MAX, Chunk, Read, StreamError};
use sysroot::Port;

use crate::script::Step;

/// A session that was begun.
pub struct Session {
    /// What its program is told.
    pub opened: Opened,
    steps: VecDeque<Step>,
    /// Shown, and not looked at by a step.
    unseen: String,
    /// All that was shown.
    pub shown: String,
    /// Typed, and not read.
    typed: VecDeque<u8>,
    /// The program's call that waits for what is typed.
    read: Option<(Parked<Port, Read>, usize)>,
    /// Its user went away.
    hung_up: bool,
    /// How its program says it ended.
    pub status: Option<Status>,
    /// Its program is gone.
    pub over: bool,
}

impl Session {
    /// One of which nothing was seen.
    pub fn new(opened: Opened, steps: Vec<Step>) -> Self {
        Self {
            opened,
            steps: steps.into(),
            unseen: String::new(),
            shown: String::new(),
            typed: VecDeque::new(),
            read: None,
            hung_up: false,
            status: None,
            over: false,
        }
    }

    /// Its program wrote this.
    pub fn show(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        self.unseen.push_str(&text);
        self.shown.push_str(&text);
    }

    /// Its program waits for at most so many bytes.
    pub fn wait(&mut self, read: Parked<Port, Read>, most: usize) {
        self.read = Some((read, most));
    }

    /// Does the steps that can be done now; `last`: the sessions that began later are over. Answers how many more are to begin.
    pub fn go_on(&mut self, last: bool, port: &mut Port) -> usize {
        let mut begin = 0;
        while let Some(step) = self.steps.pop_front() {
            match step {
                Step::See(ref text) => match self.unseen.find(text.as_str()) {
                    Some(at) => drop(self.unseen.drain(..at + text.len())),
                    None => {
                        self.steps.push_front(step);
                        break;
                    }
                },
                Step::Type(bytes) => self.typed.extend(bytes),
                Step::Next => begin += 1,
                Step::Later if last => {}
                Step::Later => {
                    self.steps.push_front(step);
                    break;
                }
                Step::HangUp => self.hung_up = true,
            }
        }
        self.answer(port);
        begin
    }

    /// Answers the program's read, if there is anything to answer. A program that is gone needs no answer.
    fn answer(&mut self, port: &mut Port) {
        let Some((read, most)) = self.read.take() else {
            return;
        };
        if self.is_deaf() {
            let _ = read.refuse(port, &StreamError::Closed);
            return;
        }
        match self.typed(most) {
            typed if typed.is_empty() => self.read = Some((read, most)),
            typed => drop(read.answer(port, &typed)),
        }
    }

    /// Takes what was typed, at most so many bytes.
    pub fn typed(&mut self, most: usize) -> Chunk {
        let most = most.min(CHUNK_MAX).min(self.typed.len());
        let bytes: Vec<u8> = self.typed.drain(..most).collect();
        Chunk::try_from(&bytes[..]).unwrap_or_default()
    }

    /// Whether nothing comes from its user any more, nor goes there.
    pub fn is_deaf(&self) -> bool {
        self.hung_up || self.status.is_some()
    }

    /// Whether its user did all that there was to do.
    pub fn is_done(&self) -> bool {
        self.over && self.steps.is_empty()
    }
}

//! The other end of every session.

use alloc::string::String;
use alloc::vec::Vec;

use ipc::proto::remote::{Accept, Describe, Finish, Opened, Peer, RemoteError, Service, Status};
use ipc::proto::stream::{self, Chunk, StreamError};
use ipc::proto::{Call, Served};
use sysroot::{OwnedHandle, Port, println};

use crate::script::Script;
use crate::session::Session;

/// The sessions; the badge of each is its place, from 1.
#[derive(Default)]
pub struct Server {
    sessions: Vec<Session>,
    /// Sessions that are to begin.
    next: usize,
}

impl Server {
    /// Has one more; answers its badge.
    pub fn begin(&mut self, script: &Script) -> u64 {
        let number = self.sessions.len() as u32 + 1;
        let opened = Opened {
            number,
            role: script.role,
            purpose: script.purpose.clone(),
            peer: Peer {
                address: [127, 0, 0, 1],
                port: number as u16,
            },
        };
        self.sessions
            .push(Session::new(opened, script.steps.clone()));
        number.into()
    }

    /// How many more are to begin since the last time.
    pub fn begin_next(&mut self) -> usize {
        core::mem::take(&mut self.next)
    }

    /// A session's program is gone.
    pub fn closed(&mut self, badge: u64, port: &mut Port) {
        if let Ok(session) = self.session(badge) {
            session.over = true;
        }
        self.go_on(port);
    }

    /// Whether every session is.
    pub fn is_over(&self) -> bool {
        self.sessions.iter().all(|session| session.over)
    }

    /// Whether every user did all that there was to do.
    pub fn all_done(&self) -> bool {
        self.sessions.iter().all(Session::is_done)
    }

    /// Tells what each showed and how it ended.
    pub fn tell(&self) {
        for session in &self.sessions {
            println!("-- session {} --", session.opened.number);
            println!("{}", visible(&session.shown));
            println!(
                "-- {} --",
                match session.status {
                    Some(Status::Success) => "success",
                    Some(Status::Failed) => "failed",
                    Some(Status::Interrupted) => "interrupted",
                    None => "no status",
                }
            );
        }
    }

    fn session(&mut self, badge: u64) -> Result<&mut Session, RemoteError> {
        let place = (badge as usize).checked_sub(1);
        let session = place.and_then(|place| self.sessions.get_mut(place));
        session.ok_or(RemoteError::NotYours)
    }

    /// Lets every user go on.
    fn go_on(&mut self, port: &mut Port) {
        for at in 0..self.sessions.len() {
            let mut later = self.sessions.iter().skip(at + 1);
            let last = later.all(|session| session.over);
            if let Some(session) = self.sessions.get_mut(at) {
                self.next += session.go_on(last, port);
            }
        }
    }
}

impl Service<Port> for Server {
    fn accept(&mut self, _: Call<'_, Port, Accept>, (): ()) -> Served<Accept, OwnedHandle> {
        Err(RemoteError::NotYours)
    }

    fn describe(
        &mut self,
        call: Call<'_, Port, Describe>,
        (): (),
    ) -> Served<Describe, OwnedHandle> {
        let opened = self.session(call.badge())?.opened.clone();
        Ok(call.reply(opened))
    }

    fn finish(
        &mut self,
        mut call: Call<'_, Port, Finish>,
        status: Status,
    ) -> Served<Finish, OwnedHandle> {
        let session = self.session(call.badge())?;
        if session.is_deaf() {
            return Err(RemoteError::Over);
        }
        session.status = Some(status);
        self.go_on(call.responder());
        Ok(call.reply(()))
    }
}

impl stream::Service<Port> for Server {
    fn write(
        &mut self,
        mut call: Call<'_, Port, stream::Write>,
        bytes: Chunk,
    ) -> Served<stream::Write, OwnedHandle> {
        let session = self
            .session(call.badge())
            .map_err(|_| StreamError::Closed)?;
        if session.is_deaf() {
            return Err(StreamError::Closed);
        }
        session.show(&bytes);
        self.go_on(call.responder());
        Ok(call.reply(()))
    }

    fn read(
        &mut self,
        mut call: Call<'_, Port, stream::Read>,
        most: u16,
    ) -> Served<stream::Read, OwnedHandle> {
        let badge = call.badge();
        self.go_on(call.responder());
        let session = self.session(badge).map_err(|_| StreamError::Closed)?;
        if session.is_deaf() {
            return Err(StreamError::Closed);
        }
        let typed = session.typed(most.into());
        if !typed.is_empty() {
            return Ok(call.reply(typed));
        }
        let (read, outcome) = call.park().map_err(|_| StreamError::Busy)?;
        session.wait(read, most.into());
        Ok(outcome)
    }

    fn flush(
        &mut self,
        call: Call<'_, Port, stream::Flush>,
        (): (),
    ) -> Served<stream::Flush, OwnedHandle> {
        Ok(call.reply(()))
    }
}

/// A text with its control characters as they are typed, but for line feeds: `^M` for a carriage return.
fn visible(text: &str) -> String {
    let mut visible = String::new();
    for character in text.chars() {
        match character {
            '\0'..='\t' | '\u{b}'..' ' => {
                visible.push('^');
                visible.extend(char::from_u32(character as u32 | 0x40));
            }
            character => visible.push(character),
        }
    }
    visible
}

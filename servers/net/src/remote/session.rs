//! One session, and the calls that wait for it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::SocketAddrV4;

use ipc::proto::remote::{Opened, Peer, Purpose, Role};
use ipc::proto::stream::{CHUNK_MAX, Chunk, Flush, Read, StreamError, Write};
use ipc::proto::{Parked, Responder, Text};
use remote_shell::{Instant, Server, Stream};

/// Calls of a kind that can wait for a session: its process has few threads.
pub(super) const WAITING_MAX: usize = 8;

/// A write of which a part is still here.
pub(super) struct Writer<P: Responder> {
    pub call: Parked<P, Write>,
    pub bytes: Chunk,
    pub taken: usize,
}

pub(super) struct Session<P: Responder> {
    pub opened: Opened,
    stream: Stream,
    /// Of the handle that the shell has; `None` while it has none.
    pub badge: Option<u64>,
    /// By when it must have one.
    pub until: Instant,
    /// The other side has left, or the session was finished.
    pub is_over: bool,
    pub reader: Option<(Parked<P, Read>, usize)>,
    pub writers: VecDeque<Writer<P>>,
    pub flushers: Vec<Parked<P, Flush>>,
}

impl<P: Responder> Session<P> {
    pub(super) fn new(
        number: u32,
        role: Role,
        purpose: &remote_shell::Purpose,
        peer: SocketAddrV4,
        until: Instant,
    ) -> Self {
        let (purpose, stream) = match purpose {
            remote_shell::Purpose::Shell => (Purpose::Shell, Stream::Text),
            remote_shell::Purpose::Exec(command) => {
                // Nothing is cut: a command is checked against the same limit.
                let line = Text::cut(command.as_str());
                (Purpose::Exec(line), Stream::Binary)
            }
        };
        let opened = Opened {
            number,
            role,
            purpose,
            peer: Peer {
                address: peer.ip().octets(),
                port: peer.port(),
            },
        };
        Self {
            opened,
            stream,
            badge: None,
            until,
            is_over: false,
            reader: None,
            writers: VecDeque::new(),
            flushers: Vec::new(),
        }
    }

    pub(super) const fn number(&self) -> u32 {
        self.opened.number
    }

    /// Reads what has come, up to `most` bytes.
    pub(super) fn read(&self, server: &mut Server, now: Instant, most: usize) -> Chunk {
        let mut buffer = [0; CHUNK_MAX];
        let most = most.min(CHUNK_MAX);
        let length = server.read(now, self.number(), &mut buffer[..most]);
        // What fits the buffer fits a chunk.
        Chunk::try_from(&buffer[..length]).unwrap_or_default()
    }

    /// Writes what there is room for; how much of it.
    pub(super) fn write(&self, server: &mut Server, bytes: &[u8]) -> usize {
        server.write(self.number(), self.stream, bytes)
    }

    /// Answers the calls that need not wait any more. Who is gone needs no answer.
    pub(super) fn go_on(&mut self, server: &mut Server, responder: &mut P, now: Instant) {
        if self.is_over {
            let closed = &StreamError::Closed;
            if let Some((call, _)) = self.reader.take() {
                let _ = call.refuse(responder, closed);
            }
            for writer in self.writers.drain(..) {
                let _ = writer.call.refuse(responder, closed);
            }
        }
        if let Some((call, most)) = self.reader.take() {
            let bytes = self.read(server, now, most);
            if bytes.is_empty() {
                self.reader = Some((call, most));
            } else {
                let _ = call.answer(responder, &bytes);
            }
        }
        while let Some(mut writer) = self.writers.pop_front() {
            writer.taken += self.write(server, &writer.bytes[writer.taken..]);
            if writer.taken < writer.bytes.len() {
                self.writers.push_front(writer);
                break;
            }
            let _ = writer.call.answer(responder, &());
        }
        if self.is_flushed(server) {
            for call in self.flushers.drain(..) {
                let _ = call.answer(responder, &());
            }
        }
    }

    /// Whether the other side has all that was written.
    pub(super) fn is_flushed(&self, server: &mut Server) -> bool {
        self.writers.is_empty() && server.is_flushed(self.number())
    }
}

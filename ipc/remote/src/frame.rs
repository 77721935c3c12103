//! What is inside of a sealed packet: an acknowledgement, and at most one chunk of a message.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | the position of the first chunk that is missing; all before it have arrived |
//! | 8 | 4 | bit N: the chunk N + 1 behind that one has arrived |
//! | 12 | 1 | how many chunks from the missing one on there is room for |
//! | 13 | 1 | stream type of the chunk: 0 no chunk, 1 text, 2 binary, 3 control |
//! | 14 | 2 | index of the chunk in its message |
//! | 16 | 2 | count of the message's chunks |
//! | 18 | 8 | sequence number of the message |
//! | 26 | | bytes of the chunk, at least one |
//!
//! A message's sequence number is the position of its first chunk among all of its direction, from 0 on. So chunk `index`
//! is at `sequence + index`, and chunks of all messages are acknowledged by one row of numbers.

use crate::bytes::{Reader, Writer};
use crate::packet::{DATAGRAM_MAX, HEADER};
use crate::seal::TAG;

/// Bytes before the chunk.
pub(crate) const FRAME_HEADER: usize = 26;
/// Most bytes of a chunk.
pub(crate) const CHUNK_MAX: usize = DATAGRAM_MAX - HEADER - FRAME_HEADER - TAG;
/// Most bytes of a frame.
pub(crate) const FRAME_MAX: usize = FRAME_HEADER + CHUNK_MAX;
/// Chunks that an acknowledgement can speak of, the missing one included.
pub(crate) const SPAN: usize = 33;

/// What the bytes of a message are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stream {
    /// For a terminal, or from one: UTF-8, with its control characters.
    Text = 1,
    /// A command's output as it is.
    Binary = 2,
    /// For the other end itself. Not to be written by who uses a session.
    Control = 3,
}

/// What has arrived, and how much more may come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ack {
    /// Position of the first chunk that is missing.
    pub next: u64,
    /// Bit N: that at `next + 1 + N` has arrived.
    pub behind: u32,
    /// Chunks from `next` on for which there is room.
    pub window: u8,
}

/// A part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunk<'a> {
    pub stream: Stream,
    pub sequence: u64,
    pub index: u16,
    pub count: u16,
    pub bytes: &'a [u8],
}

/// All of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub ack: Ack,
    pub chunk: Option<Chunk<'a>>,
}

impl<'a> Frame<'a> {
    /// Takes a frame apart. `None` if it is none.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let ack = Ack {
            next: reader.u64()?,
            behind: reader.u32()?,
            window: reader.u8()?,
        };
        let stream = match reader.u8()? {
            0 => None,
            1 => Some(Stream::Text),
            2 => Some(Stream::Binary),
            3 => Some(Stream::Control),
            _ => return None,
        };
        let (index, count, sequence) = (reader.u16()?, reader.u16()?, reader.u64()?);
        let bytes = reader.rest();
        let Some(stream) = stream else {
            let empty = (index, count, sequence, bytes.len()) == (0, 0, 0, 0);
            return empty.then_some(Self { ack, chunk: None });
        };
        let whole = index < count && !bytes.is_empty() && bytes.len() <= CHUNK_MAX;
        let chunk = Chunk {
            stream,
            sequence,
            index,
            count,
            bytes,
        };
        whole.then_some(Self {
            ack,
            chunk: Some(chunk),
        })
    }

    /// Writes it to the start of `buffer`; gives its length.
    pub(crate) fn write(&self, buffer: &mut [u8; FRAME_MAX]) -> usize {
        let mut writer = Writer::new(buffer);
        let Ack {
            next,
            behind,
            window,
        } = self.ack;
        writer.u64(next).u32(behind).u8(window);
        match self.chunk {
            None => writer.bytes(&[0; 13]),
            Some(chunk) => writer
                .u8(chunk.stream as u8)
                .u16(chunk.index)
                .u16(chunk.count)
                .u64(chunk.sequence)
                .bytes(chunk.bytes),
        };
        writer.length()
    }
}

//! A record that was copied out of a ring: checked once here, then read without doubt.

use ipc::abi::profile::{FIXED_WORDS, Header, KIND_SAMPLE, LAYOUT_VERSION, Marker, SLOT_WORDS};

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// Another layout version.
    Version(u8),
    /// Not a sample.
    Kind(u8),
    /// Its counts say more words than a slot has.
    TooLong(usize),
    /// It has no frame: the interrupted address is missing.
    NoFrame,
    /// A marker without its second word, or without a frame after it.
    BareMarker,
}

impl core::fmt::Display for RecordError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Version(version) => write!(f, "layout version {version}"),
            Self::Kind(kind) => write!(f, "kind {kind}"),
            Self::TooLong(words) => write!(f, "{words} words in a slot of {SLOT_WORDS}"),
            Self::NoFrame => f.write_str("no frame"),
            Self::BareMarker => f.write_str("a marker without frames"),
        }
    }
}

impl core::error::Error for RecordError {}

/// A sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    header: Header,
    words: [u64; SLOT_WORDS],
}

impl Sample {
    /// Checks a record's words, as [`ipc::abi::profile`] lays them out.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(words: [u64; SLOT_WORDS]) -> Result<Self, RecordError> {
        let header = Header::unpack(words[1]);
        if header.version != LAYOUT_VERSION {
            return Err(RecordError::Version(header.version));
        }
        if header.kind != KIND_SAMPLE {
            return Err(RecordError::Kind(header.kind));
        }
        if header.words() > SLOT_WORDS {
            return Err(RecordError::TooLong(header.words()));
        }
        let sample = Self { header, words };
        let tagged = sample.tagged();
        if tagged.first().is_none_or(|&word| Marker::starts(word)) {
            return Err(RecordError::NoFrame);
        }
        let mut rest = tagged;
        while let Some(at) = rest.iter().position(|&word| Marker::starts(word)) {
            match rest.get(at + 2) {
                Some(&frame) if !Marker::starts(frame) => rest = &rest[at + 2..],
                _ => return Err(RecordError::BareMarker),
            }
        }
        Ok(sample)
    }

    /// Number of the record on its CPU, from 1.
    #[must_use]
    pub const fn sequence(&self) -> u64 {
        self.words[0]
    }
    /// Version, kind, CPU, event, flags and counts.
    #[must_use]
    pub const fn header(&self) -> Header {
        self.header
    }
    /// TSC when it was taken.
    #[must_use]
    pub const fn tsc(&self) -> u64 {
        self.words[2]
    }
    /// Events that it stands for.
    #[must_use]
    pub const fn weight(&self) -> u32 {
        (self.words[4] >> 32) as u32
    }
    /// RSP as interrupted.
    #[must_use]
    pub const fn rsp(&self) -> u64 {
        self.words[5]
    }
    /// RBP as interrupted.
    #[must_use]
    pub const fn rbp(&self) -> u64 {
        self.words[6]
    }
    /// Words from the top of the interrupted stack, lowest address first.
    #[must_use]
    pub fn stack(&self) -> &[u64] {
        &self.words[FIXED_WORDS..FIXED_WORDS + usize::from(self.header.stack)]
    }
    /// Counter values.
    #[must_use]
    pub fn counters(&self) -> &[u64] {
        let first = FIXED_WORDS + usize::from(self.header.stack);
        &self.words[first..first + usize::from(self.header.counters)]
    }
    /// The frames, process by process: first those of the thread that was executing, then those of the client it served,
    /// and so on.
    #[must_use]
    pub fn parts(&self) -> Frames<'_> {
        Frames {
            owner: Some(Marker {
                pid: self.words[3] as u32,
                tid: (self.words[3] >> 32) as u32,
                image: self.words[4] as u32,
            }),
            rest: self.tagged(),
        }
    }

    fn tagged(&self) -> &[u64] {
        let last = self.header.words();
        &self.words[last - usize::from(self.header.tagged)..last]
    }
}

/// The frames that belong to one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// Whose they are. Pid 0 is the kernel, with no thread.
    pub owner: Marker,
    /// Innermost first; never empty.
    pub frames: &'a [u64],
}

/// Iterates over a sample's [`Part`]s.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    owner: Option<Marker>,
    rest: &'a [u64],
}

impl<'a> Iterator for Frames<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        let owner = self.owner.take()?;
        let end = self
            .rest
            .iter()
            .position(|&word| Marker::starts(word))
            .unwrap_or(self.rest.len());
        let (frames, rest) = self.rest.split_at(end);
        if let [first, second, rest @ ..] = rest {
            self.owner = Some(Marker::unpack([*first, *second]));
            self.rest = rest;
        }
        Some(Part { owner, frames })
    }
}

//! Sample records, word by word.

use ipc::abi::profile::{Header, KIND_SAMPLE, LAYOUT_VERSION, Marker, SLOT_WORDS, flags};
use sample_ring::{Sample, Writer};

/// What goes into a record.
#[derive(Clone, Debug, Default)]
pub struct Record {
    pub cpu: u8,
    pub flags: u16,
    pub tsc: u64,
    pub pid: u32,
    pub rsp: u64,
    pub rbp: u64,
    pub stack: Vec<u64>,
    /// Frames of the thread, then of each client with its pid.
    pub frames: Vec<u64>,
    pub clients: Vec<(u32, Vec<u64>)>,
}

impl Record {
    /// In the kernel if the first frame is.
    pub fn new(pid: u32, frames: &[u64]) -> Self {
        let kernel = frames.first().is_some_and(|&rip| rip >= super::KERNEL);
        Self {
            pid,
            flags: if kernel { flags::KERNEL } else { 0 },
            frames: frames.to_vec(),
            ..Self::default()
        }
    }

    /// Words after the sequence: the header, then the rest.
    pub fn words(&self) -> Vec<u64> {
        let mut tagged = self.frames.clone();
        for (pid, frames) in &self.clients {
            tagged.extend(
                Marker {
                    pid: *pid,
                    tid: 1,
                    image: 0,
                }
                .pack(),
            );
            tagged.extend(frames);
        }
        let header = Header {
            version: LAYOUT_VERSION,
            kind: KIND_SAMPLE,
            cpu: self.cpu,
            flags: self.flags,
            stack: self.stack.len() as u8,
            tagged: tagged.len() as u8,
            ..Header::default()
        };
        let mut words = vec![
            header.pack(),
            self.tsc,
            self.pid.into(),
            1 << 32,
            self.rsp,
            self.rbp,
        ];
        words.extend(&self.stack);
        words.extend(tagged);
        words
    }

    pub fn sample(&self) -> Sample {
        let mut slot = [0; SLOT_WORDS];
        slot[0] = 1;
        let words = self.words();
        slot[1..=words.len()].copy_from_slice(&words);
        Sample::parse(slot).expect("a sound record")
    }

    pub fn write(&self, ring: &Writer<'_>) {
        let words = self.words();
        let mut slot = ring.begin();
        for &word in &words[1..] {
            assert!(slot.push(word));
        }
        slot.publish(words[0]);
    }
}

//! The cable between two devices.

use fastrand::Rng;

use super::FakeNic;

/// How often a cable does what to a frame: one in so many; 0 is never.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub loss: usize,
    pub repetition: usize,
    pub corruption: usize,
    /// Keeps the frame back until others have passed it.
    pub delay: usize,
}

impl Faults {
    /// All of them, often.
    pub const BAD: Self = Self {
        loss: 5,
        repetition: 7,
        corruption: 6,
        delay: 4,
    };
}

/// A cable.
#[derive(Debug)]
pub struct Cable {
    ends: [FakeNic; 2],
    faults: Faults,
    random: Rng,
    /// What is kept back, and for which end.
    delayed: Vec<(usize, Vec<u8>)>,
    /// Frames that were changed on the way.
    pub corrupted: u64,
}

impl Cable {
    pub fn new(ends: [FakeNic; 2], faults: Faults, seed: u64) -> Self {
        Self {
            ends,
            faults,
            random: Rng::with_seed(seed),
            delayed: Vec::new(),
            corrupted: 0,
        }
    }

    fn happens(&mut self, one_in: usize) -> bool {
        one_in > 0 && self.random.usize(..one_in) == 0
    }

    /// Carries what the devices have sent; whether there was anything.
    pub fn carry(&mut self) -> bool {
        let mut any = !self.delayed.is_empty();
        for (to, frame) in std::mem::take(&mut self.delayed) {
            self.ends[to].rings.borrow_mut().arrived.push_back(frame);
        }
        for to in [0, 1] {
            let sent = std::mem::take(&mut self.ends[1 - to].rings.borrow_mut().sent);
            for frame in sent {
                any = true;
                self.carry_frame(to, frame);
            }
        }
        any
    }

    fn carry_frame(&mut self, to: usize, mut frame: Vec<u8>) {
        if self.happens(self.faults.loss) {
            return;
        }
        if self.happens(self.faults.corruption) {
            // Behind the Ethernet addresses, whose check is the device's: a frame for another one would be just lost.
            let at = self.random.usize(14..frame.len());
            frame[at] ^= 1 << self.random.u8(..8);
            self.corrupted += 1;
        }
        let copies = if self.happens(self.faults.repetition) {
            2
        } else {
            1
        };
        for _ in 0..copies {
            let frame = frame.clone();
            if self.happens(self.faults.delay) {
                self.delayed.push((to, frame));
            } else {
                self.ends[to].rings.borrow_mut().arrived.push_back(frame);
            }
        }
    }
}

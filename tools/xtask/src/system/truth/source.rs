//! The sources of samples, and what is asked of each.

/// A source.
pub struct Source {
    /// What `profile` calls it.
    pub word: &'static str,
    /// What a report calls it.
    pub name: &'static str,
    /// Samples that a subject must have, at least.
    pub samples: u64,
    /// Windows of two seconds that must be enough for them. Some are, if none comes late.
    pub windows: usize,
    /// How far from the truth a share may be that is believed, at most: as much as so many samples can tell, or more are taken.
    pub points: f64,
}

/// A thousand samples a second on each CPU.
pub const NMI: Source = Source {
    word: "timer",
    name: "timer/nmi",
    samples: 2000,
    windows: 12,
    points: 0.04,
};

/// A hundred.
pub const TICK: Source = Source {
    word: "tick",
    name: "tick",
    samples: 500,
    windows: 60,
    points: 0.14,
};

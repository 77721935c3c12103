//! The table of what was true and what was reported: it is left beside what was built, for people to read.

use std::fmt::Write as _;
use std::fs;
use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::subject::Share;

/// The table of one machine.
pub struct Table {
    cpus: u32,
    text: String,
}

impl Table {
    /// An empty one.
    pub fn new(cpus: u32) -> Self {
        let text = format!(
            "{:<17} {:<32} {:>8} {:>13} {:>8}  {}\n",
            "PROGRAM", "PART", "SAMPLES", "TRUTH", "REPORTED", "BOUND"
        );
        Self { cpus, text }
    }

    /// A share, all in percent.
    pub fn row(
        &mut self,
        subject: &str,
        share: &Share,
        samples: u64,
        count: u64,
        believed: &RangeInclusive<u64>,
    ) {
        let percent = |count: &u64| *count as f64 * 100.0 / samples as f64;
        let (low, high) = (share.truth.start() * 100.0, share.truth.end() * 100.0);
        let truth = if low < high {
            format!("{low:.1} to {high:.1}")
        } else {
            format!("{low:.1}")
        };
        let (first, last) = (percent(believed.start()), percent(believed.end()));
        self.line(format_args!(
            "{subject:<17} {:<32} {samples:>8} {truth:>13} {:>8.2}  {first:.2} to {last:.2}",
            share.name,
            percent(&count),
        ));
    }

    /// A subject whose every chain is as it must be.
    pub fn exact(&mut self, subject: &str, samples: u64) {
        self.line(format_args!(
            "{subject:<17} {:<32} {samples:>8} {:>13} {:>8}  exact",
            "every chain", "all", "all"
        ));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{line}");
    }

    /// Writes it to the directory as `truth-4-cpus.txt` and its like.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, directory: &Path) -> Result<()> {
        let path = directory.join(format!("truth-{}-cpus.txt", self.cpus));
        fs::write(&path, &self.text).with_context(|| path.display().to_string())
    }
}

//! The table of what was true and what was reported: it is left beside what was built, for people to read.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result};

use super::comparison::Comparison;
use super::source::Source;

/// The table of one machine, in `truth-4-cpus.txt` and its like.
pub struct Table {
    path: PathBuf,
    text: String,
}

impl Table {
    /// An empty one, in this file.
    pub fn new(path: PathBuf) -> Self {
        let text = format!(
            "{:<17} {:<10} {:<32} {:>8} {:>13} {:>8}  {}\n",
            "PROGRAM", "SOURCE", "PART", "SAMPLES", "TRUTH", "REPORTED", "BOUND"
        );
        Self { path, text }
    }

    /// A share, all in percent, with what is to be said of it.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn row(
        &mut self,
        subject: &str,
        source: &Source,
        it: &Comparison<'_>,
        remark: &str,
    ) -> Result<()> {
        let percent = |count: u64| count as f64 * 100.0 / it.samples as f64;
        let (low, high) = (it.truth.start() * 100.0, it.truth.end() * 100.0);
        let truth = if low < high {
            format!("{low:.1} to {high:.1}")
        } else {
            format!("{low:.1}")
        };
        let believed = it.believed();
        let (first, last) = (percent(*believed.start()), percent(*believed.end()));
        self.line(format_args!(
            "{subject:<17} {:<10} {:<32} {:>8} {truth:>13} {:>8.2}  {first:.2} to {last:.2}{remark}",
            source.name,
            it.part,
            it.samples,
            percent(it.count),
        ))
    }

    /// A subject whose every chain is as it must be.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn exact(&mut self, subject: &str, source: &Source, samples: u64) -> Result<()> {
        self.line(format_args!(
            "{subject:<17} {:<10} {:<32} {samples:>8} {:>13} {:>8}  exact",
            source.name, "every chain", "all", "all"
        ))
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) -> Result<()> {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{line}");
        fs::write(&self.path, &self.text).with_context(|| self.path.display().to_string())
    }
}

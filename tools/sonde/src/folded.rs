//! A profile in folded stacks, kept as it is or drawn as a flame graph.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use inferno::flamegraph::{self, Options};

/// Folded stacks, at least one: a line each, its frames, outermost first, and how many samples it has.
#[derive(Debug, PartialEq, Eq)]
pub struct Folded<'a> {
    text: &'a str,
    samples: u64,
}

impl<'a> Folded<'a> {
    /// Checks what a machine printed.
    ///
    /// # Errors
    /// If it has no samples, in the machine's words, or is something else.
    pub fn parse(output: &'a [u8]) -> Result<Self> {
        let text = str::from_utf8(output).ok();
        let text = text.context("the machine's answer is not text")?;
        let mut samples = 0_u64;
        for line in text.lines() {
            if let Some(why) = line.strip_prefix('#') {
                bail!("{}", why.trim());
            }
            let count = line.rsplit_once(' ');
            let count = count.filter(|(stack, _)| !stack.trim().is_empty());
            let count: Option<u64> = count.and_then(|(_, count)| count.parse().ok());
            let sum = count.and_then(|count| samples.checked_add(count));
            samples = sum.with_context(|| format!("the machine's answer is no profile: {line}"))?;
        }
        if samples == 0 {
            bail!("the machine's answer has no samples");
        }
        Ok(Self { text, samples })
    }

    /// How many samples it has.
    pub const fn samples(&self) -> u64 {
        self.samples
    }

    /// Writes it to a file; `-` is stdout.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        write(path, self.text.as_bytes())
    }

    /// Draws a flame graph, which a browser shows and makes larger where it is clicked, into a file; `-` is stdout.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn draw(&self, title: &str, path: &Path) -> Result<()> {
        write(path, &self.svg(title)?)
    }

    fn svg(&self, title: &str) -> Result<Vec<u8>> {
        let mut options = Options::default();
        title.clone_into(&mut options.title);
        // A function has the same colour in every graph.
        options.hash = true;
        let mut svg = Vec::new();
        flamegraph::from_lines(&mut options, self.text.lines(), &mut svg)
            .context("no flame graph can be drawn")?;
        Ok(svg)
    }
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    let written = if path == Path::new("-") {
        io::stdout().write_all(content)
    } else {
        fs::write(path, content)
    };
    written.with_context(|| format!("{} cannot be written", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `profile 200 all depth 48 folded` printed while the demo ran.
    const RECORDED: &[u8] = include_bytes!("recorded.folded");

    fn error(output: &[u8]) -> String {
        format!("{:#}", Folded::parse(output).unwrap_err())
    }

    #[test]
    fn a_recorded_profile_is_drawn_whole() {
        let folded = Folded::parse(RECORDED).unwrap();
        let text = str::from_utf8(RECORDED).unwrap();
        let counts = text.lines().map(|line| line.rsplit_once(' ').unwrap().1);
        let sum: u64 = counts.map(|count| count.parse::<u64>().unwrap()).sum();
        assert_eq!(folded.samples(), sum);
        let svg = String::from_utf8(folded.svg("profile 200").unwrap()).unwrap();
        assert!(svg.contains("<svg ") && svg.trim_end().ends_with("</svg>"));
        assert!(
            svg.contains("profile 200") && svg.contains("<script"),
            "not interactive"
        );
        // The frame that is under all others has all samples. Thousands are parted by commas.
        let all = format!("all ({sum} samples, 100%)");
        assert!(
            svg.replace(',', "").contains(&all.replace(',', "")),
            "no {all}"
        );
        assert!(svg.contains("shares`share_a ("), "no share_a");
        assert_eq!(
            svg,
            String::from_utf8(folded.svg("profile 200").unwrap()).unwrap()
        );
    }

    #[test]
    fn what_is_no_profile_is_not_taken_for_one() {
        assert_eq!(error(b"# no samples: too short\n"), "no samples: too short");
        assert_eq!(error(b""), "the machine's answer has no samples");
        assert_eq!(error(b"a;b 0\n"), "the machine's answer has no samples");
        assert_eq!(error(b"\xff 1\n"), "the machine's answer is not text");
        for line in [
            "a;b",
            "a;b x",
            "a;b -1",
            " 5",
            "7",
            "a 99999999999999999999",
        ] {
            let output = format!("a;b 3\n{line}\n");
            let says = format!("the machine's answer is no profile: {line}");
            assert_eq!(error(output.as_bytes()), says);
        }
    }
}

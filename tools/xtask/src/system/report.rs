//! The profile as the shell prints it, read back: what scripts may rely on (`docs/report.md`).

use std::ops::RangeInclusive;

use anyhow::{Context as _, Result, bail, ensure};

/// A report of `profile`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Milliseconds that were profiled.
    pub profiled_ms: u64,
    /// Milliseconds that were asked for, where that differs.
    pub asked_ms: Option<u64>,
    /// Samples in the report.
    pub samples: u64,
    /// Samples taken, where the report is of one process.
    pub taken: Option<u64>,
    /// CPUs that contributed.
    pub cpus: u64,
    /// Samples lost.
    pub dropped: u64,
    /// Long name of the source.
    pub source: String,
    /// Hottest first.
    pub chains: Vec<Chain>,
    /// Samples in the report whose chains are not printed, or were too many for profd.
    pub not_shown: u64,
    /// Samples of which the system itself says that it does not know what became of them.
    pub unaccounted: u64,
}

/// One chain: where samples hit, and how the code got there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Samples.
    pub count: u64,
    /// Percent of the samples reported, in tenths.
    pub tenths: u64,
    /// Program.
    pub image: String,
    /// Function, or address.
    pub symbol: String,
    /// The first and the last offset in it that was hit; 0 for an address.
    pub offsets: RangeInclusive<u64>,
    /// The lines of callers, without indentation: `<- shares`main+0x61`.
    pub callers: Vec<String>,
}

impl Report {
    /// Reads a report, and checks what must hold in every one: each sample is in a chain or in a note that counts it.
    ///
    /// # Errors
    /// If it does not have the documented form, or does not add up.
    pub fn parse(text: &str) -> Result<Self> {
        let report = Self::parse_lines(text).and_then(Self::checked);
        report.with_context(|| format!("in this report:\n{text}"))
    }

    fn parse_lines(text: &str) -> Result<Self> {
        let mut lines = text.lines();
        let first = lines.next().context("it is empty")?;
        let window = between(first, "profiled ", " ms")?;
        let (profiled, asked) = match window.split_once(" of ") {
            Some((profiled, asked)) => (profiled, Some(asked)),
            None => (window, None),
        };
        let second = lines.next().context("it has one line")?;
        let fields: Vec<&str> = second.split(", ").collect();
        let [samples_on_cpus, dropped, source] = fields[..] else {
            bail!("the second line has {} fields", fields.len());
        };
        let (samples, cpus) = samples_on_cpus.split_once(" on ").context("no CPUs")?;
        let (samples, taken) = match samples.split_once(" samples (of ") {
            Some((samples, taken)) => (samples, Some(between(taken, "", " taken)")?)),
            None => (between(samples, "", " samples")?, None),
        };
        let mut report = Self {
            profiled_ms: profiled.parse()?,
            asked_ms: asked.map(str::parse).transpose()?,
            samples: samples.parse()?,
            taken: taken.map(str::parse).transpose()?,
            cpus: between(cpus, "", " cpus")?.parse()?,
            dropped: between(dropped, "", " dropped")?.parse()?,
            source: between(source, "source ", "")?.to_owned(),
            chains: Vec::new(),
            not_shown: 0,
            unaccounted: 0,
        };
        let mut notes = String::new();
        for line in lines {
            match (line.trim_start(), report.chains.last_mut()) {
                (caller, Some(chain)) if caller.starts_with("<-") || caller.starts_with("<=") => {
                    chain.callers.push(caller.to_owned());
                }
                (line, _) if is_leaf(line) => report.chains.push(leaf(line)?),
                // A note; one too long for a line goes on behind two blanks.
                (words, _) => {
                    notes.push_str(if line.starts_with("  ") { " " } else { "\n" });
                    notes.push_str(words);
                }
            }
        }
        for note in notes.lines() {
            report.heed(note)?;
        }
        Ok(report)
    }

    /// Takes from a note what it says of samples; most are for people alone.
    fn heed(&mut self, note: &str) -> Result<()> {
        if let Some(rest) = note.strip_prefix("not shown: ") {
            let (_, samples) = rest.split_once(", ").context("no samples not shown")?;
            self.not_shown += first_number(samples)?;
        } else if let Some(rest) = note.strip_prefix("table full: ") {
            self.not_shown += first_number(rest)?;
        } else if let Some(rest) = note.strip_prefix("odd: ") {
            let mut counts = rest.split(", ");
            if let Some(count) = counts.find_map(|count| count.strip_prefix("unaccounted ")) {
                self.unaccounted = first_number(count)?;
            }
        }
        Ok(())
    }

    /// Samples whose leaf is this function of this program.
    #[must_use]
    pub fn count(&self, image: &str, symbol: &str) -> u64 {
        let hits = self.chains.iter();
        let hits = hits.filter(|chain| chain.image == image && chain.symbol == symbol);
        hits.map(|chain| chain.count).sum()
    }

    /// The report, if it adds up.
    fn checked(self) -> Result<Self> {
        let shown: u64 = self.chains.iter().map(|chain| chain.count).sum();
        ensure!(
            shown + self.not_shown == self.samples,
            "{shown} samples are shown and {} are not, of {}",
            self.not_shown,
            self.samples
        );
        ensure!(
            self.unaccounted == 0,
            "{} samples are unaccounted",
            self.unaccounted
        );
        ensure!(
            self.taken.is_none_or(|taken| taken >= self.samples),
            "more reported than taken"
        );
        ensure!(
            self.chains.is_sorted_by(|a, b| a.count >= b.count),
            "the hottest chains are not first"
        );
        for chain in &self.chains {
            let exact = chain.count * 1000;
            let printed = chain.tenths * self.samples;
            ensure!(
                exact.abs_diff(printed) <= self.samples,
                "{} of {} samples are not {} tenths of a percent",
                chain.count,
                self.samples,
                chain.tenths
            );
        }
        Ok(self)
    }
}

fn is_leaf(line: &str) -> bool {
    line.split_once("% ").is_some_and(|(percent, _)| {
        percent
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    })
}

fn leaf(line: &str) -> Result<Chain> {
    let (percent, rest) = line.split_once("% ").context("no percentage")?;
    let (count, place) = rest.split_once(' ').context("no count")?;
    let (image, place) = place.split_once('`').context("no program")?;
    // The offset is last; symbols may hold a plus sign of their own.
    let (symbol, offsets) = place.rsplit_once('+').unwrap_or((place, "0x0"));
    let (first, last) = offsets.split_once("..").unwrap_or((offsets, offsets));
    let (whole, tenth) = percent.split_once('.').context("no tenths")?;
    Ok(Chain {
        count: count.parse()?,
        tenths: whole.parse::<u64>()? * 10 + tenth.parse::<u64>()?,
        image: image.to_owned(),
        symbol: symbol.to_owned(),
        offsets: hexadecimal(first)?..=hexadecimal(last)?,
        callers: Vec::new(),
    })
}

fn hexadecimal(text: &str) -> Result<u64> {
    let digits = text.strip_prefix("0x");
    let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    number.with_context(|| format!("{text:?} is no offset"))
}

fn first_number(text: &str) -> Result<u64> {
    let number = text.split(' ').next().and_then(|word| word.parse().ok());
    number.with_context(|| format!("{text:?} does not begin with a number"))
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Result<&'a str> {
    let inner = text
        .strip_prefix(before)
        .and_then(|text| text.strip_suffix(after));
    inner.with_context(|| format!("{text:?} is not {before:?} .. {after:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_form_is_read() {
        let text = "\
profiled 1000 ms
3987 samples on 4 cpus, 0 dropped, source timer/nmi
75.2% 2998 kernel`idle+0x3
14.9% 594 shares`share_a+0x10..0x2c
        <- shares`main+0x61
 5.1% 203 kernel`ipc::transfer+0x12..0x48
        <- kernel`syscall_entry+0x5a
        <= netload`main+0x5c
a note
not shown: 2 chains, 180 samples
table full: 12 samples in chains beyond the 512 that
  it holds
";
        let report = Report::parse(text).unwrap();
        assert_eq!(report.not_shown, 192);
        assert_eq!((report.profiled_ms, report.asked_ms), (1000, None));
        assert_eq!((report.samples, report.taken, report.cpus), (3987, None, 4));
        assert_eq!((report.dropped, report.source.as_str()), (0, "timer/nmi"));
        assert_eq!(report.chains.len(), 3);
        assert_eq!(report.count("shares", "share_a"), 594);
        assert_eq!(report.chains[0].offsets, 3..=3);
        assert_eq!(report.chains[2].symbol, "ipc::transfer");
        assert_eq!(report.chains[2].offsets, 0x12..=0x48);
        assert_eq!(report.chains[2].callers[1], "<= netload`main+0x5c");
    }

    #[test]
    fn one_process_and_a_short_window_are_read() {
        let text = "profiled 310 of 2000 ms\n12 samples (of 120 taken) on 1 cpus, 3 dropped, source tick\n\
                    100.0% 12 a`b+0x1\n";
        let report = Report::parse(text).unwrap();
        assert_eq!((report.profiled_ms, report.asked_ms), (310, Some(2000)));
        assert_eq!((report.samples, report.taken), (12, Some(120)));
    }

    #[test]
    fn what_does_not_add_up_is_found() {
        let report = |chains: &str| {
            let header = "profiled 9 ms\n100 samples on 1 cpus, 0 dropped, source tick\n";
            Report::parse(&format!("{header}{chains}"))
        };
        assert!(report("60.0% 60 a`b+0x1\n40.0% 40 a`c+0x1\n").is_ok());
        assert!(report("60.0% 60 a`b+0x1\n41.0% 41 a`c+0x1\n").is_err());
        assert!(report("40.0% 40 a`b+0x1\n60.0% 60 a`c+0x1\n").is_err());
        let one = |percent, notes: &str| report(&format!("{percent}% 60 a`b+0x1\n{notes}"));
        assert!(one("60.0", "not shown: 1 chain, 40 samples\n").is_ok());
        assert!(one("60.0", "").is_err());
        assert!(one("60.0", "not shown: 1 chain, 39 samples\n").is_err());
        assert!(one("55.0", "not shown: 1 chain, 40 samples\n").is_err());
        let odd = "not shown: 1 chain, 40 samples\nodd: overwritten 1, missed 2,\n  unaccounted ";
        assert!(one("60.0", &format!("{odd}0, cut 1\n")).is_ok());
        assert!(one("60.0", &format!("{odd}1\n")).is_err());
    }
}

//! A profile as a person reads it. Scripts may rely on the first two lines and on the form of the chains
//! (`docs/report.md`); notes come after them.

use alloc::format;
use alloc::string::String;

use crate::notes;
use crate::profile::{Chain, Frame, More, Profile, Step};
use crate::shorten::Shortener;
use crate::text::{COLUMNS, Lines};

/// Fewest columns that a name gets, whatever stands beside it.
const NAME_COLUMNS: usize = 12;

/// How much to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Chains, the hottest first.
    pub chains: usize,
    /// Whole names, and every counter.
    pub verbose: bool,
}

/// Writes the report.
#[must_use]
pub fn report(profile: &Profile, options: Options) -> String {
    let mut lines = Lines::default();
    header(profile, &mut lines);
    let mut writer = Writer {
        profile,
        names: Shortener::default(),
        verbose: options.verbose,
    };
    let printed = &profile.chains[..profile.chains.len().min(options.chains)];
    let shares = printed.iter().map(|chain| writer.share(chain).len());
    let share_width = shares.max().unwrap_or(0).max(5);
    for chain in printed {
        writer.chain(chain, share_width, &mut lines);
    }
    notes::write(profile, printed.len(), options.verbose, &mut lines);
    lines.finish()
}

fn header(profile: &Profile, lines: &mut Lines) {
    let Profile {
        asked_ms,
        profiled_ms,
        counts,
        cpus,
        ..
    } = profile;
    if profiled_ms < asked_ms {
        lines.push(&format!("profiled {profiled_ms} of {asked_ms} ms"));
    } else {
        lines.push(&format!("profiled {asked_ms} ms"));
    }
    let of = match profile.filter {
        Some(_) => format!(" (of {} taken)", counts.taken),
        None => String::new(),
    };
    let source = profile.source.name();
    let (reported, dropped) = (counts.reported, counts.dropped());
    let line = format!("{reported} samples{of} on {cpus} cpus, {dropped} dropped, source {source}");
    if line.len() <= COLUMNS {
        lines.push(&line)
    } else {
        lines.wrap(&line)
    }
}

struct Writer<'p> {
    profile: &'p Profile,
    names: Shortener,
    verbose: bool,
}

impl Writer<'_> {
    fn chain(&mut self, chain: &Chain, share_width: usize, lines: &mut Lines) {
        let share = self.share(chain);
        let before = format!("{share:>share_width$} {} ", chain.count);
        let span = match chain.leaf.symbol {
            Some(_) if chain.high > chain.leaf.offset => {
                format!("+{:#x}..{:#x}", chain.leaf.offset, chain.high)
            }
            _ => offset(chain.leaf),
        };
        lines.push(&self.place(&before, chain.leaf, &span));
        for step in &chain.steps {
            let line = match *step {
                Step::Caller(frame) => self.place("        <- ", frame, &offset(frame)),
                Step::Client(frame) => self.place("        <= ", frame, &offset(frame)),
                Step::Missing => "        <- ?".into(),
                Step::MissingClient => "        <= ?".into(),
            };
            lines.push(&line);
        }
        if let Some(more) = chain.more {
            lines.push(&format!("        <- {}", rest(more)));
        }
    }

    /// Percent of the samples reported, with one decimal, rounded.
    fn share(&self, chain: &Chain) -> String {
        let total = u128::from(self.profile.counts.reported.max(1));
        let tenths = (u128::from(chain.count) * 1000 + total / 2) / total;
        format!("{}.{}%", tenths / 10, tenths % 10)
    }

    fn place(&mut self, before: &str, frame: Frame, after: &str) -> String {
        let name = self.profile.place_name(frame);
        if self.verbose {
            return format!("{before}{name}{after}");
        }
        let width = COLUMNS
            .saturating_sub(before.len() + after.len())
            .max(NAME_COLUMNS);
        format!("{before}{}{after}", self.names.fit(&name, width))
    }
}

fn offset(frame: Frame) -> String {
    match frame.symbol {
        Some(_) => format!("+{:#x}", frame.offset),
        None => String::new(),
    }
}

fn rest(more: More) -> String {
    let open = if more.open { "+" } else { "" };
    match more {
        More { most: 0, .. } => "...".into(),
        More { least, most, .. } if least == most => format!("... ({most}{open} more)"),
        More { least, most, .. } => format!("... ({least}..{most}{open} more)"),
    }
}

//! What a report says about itself after its chains: what it does not show, what was lost, and why it is empty.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use ipc::abi::profile::Source;

use crate::header::{FULL_RATE, percent_of_nominal};
use crate::process::Fate;
use crate::profile::{Counts, Profile};
use crate::report::Shown;
use crate::text::{Lines, counted};

/// Writes the notes on a report that shows this much.
pub fn write(profile: &Profile, shown: Shown, verbose: bool, lines: &mut Lines) {
    let counts = &profile.counts;
    if counts.reported == 0 {
        lines.wrap(&why_empty(profile));
    } else if profile.source == Source::Tick {
        lines.wrap(TICK);
    } else if profile.is_counted()
        && percent_of_nominal(profile).is_some_and(|rate| rate < FULL_RATE)
    {
        lines.wrap(&halted(profile));
    }
    let chains = profile.chains.len() as u64 - shown.chains;
    if chains > 0 {
        let samples = counts.reported - counts.beyond_table - shown.samples;
        lines.wrap(&format!(
            "not shown: {}, {}",
            counted(chains, "chain"),
            counted(samples, "sample")
        ));
    }
    if counts.beyond_table > 0 {
        lines.wrap(&format!(
            "table full: {} in chains beyond the {} that it holds",
            counted(counts.beyond_table, "sample"),
            counts.table
        ));
    }
    for image in &profile.images {
        if let Some(problem) = image.problem {
            let (name, problem) = (profile.string(image.name), profile.string(problem));
            lines.wrap(&format!("no symbols of {name}: {problem}"));
        }
    }
    if profile.unconfirmed != 0 {
        let cpus = (0..u64::BITS).filter(|cpu| profile.unconfirmed >> cpu & 1 == 1);
        let cpus: Vec<String> = cpus.map(|cpu| cpu.to_string()).collect();
        lines.wrap(&format!("not confirmed its end: cpu {}", cpus.join(" ")));
    }
    odd(counts, verbose, lines);
}

/// What the tick cannot see: the kernel runs with interrupts off.
const TICK: &str = "the tick cannot see inside the kernel: its time is at the return from the call";

/// What a counter cannot see, where that shows. CPUs that are sampled by the timer are sampled while they are idle, too.
fn halted(profile: &Profile) -> String {
    let idle = match profile.without_counter() {
        0 => "not sampled".into(),
        others => format!("sampled on {others} of {} cpus", profile.asked_cpus),
    };
    format!("the counter stands still while a cpu is halted: idle time is {idle}")
}

/// Why there are no samples.
#[must_use]
pub fn why_empty(profile: &Profile) -> String {
    let counts = &profile.counts;
    if let Some(filter) = &profile.filter {
        let pid = filter.pid;
        let who = if filter.name.is_empty() {
            format!("pid {pid}")
        } else {
            format!("pid {pid} ({})", filter.name)
        };
        match filter.fate {
            Fate::Unknown => {
                return format!("no samples: {who} is not a process that is known here");
            }
            Fate::Ended => return format!("no samples: {who} has ended"),
            Fate::Live if counts.other_tasks > 0 => {
                return format!(
                    "no samples: {who} did not run, it may have slept the whole window"
                );
            }
            Fate::Live => {}
        }
    }
    if counts.dropped() > 0 {
        return "no samples: all that were taken in the window were dropped".into();
    }
    let each = u128::from(profile.frequency) * u128::from(profile.profiled_ms);
    if each < 2000 {
        return format!(
            "no samples: {} ms may be too short, the source takes {} a second on each cpu",
            profile.profiled_ms, profile.frequency
        );
    }
    if profile.is_counted() && profile.without_counter() == 0 {
        "no samples: the counter stands still while a cpu is halted, so every cpu was idle".into()
    } else {
        "no samples: the source did not deliver any, though it samples idle cpus too".into()
    }
}

/// What became of samples, by name: what is not zero, or everything.
fn odd(counts: &Counts, verbose: bool, lines: &mut Lines) {
    let all = [
        ("overwritten", counts.overwritten),
        ("corrupt", counts.corrupt),
        ("missed", counts.missed),
        ("unaccounted", counts.unaccounted()),
        ("truncated", counts.truncated),
        ("cut", counts.cut),
        ("unmapped", counts.unmapped),
        ("changed", counts.changed),
        ("late", counts.late),
        ("throttled", counts.throttled),
    ];
    let shown = all.iter().filter(|&&(_, count)| verbose || count > 0);
    let shown: Vec<String> = shown
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    if !shown.is_empty() {
        lines.wrap(&format!("odd: {}", shown.join(", ")));
    }
    if verbose || counts.taken != counts.reported {
        let Counts {
            taken,
            reported,
            other_tasks,
            outside,
            ..
        } = counts;
        let dropped = counts.dropped();
        lines.wrap(&format!(
            "taken {taken}: {reported} reported, {other_tasks} of other tasks, {outside} outside the window, {dropped} dropped"
        ));
    }
}

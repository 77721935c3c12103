//! The head of a report: what was measured, how much of it there is, and what measuring it cost.

use alloc::format;
use alloc::string::String;

use ipc::abi::profile::Source;

use crate::profile::{Counts, Profile};
use crate::text::{COLUMNS, Lines};

const MS_NS: u128 = 1_000_000;
const SECOND_NS: u128 = 1_000_000_000;

/// Percent of a source's samples below which the rate is told.
pub const FULL_RATE: u128 = 90;

/// Writes it.
pub fn write(profile: &Profile, verbose: bool, lines: &mut Lines) {
    window(profile, lines);
    samples(profile, lines);
    cost(profile, lines);
    rate(profile, verbose, lines);
    cpus(profile, verbose, lines);
    delay(profile, verbose, lines);
}

fn window(profile: &Profile, lines: &mut Lines) {
    let (asked, profiled) = (profile.asked_ms, profile.profiled_ms);
    if profiled < asked {
        lines.push(&format!("profiled {profiled} of {asked} ms"));
    } else {
        lines.push(&format!("profiled {asked} ms"));
    }
}

fn samples(profile: &Profile, lines: &mut Lines) {
    let Profile { counts, cpus, .. } = profile;
    let of = match profile.filter {
        Some(_) => format!(" (of {} taken)", counts.taken),
        None => String::new(),
    };
    let source = source(profile);
    let (reported, dropped) = (counts.reported, counts.dropped());
    let line = format!("{reported} samples{of} on {cpus} cpus, {dropped} dropped, source {source}");
    if line.len() <= COLUMNS {
        lines.push(&line);
    } else {
        lines.wrap(&line);
    }
}

/// The source, and of CPUs that have no counter that works, what samples those.
fn source(profile: &Profile) -> String {
    let counting = profile.counting.into();
    sources(profile.source, counting, profile.without_counter().into())
}

/// The same of a source that counts on some CPUs, or none, and of the other CPUs that it would have to count on.
#[must_use]
pub fn sources(source: Source, counting: u64, others: u64) -> String {
    let name = source.name();
    if others == 0 {
        return name.into();
    }
    let timer = Source::TimerNmi.name();
    format!("{name} on {counting} cpus, {timer} on {others}")
}

/// The profiler's own time: what one sample took, and what all of the window took of its CPUs.
fn cost(profile: &Profile, lines: &mut Lines) {
    let counts = &profile.counts;
    let Some(each) = counts.cost_ns.checked_div(counts.taken) else {
        return;
    };
    let spent = u128::from(each) * u128::from(counts.in_window());
    let of = time_ns(profile);
    let hundredths = spent.saturating_mul(10_000).saturating_add(of / 2);
    let least = at_least(counts);
    let share = hundredths.checked_div(of).map_or(String::new(), |share| {
        // Those before and behind a short window may have taken longer than those in it, which fit it.
        let share = share.min(10_000);
        format!(", {least}{}.{:02}% of the window", share / 100, share % 100)
    });
    lines.wrap(&format!("sampling took {each} ns a sample{share}"));
}

/// The rate at which samples came, where it is far from the source's own.
fn rate(profile: &Profile, verbose: bool, lines: &mut Lines) {
    let samples = u128::from(profile.counts.in_window());
    let Some(percent) = percent_of_nominal(profile) else {
        return;
    };
    // That there are none is said where the chains would be.
    if samples > 0 && (verbose || percent < FULL_RATE) {
        let rate = (samples * SECOND_NS) / time_ns(profile);
        let (least, nominal) = (at_least(&profile.counts), profile.frequency);
        lines.wrap(&format!(
            "true rate {least}{rate} a second on each cpu, {percent}% of the nominal {nominal}"
        ));
    }
}

/// Where samples are missing: CPUs of which fewer came than of others.
fn cpus(profile: &Profile, verbose: bool, lines: &mut Lines) {
    // A counter gives less of a CPU that has less to do.
    if !profile.is_counted()
        && let Some(uneven) = profile.came.uneven()
    {
        lines.wrap(&uneven);
    }
    if verbose {
        let due = u128::from(profile.frequency) * u128::from(profile.profiled_ms) / 1000;
        lines.wrap(&profile.came.each(due));
    }
}

/// The rate at which samples came, in percent of the source's own.
#[must_use]
pub fn percent_of_nominal(profile: &Profile) -> Option<u128> {
    let samples = u128::from(profile.counts.in_window());
    let expected = u128::from(profile.frequency).saturating_mul(time_ns(profile)) / SECOND_NS;
    (samples * 100).checked_div(expected)
}

/// By how much samples were asked for later than due. Below a tenth of the time between two samples it moves few of them into other
/// code, and is said only to who wants to know everything.
fn delay(profile: &Profile, verbose: bool, lines: &mut Lines) {
    let counts = &profile.counts;
    let Some(mean) = counts.delay_ns.checked_div(counts.asked) else {
        return;
    };
    let per_second = u128::from(mean).saturating_mul(profile.frequency.into());
    let matters = per_second > SECOND_NS / 10;
    if verbose || matters {
        let (mean, most) = (mean / 1000, counts.delay_max_ns / 1000);
        lines.wrap(&format!(
            "asked for {mean} us late on average, at most {most}: interrupts off, or not run"
        ));
    }
}

/// Before what follows from the samples that are known to be of the window: those that were dropped may be, too.
const fn at_least(counts: &Counts) -> &'static str {
    if counts.dropped() > 0 {
        "at least "
    } else {
        ""
    }
}

/// The window, as time of CPUs.
fn time_ns(profile: &Profile) -> u128 {
    u128::from(profile.profiled_ms) * u128::from(profile.asked_cpus) * MS_NS
}

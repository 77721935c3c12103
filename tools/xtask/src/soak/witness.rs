//! A second witness: while a mix of programs runs and is profiled, QEMU's debugger port stops the machine at random times and looks where
//! it is. That knows nothing of the profiler, and must see the same functions as often.
//!
//! Both look at one CPU at times that the programs cannot know, so the counts of the two are drawn from the same shares.
//! Pearson's chi-squared test of homogeneity says whether they can be, with a false alarm in a million rounds at most. Time in
//! the handler of the NMIs, which only the witness can see, is counted apart.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use fastrand::Rng;
use ipc::name::display_name;

use crate::build::Image;
use crate::build::elf::{self, Function};
use crate::cli::BootOptions;
use crate::system::probe::{Registers, Remote};
use crate::system::session::Session;
use crate::test::{Context, Verdict};

/// The mix, by the names of its images.
const MIX: [(&str, &str); 2] = [("shares", "shares 60 30 10"), ("syscalls", "syscalls")];
/// What each must have of the mix, so that a profiler which leaves out every second sample of the kernel does not pass.
const REPORTED: u64 = 5000;
const SEEN: u64 = 2000;
/// Windows that must be enough for that.
const WINDOWS: usize = 60;
/// Stops in a program by which it is known from the others, and stops until there must be as many.
const KNOWN: usize = 10;
const STOPS: usize = 10_000;
/// Microseconds between two stops.
const APART: std::ops::Range<u64> = 500..4500;
/// The first CPU's stack for NMIs (`microkernel/src/arch/percpu.rs`).
const NMI_STACK: std::ops::RangeInclusive<u64> = 0xffff_c000_0000_6000..=0xffff_c000_0000_8000;
/// Where the kernel's half begins.
const KERNEL: u64 = 1 << 63;
/// What a function must have of both together to be compared by itself.
const LEAST: u64 = 40;

/// How often each function was seen.
type Histogram = BTreeMap<String, u64>;

pub(super) fn round(context: &Context<'_>, dice: &mut Rng) -> Verdict {
    let image = context.image()?;
    let socket = std::env::temp_dir().join(format!("sonde-witness-{}", std::process::id()));
    let options = BootOptions {
        smp: 1,
        qemu_args: vec![
            "-gdb".into(),
            format!("unix:{},server=on,wait=off", socket.display()),
        ],
        ..BootOptions::default()
    };
    let mut session = Session::boot_image(image, options)?;
    let mut witness = Witness::new(socket, image, dice.fork())?;
    for (name, command) in MIX {
        session.start(command)?;
        witness.learn(name)?;
    }
    let (over, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    let (seen, reported) = thread::scope(|scope| {
        let seen = scope.spawn(|| witness.watch(&over, &looks));
        let reported = report(&mut session, &looks);
        over.store(true, Ordering::Relaxed);
        (seen.join(), reported)
    });
    let seen = seen.map_err(|_| anyhow::anyhow!("the witness panicked"))??;
    session.power_off()?;
    judge(&reported?, &seen)
}

/// What the profiler says of the mix, until the witness has seen enough of it, too.
fn report(session: &mut Session, looks: &AtomicU64) -> Result<Histogram> {
    let mut counts = Histogram::new();
    for _ in 0..WINDOWS {
        let text = session.run("profile 2000 all folded")?;
        for line in text.lines() {
            let Some((chain, count)) = line.rsplit_once(' ') else {
                continue;
            };
            let frames: Vec<&str> = chain.split(';').collect();
            let owner = MIX.iter().find(|(name, _)| {
                let of = frames[0].split('`').next();
                of == Some(*name)
            });
            let (Some((owner, _)), Some((image, function))) =
                (owner, frames.last().and_then(|leaf| leaf.split_once('`')))
            else {
                continue;
            };
            let image = if image == "kernel" { image } else { "program" };
            *counts.entry(key(owner, image, function)).or_default() += count.parse::<u64>()?;
        }
        if counts.values().sum::<u64>() >= REPORTED && looks.load(Ordering::Relaxed) >= SEEN {
            return Ok(counts);
        }
    }
    bail!("too few samples after {WINDOWS} windows: {counts:?}")
}

/// A function of an image, on behalf of a program; by the last part of its name, which does not depend on whose crates are left out.
fn key(owner: &str, image: &str, function: &str) -> String {
    let last = function.rsplit("::").next().unwrap_or(function);
    format!("{owner}: {image}`{last}")
}

/// Who looks from outside.
struct Witness {
    socket: PathBuf,
    kernel: Vec<Function>,
    programs: Vec<(String, Vec<Function>)>,
    /// Roots of the programs' tables, in the order in which they were learnt.
    roots: Vec<u64>,
    dice: Rng,
}

impl Witness {
    fn new(socket: PathBuf, image: &Image, dice: Rng) -> Result<Self> {
        let functions = |file: &Path| -> Result<Vec<Function>> {
            let bytes = fs::read(file).with_context(|| file.display().to_string())?;
            elf::functions(&bytes)
        };
        let symbols = image.kernel.with_file_name("symbols");
        let program = |(name, _): (&str, &str)| {
            Ok((name.to_owned(), functions(&symbols.join("bin").join(name))?))
        };
        Ok(Self {
            socket,
            kernel: functions(&symbols.join("kernel"))?,
            programs: MIX.into_iter().map(program).collect::<Result<_>>()?,
            roots: Vec::new(),
            dice,
        })
    }

    /// Lets the machine run for a moment, and looks where it is.
    fn look(&mut self) -> Result<Registers> {
        thread::sleep(Duration::from_micros(self.dice.u64(APART)));
        let mut remote = Remote::attach(&self.socket)?;
        let registers = remote.registers()?;
        remote.detach()?;
        Ok(registers)
    }

    /// Learns the tables of the program that was just started: what else is often in user mode.
    fn learn(&mut self, name: &str) -> Verdict {
        let mut roots = BTreeMap::<u64, usize>::new();
        for _ in 0..STOPS {
            let at = self.look()?;
            if at.is_user() && !self.roots.contains(&at.cr3()) {
                let stops = roots.entry(at.cr3()).or_default();
                *stops += 1;
                if *stops == KNOWN {
                    self.roots.push(at.cr3());
                    return Ok(());
                }
            }
        }
        bail!("{name} does not run")
    }

    /// Looks until it is over.
    fn watch(&mut self, over: &AtomicBool, looks: &AtomicU64) -> Result<Histogram> {
        let mut seen = Histogram::new();
        while !over.load(Ordering::Relaxed) {
            let at = self.look()?;
            if let Some(function) = self.place(&at) {
                looks.fetch_add(u64::from(!function.starts_with('(')), Ordering::Relaxed);
                *seen.entry(function).or_default() += 1;
            }
        }
        Ok(seen)
    }

    /// Where a program of the mix is.
    fn place(&self, at: &Registers) -> Option<String> {
        let owner = self.roots.iter().position(|&root| root == at.cr3())?;
        let (owner, functions) = &self.programs[owner];
        let (image, functions) = match at.rip() {
            KERNEL.. if NMI_STACK.contains(&at.rsp()) => return Some("(the sampler)".into()),
            KERNEL.. => ("kernel", &self.kernel),
            _ => ("program", functions),
        };
        let index = functions.partition_point(|function| function.address <= at.rip());
        let function = &functions[index.checked_sub(1)?];
        let name = display_name(function.name.as_bytes(), &[]);
        Some(key(owner, image, &name))
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // QEMU leaves it behind when the guest ends it.
        let _ = fs::remove_file(&self.socket);
    }
}

/// Compares the two, function by function; those that are too rare, together.
fn judge(reported: &Histogram, seen: &Histogram) -> Verdict {
    let mut rows = BTreeMap::<&str, [u64; 2]>::new();
    for (which, histogram) in [reported, seen].into_iter().enumerate() {
        for (function, count) in histogram.iter().filter(|(name, _)| !name.starts_with('(')) {
            rows.entry(function).or_default()[which] += count;
        }
    }
    let (mut frequent, rare): (Vec<_>, Vec<_>) = rows
        .into_iter()
        .partition(|(_, counts)| counts.iter().sum::<u64>() >= LEAST);
    let rest = rare
        .iter()
        .fold([0; 2], |[a, b], (_, counts)| [a + counts[0], b + counts[1]]);
    if rest.iter().sum::<u64>() >= LEAST {
        frequent.push(("(others)", rest));
    }
    frequent.sort_by_key(|(_, counts)| std::cmp::Reverse(counts[0]));
    let total = [0, 1].map(|which| {
        frequent
            .iter()
            .map(|(_, counts)| counts[which])
            .sum::<u64>()
    });
    ensure!(
        frequent.len() > 1 && total[0] > 0 && total[1] > 0,
        "nothing to compare: {frequent:?}"
    );
    println!("{:<58} {:>8} {:>8}", "function", "reported", "seen");
    let share = |counts: [u64; 2], which: usize| counts[which] as f64 / total[which] as f64;
    for (name, counts) in &frequent {
        let percent = [0, 1].map(|which| 100.0 * share(*counts, which));
        println!("{name:<58} {:>7.2}% {:>7.2}%", percent[0], percent[1]);
    }
    let apart = frequent
        .iter()
        .map(|(_, counts)| (share(*counts, 0) - share(*counts, 1)).abs());
    let (distance, statistic) = (apart.sum::<f64>() / 2.0, chi_squared(&frequent, total));
    let bound = bound(frequent.len() - 1);
    println!(
        "{} samples reported, {} seen and {} in the sampler; total variation {:.2} %, chi-squared {statistic:.1} of {bound:.1}",
        total[0],
        total[1],
        seen.get("(the sampler)").copied().unwrap_or_default(),
        100.0 * distance
    );
    ensure!(statistic <= bound, "the report and the witness differ");
    Ok(())
}

/// How far the counts are from having the same shares.
fn chi_squared(rows: &[(&str, [u64; 2])], total: [u64; 2]) -> f64 {
    let all = (total[0] + total[1]) as f64;
    let term = |count: u64, expected: f64| (count as f64 - expected).powi(2) / expected;
    let row = |counts: [u64; 2]| -> f64 {
        let both = (counts[0] + counts[1]) as f64;
        (0..2)
            .map(|which| term(counts[which], both * total[which] as f64 / all))
            .sum()
    };
    rows.iter().map(|(_, counts)| row(*counts)).sum()
}

/// What it exceeds once in a million at most, with so many degrees of freedom: Wilson and Hilferty's approximation, which is a little too
/// wide there.
fn bound(freedom: usize) -> f64 {
    const DEVIATIONS: f64 = 4.753;
    let (freedom, part) = (freedom as f64, 2.0 / (9.0 * freedom as f64));
    freedom * (1.0 - part + DEVIATIONS * part.sqrt()).powi(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(counts: [u64; 3]) -> Histogram {
        let names = ["a: program`x", "a: program`y", "a: kernel`z"];
        names.map(str::to_owned).into_iter().zip(counts).collect()
    }

    #[test]
    fn the_same_shares_pass_and_others_do_not() {
        let reported = histogram([6000, 3000, 1000]);
        assert!(judge(&reported, &histogram([1200, 600, 200])).is_ok());
        assert!(judge(&reported, &histogram([1180, 640, 180])).is_ok());
        assert!(judge(&reported, &histogram([1050, 750, 200])).is_err());
        assert!(judge(&reported, &histogram([1300, 700, 0])).is_err());
        assert!(judge(&reported, &Histogram::new()).is_err());
    }

    #[test]
    fn the_bound_is_never_too_narrow() {
        // The distribution's upper quantiles of one in a million, by numerical integration.
        for (freedom, exact) in [(2, 27.63), (5, 35.89), (10, 46.86), (30, 82.04)] {
            let is = bound(freedom);
            assert!(is >= exact && is < exact * 1.1, "{freedom}: {is}");
        }
    }
}

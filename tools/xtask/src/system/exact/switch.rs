//! Whether the chain of a sample is the true one while the kernel changes from one thread to another.
//!
//! The truth there is by definition: a sample belongs to the thread that the CPU runs, and the callers of the kernel's functions
//! are those of the entry that is on, with the program that made it. So while the thread runs that entered, the chain goes on in
//! its program. Between threads it ends with the kernel's frames. When another thread runs, its program has not called what the
//! kernel is doing: a gap must stand between.
//!
//! Which thread runs only the kernel knows, so the samples are its own: an NMI lands on each instruction of an entry. The
//! kernel's callers are those of the calls and returns that were executed; the programs' chains are those of the samples at the
//! two ends, in the stubs, which the sweep holds to the truth.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};
use iced_x86::Mnemonic;
use ipc::abi::profile::Marker;
use ipc::bootfs::KERNEL;
use kcore::apic::vector;
use profd::atlas::Atlas;
use profd::catalog::Catalog;
use profd::chain::{self, Step};
use profd::process::Processes;
use sample_ring::Sample;

use crate::test::{Context, Verdict as Passed};

use super::super::disassembly::Kernel;
use super::super::probe::{Probe, Registers};
use super::super::sweep::landing::Landing;
use super::DEEP;
use super::sampler::Layout;
use super::shadow::{self, Calls, Flow};
use super::verdict::{Truth, Verdict, judge};

/// Bytes of a SYSCALL.
const SYSCALL: u64 = 2;
/// Instructions that must be found at which another thread runs than the one that entered.
const OTHERS: usize = 100;
/// Entries that are looked at.
const ENTRIES: usize = 60;
/// Instructions of the longest entry.
const STEPS: usize = 20_000;

/// Sends NMIs into entries of programs that call each other.
///
/// # Errors
/// If a chain is wrong.
pub fn exact(context: &Context<'_>) -> Passed {
    let image = context.image()?;
    let bytes = super::bytes(image)?;
    let archive = super::archive(&bytes)?;
    let catalog = super::catalog(&archive);
    let kernel = archive.find(KERNEL).context("no kernel")?.data;
    let mut probe = Probe::boot(image)?;
    probe.session.start("front")?;
    let (remote, ring) = probe.profile("profile 2000 all 1 -v")?;
    let end_of_nmi = Kernel::new(kernel.to_vec())?.first("nmi_entry", Mnemonic::Iretq)?;
    let mut switch = Switch {
        layout: Layout::new(kernel)?,
        catalog: &catalog,
        processes: Processes::default(),
        landing: Landing::new(&mut probe, remote, ring, end_of_nmi),
        seen: BTreeSet::new(),
        hit: BTreeSet::new(),
        counts: Counts::default(),
    };
    switch.entries()?;
    let Switch {
        landing, counts, ..
    } = switch;
    landing.leave()?;
    probe.session.guest.send(b"\x03")?;
    probe.session.guest.prompt()?;
    probe.session.power_off()?;
    eprintln!(
        "{} entries, {} of them to another thread: {} instructions for who entered, {} for nobody, {} for another, with a gap",
        counts.entries, counts.changes, counts.own, counts.nobody, counts.others
    );
    ensure!(counts.others >= OTHERS, "too few changes of threads");
    Ok(())
}

#[derive(Debug, Default)]
struct Counts {
    entries: usize,
    changes: usize,
    own: usize,
    nobody: usize,
    others: usize,
}

/// Which thread runs in the kernel, compared to the one that entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Runs {
    Same,
    Nobody,
    Other,
}

/// A sample in the kernel, and its true callers there.
struct Taken {
    sample: Sample,
    kernel: Vec<u64>,
}

struct Switch<'c, 'a, 'p> {
    layout: Layout,
    catalog: &'c Catalog<'a>,
    processes: Processes,
    landing: Landing<'p>,
    /// Where programs entered, by their root and where they go on; a tick is one place.
    seen: BTreeSet<(u64, u64)>,
    /// Instructions that were judged, by who ran.
    hit: BTreeSet<(u64, Runs)>,
    counts: Counts,
}

impl Switch<'_, '_, '_> {
    /// Goes through entries at places that are new.
    fn entries(&mut self) -> Passed {
        let entry = self.layout.map.syscall.start;
        let timer = self.layout.vector(vector::TIMER);
        for _ in 0..ENTRIES {
            let at = self.landing.remote.run_to(&[entry, timer])?;
            self.landing.forget()?;
            let place = if at.rip() == entry {
                (at.cr3(), at.rcx())
            } else {
                (0, 0)
            };
            if self.seen.insert(place) {
                self.entry(at)?;
            } else {
                self.landing.remote.step()?;
            }
        }
        Ok(())
    }

    /// From the first instruction of an entry to the last, or to idle.
    fn entry(&mut self, mut at: Registers) -> Passed {
        let from = self.landing.take(&at)?;
        self.learn(&from, &at)?;
        let mut kernel = Calls::none();
        let mut taken = Vec::new();
        let mut last = from;
        for _ in 0..STEPS {
            if at.is_user() || self.layout.idle.contains(&at.rip()) {
                self.counts.entries += 1;
                let to = self.landing.take(&at)?;
                self.learn(&to, &at)?;
                return self.judge(&from, &to, &taken);
            }
            let runs = match owner(&last)? {
                runs if runs == owner(&from)? => Runs::Same,
                Marker { tid: 0, .. } => Runs::Nobody,
                _ => Runs::Other,
            };
            if !self.layout.map.in_stub(at.rip()) && self.hit.insert((at.rip(), runs)) {
                last = self.landing.take(&at)?;
                taken.push(Taken {
                    sample: last,
                    kernel: kernel.innermost_first().collect(),
                });
            }
            let flow = Flow::of(&shadow::decode(self.landing.ram(), &at));
            self.landing.remote.step()?;
            let after = self.landing.remote.registers()?;
            if !after.is_user() {
                kernel.executed(flow, after.rip())?;
            }
            at = after;
        }
        bail!("an entry does not end");
    }

    /// Learns whose thread it is that this sample is of, by the page tables that are in use.
    fn learn(&mut self, sample: &Sample, at: &Registers) -> Passed {
        if owner(sample)?.tid != 0 {
            let ram = self.landing.ram();
            super::learn(&mut self.processes, self.catalog, ram, at.cr3())?;
        }
        Ok(())
    }

    /// Judges the samples of an entry by those at its first and its last instruction.
    fn judge(&mut self, from: &Sample, to: &Sample, taken: &[Taken]) -> Passed {
        let atlas = Atlas {
            catalog: self.catalog,
            processes: &self.processes,
        };
        let (from_owner, to_owner) = (owner(from)?, owner(to)?);
        for Taken { sample, kernel } in taken {
            let owner = owner(sample)?;
            let chain = chain::chain(sample, DEEP, atlas);
            let (program, expected) = if owner.tid == 0 {
                self.counts.nobody += 1;
                (Vec::new(), Verdict::Exact)
            } else if owner == from_owner {
                self.counts.own += 1;
                (entered(program(from, 1), sample), Verdict::Exact)
            } else {
                ensure!(
                    owner == to_owner,
                    "{owner:?} runs, between {from_owner:?} and {to_owner:?}"
                );
                self.counts.others += 1;
                (program(to, 0), Verdict::Marked)
            };
            let place = |&address: &u64| atlas.owner(owner.pid).place(address);
            let truth = Truth {
                callers: kernel.iter().chain(&program).map(place).collect(),
                complete: true,
            };
            // Whom the thread serves is another test's matter.
            let is_own = |step: &&Step| !matches!(step, Step::Client(_) | Step::MissingClient);
            let steps: Vec<Step> = chain.key.steps.iter().take_while(is_own).copied().collect();
            let verdict = judge(&steps, chain.beyond.open, &truth);
            ensure!(
                verdict == expected,
                "at {:x?}: {verdict:?}, not {expected:?}: {steps:x?}, not {truth:x?}",
                chain.leaf
            );
            // The one gap is where the kernel's frames end.
            let gap = steps.iter().position(|step| *step == Step::Missing);
            ensure!(gap.is_none_or(|gap| gap == kernel.len()), "{steps:x?}");
        }
        self.counts.changes += usize::from(to_owner.tid != 0 && to_owner != from_owner);
        Ok(())
    }
}

/// The thread that a sample is of; it has no number if there is none.
fn owner(sample: &Sample) -> Result<Marker> {
    let own = sample.parts().next();
    own.map(|own| own.owner).context("no frames")
}

/// The program's frames in a sample, of which so many are the kernel's.
fn program(sample: &Sample, kernel: usize) -> Vec<u64> {
    let own = sample.parts().next();
    let frames = own.and_then(|own| own.frames.get(kernel..));
    frames.unwrap_or_default().to_vec()
}

/// The frames of the program that entered. A call that is not finished begins again: the kernel then sets RIP back to its SYSCALL.
fn entered(mut program: Vec<u64>, sample: &Sample) -> Vec<u64> {
    if let Some(rip) = program.first_mut()
        && self::program(sample, 0).contains(&(*rip - SYSCALL))
    {
        *rip -= SYSCALL;
    }
    program
}

//! Steps through what a machine does after a line was typed, with a sample at each instruction.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use iced_x86::{Instruction, InstructionInfoFactory};
use kcore::apic::vector;
use kcore::base::block::{REGS_END, SCRATCH};
use profd::atlas::Atlas;
use profd::catalog::Catalog;
use profd::chain;
use profd::process::Processes;
use profd::unwind::Rule;

use crate::test::Verdict as Passed;

use super::super::probe::{Block, Probe, Ram, Registers, Remote};
use super::DEEP;
use super::paths::state::State;
use super::sampler::{Layout, Moment, Sampler};
use super::shadow::{self, Calls, Flow, Shadow};
use super::tally::{Callers, Tally};
use super::thread::{Current, Thread};

/// Most steps from an entry on, and most of them in a row without an instruction that is new.
const STEPS: usize = 2000;
const STALE: usize = 200;
/// Steps in the kernel without one after which the rest of the way to a program is not stepped through.
const KNOWN_WAY: usize = 40;
/// Most interrupts that are sent to a program where a caller is hard to find.
const INTERRUPTS: usize = 12;

/// Holds what an instruction is taken to do where nothing runs (`paths/state.rs`) to what the machine did.
fn hold(ram: &Ram, instruction: &Instruction, at: &Registers, after: &Registers) -> Passed {
    let before = State {
        rsp: at.rsp(),
        rbp: Some(at.rbp()),
        stack: BTreeMap::new(),
    };
    let word = |address| ram.word_at(at.cr3(), address);
    let taken = match Flow::of(instruction) {
        Flow::Call(back) => before.called(back),
        Flow::Return => before.returned(),
        Flow::Enter(_) | Flow::Other => before
            .after(instruction, &mut InstructionInfoFactory::new(), word)
            .map_err(|lost| anyhow::anyhow!("{at:?}: {lost}"))?,
    };
    let is_held = taken.rsp == after.rsp() && taken.rbp.is_none_or(|rbp| rbp == after.rbp());
    ensure!(is_held, "{at:?} led to {after:?}, not to {taken:x?}");
    Ok(())
}

/// A machine that is stepped through what becomes of typed lines.
pub struct Walk<'c, 'a> {
    sampler: Sampler,
    layout: Layout,
    catalog: &'c Catalog<'a>,
    processes: Processes,
    /// By the program's root, or 0 for the kernel, and the address.
    decoded: BTreeMap<(u64, u64), Instruction>,
    /// What was found.
    pub tally: Tally,
    block: Option<Block>,
    /// System calls that steps began at, by the root and where they return to.
    seen: BTreeSet<(u64, u64)>,
    /// Where a program was interrupted, by the root and the address.
    interrupted: BTreeSet<(u64, u64)>,
}

impl<'c, 'a> Walk<'c, 'a> {
    /// Of a machine whose kernel is laid out so, and has these files.
    ///
    /// # Errors
    /// If the driver refuses.
    pub fn new(layout: Layout, catalog: &'c Catalog<'a>) -> Result<Self> {
        Ok(Self {
            sampler: Sampler::new(layout.map)?,
            layout,
            catalog,
            processes: Processes::default(),
            decoded: BTreeMap::new(),
            tally: Tally::default(),
            block: None,
            seen: BTreeSet::new(),
            interrupted: BTreeSet::new(),
        })
    }

    /// Types a line, and steps through what becomes of it, from each system call that is made at a place for the first time. Looks at so
    /// many entries: system calls and ticks.
    ///
    /// # Errors
    /// If what happens cannot be followed.
    pub fn line(&mut self, probe: &mut Probe, line: &str, entries: usize) -> Passed {
        let mut remote = probe.stop()?;
        probe.session.guest.send(format!("{line}\n").as_bytes())?;
        let entry = self.layout.map.syscall.start;
        let timer = self.layout.vector(vector::TIMER);
        for _ in 0..entries {
            let at = remote.run_to(&[entry, timer])?;
            if at.rip() == entry && self.block.is_none() {
                self.block = Some(Block::find(&probe.ram, &at)?);
            }
            // A tick is one place, whatever it interrupts.
            let place = if at.rip() == entry {
                (at.cr3(), at.rcx())
            } else {
                (0, 0)
            };
            if self.seen.insert(place) {
                self.steps(probe, &mut remote)?;
            } else {
                remote.step()?;
            }
        }
        remote.detach()?;
        probe.session.guest.prompt()?;
        Ok(())
    }

    /// From the first instruction of an entry on.
    fn steps(&mut self, probe: &mut Probe, remote: &mut Remote) -> Passed {
        let Some(block) = self.block.clone() else {
            // A tick before the first system call.
            return remote.step();
        };
        let kick = self.layout.vector(vector::KICK);
        let ways_out = [self.layout.exit, self.layout.idle.start];
        let mut shadow = Shadow::at_entry();
        let mut at = remote.registers()?;
        let (mut known, mut stale) = (self.tally.instructions(), 0);
        for _ in 0..STEPS {
            if self.layout.idle.contains(&at.rip()) || stale == STALE {
                break;
            }
            let ram = &probe.ram;
            let end = block.word(ram, &at, REGS_END)?;
            let between = self.look(ram, &block, &mut shadow, &at, end)?;
            stale = if self.tally.instructions() > known {
                0
            } else {
                stale + 1
            };
            known = self.tally.instructions();
            if stale >= KNOWN_WAY && !at.is_user() && !shadow.on_purpose {
                at = remote.run_to(&ways_out)?;
                shadow.forget_kernel();
                stale = 0;
                continue;
            }
            let (flow, after);
            if between
                && self.interrupted.len() < INTERRUPTS
                && self.interrupted.insert((at.cr3(), at.rip()))
            {
                stale = 0;
                shadow.on_purpose = true;
                probe.bus.send_interrupt(vector::KICK)?;
                flow = Flow::Other;
                after = remote.run_to(&[kick])?;
            } else {
                let space = if at.is_user() { at.cr3() } else { 0 };
                let decoded = self.decoded.entry((space, at.rip()));
                let instruction = *decoded.or_insert_with(|| shadow::decode(ram, &at));
                flow = Flow::of(&instruction);
                remote.step()?;
                after = remote.registers()?;
                if at.is_user() == after.is_user() && !self.layout.map.in_stub(at.rip()) {
                    hold(ram, &instruction, &at, &after)?;
                }
            }
            shadow.step(flow, &at, &after, end)?;
            if self.layout.map.in_stub(after.rip()) {
                shadow.forget_kernel();
            }
            at = after;
        }
        Ok(())
    }

    /// Makes the sample of this moment, and judges its chain. Returns whether a program is where its function's frame is not there, or no
    /// more.
    fn look(
        &mut self,
        ram: &Ram,
        block: &Block,
        shadow: &mut Shadow,
        at: &Registers,
        end: u64,
    ) -> Result<bool> {
        let known = shadow.threads.get_mut(&end);
        let mut known = known.filter(|known| known.root == at.cr3());
        let pid = match &known {
            Some(known) => super::learn(&mut self.processes, self.catalog, ram, known.root)?,
            None => 0,
        };
        let moment = Moment {
            ram,
            registers: at,
            scratch: block.word(ram, at, SCRATCH)?,
            stack: block.stack.clone(),
        };
        let thread = known
            .as_ref()
            .and_then(|known| Thread::read(ram, known.root, pid, end));
        let map = &self.layout.map;
        let is_saved = !map.syscall.contains(at.rip()) && !map.interrupts.contains(at.rip());
        if let (Some(known), Some(thread)) = (&mut known, &thread)
            && is_saved
            && !at.is_user()
        {
            self.tally.again += usize::from(known.saved(thread.rip()));
        }
        let current = Current(thread.as_ref());
        let interrupted = moment.interrupted(&self.layout.idle, current);
        let sample = self.sampler.sample(&interrupted, &moment, current)?;
        let atlas = Atlas {
            catalog: self.catalog,
            processes: &self.processes,
        };
        let chain = chain::chain(&sample, DEEP, atlas);
        let own = sample.parts().next().context("no frames")?;
        let has_gap = chain.key.steps.contains(&chain::Step::Missing) || chain.beyond.open;
        let mut callers: Vec<u64> = Vec::new();
        let mut complete = true;
        if at.is_user() {
            let known = known.as_mut().context("a program without a thread")?;
            if !known.calls.complete && !has_gap {
                // Taken for true from here on.
                let steps = chain.key.steps.iter();
                let places = steps.filter_map(|step| match step {
                    chain::Step::Caller(place) => Some(place.address),
                    _ => None,
                });
                known.calls = Calls::all(places.collect());
            }
            callers.extend(known.calls.innermost_first());
            complete = known.calls.complete;
        } else {
            callers.extend(shadow.kernel.innermost_first());
            if let Some(known) = known {
                callers.push(known.left.0);
                callers.extend(known.calls.innermost_first());
                complete = known.calls.complete;
            }
        }
        let callers = Callers {
            pid: own.owner.pid,
            addresses: callers,
            complete,
        };
        let on_purpose = shadow.on_purpose && !at.is_user();
        self.tally.judge(atlas, &chain, &callers, on_purpose);
        let is_between = matches!(atlas.rule(chain.leaf), Rule::StackPointer { .. });
        Ok(at.is_user() && complete && is_between)
    }
}

//! Whether the chain of a sample is the true one, wherever the sample hits: a machine is stepped through the kernel and through programs,
//! instruction by instruction, and at each one the sample is made that an NMI would take there.
//!
//! The record is made by the kernel's own code, and its chain by profd's, with the files of the boot archive: frames, repair and all. The true
//! chain is kept apart, by the calls and returns that were executed. Of a thread that was in the middle of something when the stepping began,
//! the first chain in user mode is taken for true, and held to it by every return that follows.
//!
//! Steps let no interrupt in, so they begin at one that has come, or at a system call, and end where the CPU would wait for one.

mod paths;
mod sampler;
mod shadow;
mod switch;
mod tally;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;
use std::ops::Range;

use anyhow::{Context as _, Result, ensure};
use iced_x86::{Instruction, InstructionInfoFactory};
use ipc::abi::startup::{STARTUP_PAGE, StartupHeader};
use ipc::bootfs::{Bootfs, KERNEL};
use ipc::proto::Text;
use ipc::proto::init::{BUILD_ID_MAX, Name};
use kcore::apic::vector;
use profd::atlas::Atlas;
use profd::catalog::{Catalog, Content};
use profd::chain;
use profd::process::{Process, Processes};
use profd::unwind::Rule;

use crate::test::{Case, Context, Verdict as Passed};

use super::probe::{Probe, Ram, Registers, Remote};
use paths::state::State;
use sampler::{Layout, Moment, Sampler, Thread};
use shadow::{Calls, Flow, Shadow};
use tally::{Callers, Tally};

/// Functions that are gone through at least.
const FUNCTIONS: usize = 200;
/// Most chains with a gap: one in so many.
const MARKED: usize = 100;
/// Entries that are looked at after a line was typed: system calls and ticks.
const ENTRIES: usize = 150;
/// Most steps from an entry on, and most of them in a row without an instruction that is new.
const STEPS: usize = 2000;
const STALE: usize = 200;
/// Steps in the kernel without one after which the rest of the way to a program is not stepped through.
const KNOWN_WAY: usize = 40;
/// Most interrupts that are sent to a program where a caller is hard to find.
const INTERRUPTS: usize = 12;
/// Lines that are typed.
const LINES: [&str; 14] = [
    "run shares 60 30 10 -t 1",
    "ps",
    "run chain 4 -t 1",
    "mem",
    "profile 10 all 4",
    "map 1",
    "top",
    "threads",
    "dmesg",
    "irq",
    "stacks",
    "objects 1",
    "run syscalls -t 1",
    "run crash null",
];
/// Bits of code that is decoded.
const BITS: u32 = 64;
/// Frames beyond what any chain has.
const DEEP: u8 = u8::MAX;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("chains_are_exact_at_every_instruction", || exact(context)),
        Case::new("chains_are_exact_between_threads", || {
            switch::exact(context)
        }),
        Case::new("chains_are_exact_on_every_path", || paths::exact(context)),
    ]
}

/// The files that profd has.
fn catalog<'a>(archive: &Bootfs<'a>) -> Catalog<'a> {
    let mut catalog = Catalog::new(archive.find(KERNEL).map(Content::File));
    for file in archive.files() {
        catalog.add(file.name, Content::File(file));
    }
    catalog
}

/// A process that runs the image of this name.
fn process(name: &str) -> Process {
    Process {
        name: Name::cut(name),
        image: Text::cut(name),
        build_id: [0; BUILD_ID_MAX],
        load_bias: 0,
        ended: None,
    }
}

fn exact(context: &Context<'_>) -> Passed {
    let image = context.image()?;
    let bootfs = std::fs::read(image.bootfs.as_ref().context("no archive")?)?;
    let bootfs = Bootfs::parse(&bootfs).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let catalog = catalog(&bootfs);
    let layout = Layout::new(&std::fs::read(&image.kernel)?)?;
    let mut probe = Probe::boot(image)?;
    let mut walk = Walk {
        sampler: Sampler::new(layout.map)?,
        layout,
        catalog: &catalog,
        processes: Processes::default(),
        decoded: BTreeMap::new(),
        tally: Tally::default(),
        block: None,
        seen: BTreeSet::new(),
        interrupted: BTreeSet::new(),
    };
    for line in LINES {
        walk.line(&mut probe, line)?;
    }
    probe.session.power_off()?;
    let tally = walk.tally;
    let whole = tally.whole(&catalog, &bootfs)?;
    eprint!("{}", tally.table(&catalog, whole));
    tally.check(FUNCTIONS, MARKED)
}

/// Where the CPU's block and its kernel stack are.
#[derive(Clone, Debug)]
struct Block {
    at: u64,
    stack: Range<u64>,
}

/// Offsets in the block (`percpu.rs`).
const REGS_END: u64 = 8;
const SCRATCH: u64 = 16;
const STACK_TOP: u64 = 24;
const PAGE: u64 = 4096;

impl Block {
    /// Of a CPU that is at the first instruction of an entry from a program.
    fn find(ram: &Ram, at: &Registers) -> Result<Self> {
        let block = at.kernel_gs();
        let top = ram.word_at(at.cr3(), block + STACK_TOP);
        let top = top.context("GS is not that of the kernel")?;
        let mut start = top & !(PAGE - 1);
        while ram.physical(at.cr3(), start - PAGE).is_some() {
            start -= PAGE;
        }
        let stack = start..top;
        Ok(Self { at: block, stack })
    }
    fn word(&self, ram: &Ram, at: &Registers, offset: u64) -> Result<u64> {
        let word = ram.word_at(at.cr3(), self.at + offset);
        word.context("the CPU's block is not mapped")
    }
}

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

struct Walk<'c, 'a> {
    sampler: Sampler,
    layout: Layout,
    catalog: &'c Catalog<'a>,
    processes: Processes,
    /// By the program's root, or 0 for the kernel, and the address.
    decoded: BTreeMap<(u64, u64), Instruction>,
    tally: Tally,
    block: Option<Block>,
    /// System calls that steps began at, by the root and where they return to.
    seen: BTreeSet<(u64, u64)>,
    /// Where a program was interrupted, by the root and the address.
    interrupted: BTreeSet<(u64, u64)>,
}

impl Walk<'_, '_> {
    /// Types a line, and steps through what becomes of it, from each system call that is made at a place for the first time.
    fn line(&mut self, probe: &mut Probe, line: &str) -> Passed {
        let mut remote = probe.stop()?;
        probe.session.guest.send(format!("{line}\n").as_bytes())?;
        let entry = self.layout.map.syscall.start;
        let timer = self.layout.vector(vector::TIMER);
        for _ in 0..ENTRIES {
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
            Some(known) => learn(&mut self.processes, self.catalog, ram, known.root)?,
            None => 0,
        };
        let moment = Moment {
            ram,
            registers: at,
            scratch: block.word(ram, at, SCRATCH)?,
            stack: block.stack.clone(),
            thread: known
                .as_ref()
                .and_then(|known| Thread::read(ram, known.root, pid, end)),
        };
        let interrupted = moment.interrupted(&self.layout.idle);
        let sample = self.sampler.sample(&interrupted, &moment)?;
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

/// Learns which process has these page tables, by its startup page.
fn learn(processes: &mut Processes, catalog: &Catalog<'_>, ram: &Ram, root: u64) -> Result<u32> {
    let word = |at| {
        ram.word_at(root, STARTUP_PAGE + at)
            .context("no startup page")
    };
    let pid = word(offset_of!(StartupHeader, pid) as u64)? as u32;
    if processes.get(pid).is_some() {
        return Ok(pid);
    }
    // The name comes first behind the header: its length and its text.
    let first = size_of::<StartupHeader>() as u64;
    let length = word(first)? & 0xffff;
    let text = (first + 2..first + 2 + length).map(|at| ram.byte_at(root, STARTUP_PAGE + at));
    let text: Option<Vec<u8>> = text.collect();
    let name = String::from_utf8(text.context("no startup page")?)?;
    ensure!(catalog.find(&name).is_some(), "no image of `{name}`");
    processes.start(pid, process(&name));
    Ok(pid)
}

//! Whether the chain of a sample is the true one at every instruction of every function of every image, also of those that
//! nothing runs: errors, panics, what only other machines have.
//!
//! No machine goes there, so the way is made up: each function is called by callers that are known, and at each branch both sides
//! are taken. Of what instructions do, only that is carried out on which a chain hangs: RSP, RBP, and the words of the stack that
//! hold what RBP was (`state.rs`). That this is what the machine does, the test that steps a machine holds against each of its
//! steps. All other words of the stack look like return addresses of somebody else.
//!
//! At each instruction the sample is judged that hits it; at each call also the one that hits the callee, at its first
//! instruction and once its frame is built; in programs also the one that hits the kernel which interrupts them there. The stubs
//! have no callers, and a test that lands on each of their instructions.

mod code;
mod coverage;
mod explore;
mod scene;
pub mod state;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use iced_x86::{FlowControl, Instruction, Mnemonic};
use ipc::bootfs::{KERNEL, PROGRAMS};
use kcore::profile::{Interrupted, KernelMap};
use profd::atlas::Atlas;
use profd::catalog::base_name;
use profd::chain;
use profd::process::Processes;

use crate::build::elf::Function;
use crate::test::{Context, Verdict as Passed};

use super::sampler::{Layout, Sampler};
use super::tally::{Callers, Tally};
use super::{DEEP, FUNCTIONS, MARKED};
use code::Code;
use coverage::{Coverage, Visits, exception};
use explore::Explorer;
use scene::{Called, Scene};
use state::State;

/// What was judged, in the target directory.
const TABLE: &str = "chains-on-every-path.txt";

/// Judges all images.
///
/// # Errors
/// If a chain is wrong, too many have a gap, or a function is not gone through whole.
pub fn exact(context: &Context<'_>) -> Passed {
    let image = context.image()?;
    let bytes = super::bytes(image)?;
    let archive = super::archive(&bytes)?;
    let catalog = super::catalog(&archive);
    let kernel = archive.find(KERNEL).context("no kernel")?.data;
    let layout = Layout::new(kernel)?;
    let code = Code::decode(kernel, |at| layout.map.text.contains(at))?;
    let is_function = |function: &Function| {
        !layout.map.in_stub(function.address) && !layout.idle.contains(&function.address)
    };
    let in_stub = |at: &Instruction| layout.map.in_stub(at.ip());
    let entry = code.all().filter(|at| in_stub(at)).find(|at| is_call(at));
    let kernel = Actors::of(&code, is_function, entry.map(Instruction::next_ip))?;
    let programs = archive
        .files()
        .filter(|file| file.name.starts_with(PROGRAMS))
        .zip(1..);
    let mut processes = Processes::default();
    let mut all = BTreeMap::new();
    for (file, pid) in programs {
        processes.start(pid, super::process(base_name(file.name)));
        let code = Code::decode(file.data, |_| true)?;
        let actors = Actors::of(&code, |_| true, None)?;
        all.insert(pid, (code, actors));
    }
    let (&pid, (_, program)) = all.first_key_value().context("no programs")?;
    let mut judge = Judge {
        sampler: Sampler::new(layout.map)?,
        atlas: Atlas {
            catalog: &catalog,
            processes: &processes,
        },
        tally: Tally::default(),
        coverage: Coverage::default(),
        map: layout.map,
        kernel: &kernel,
    };
    judge.kernel(pid, program, &code, is_function)?;
    for (&pid, (code, actors)) in &all {
        judge.program(pid, code, actors)?;
    }
    let Judge {
        tally, coverage, ..
    } = judge;
    let text = coverage.table();
    let path = context.workspace.target.join(TABLE);
    std::fs::write(&path, &text).with_context(|| path.display().to_string())?;
    eprint!("{}", tally.table(&catalog, coverage.whole()));
    tally.check(FUNCTIONS, MARKED)?;
    coverage.check()
}

fn is_call(at: &Instruction) -> bool {
    matches!(
        at.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall
    ) && at.mnemonic() != Mnemonic::Syscall
}

/// Addresses of an image that a made-up chain is of.
struct Actors {
    /// Return addresses, innermost first.
    callers: Vec<u64>,
    /// One that is not among them.
    stranger: u64,
    /// An instruction of a function that has just built its frame.
    framed: u64,
}

impl Actors {
    /// Of the functions that are wanted: callers whose call is not the last instruction of its function; `last` comes behind them.
    fn of(
        code: &Code<'_>,
        is_wanted: impl Fn(&Function) -> bool,
        last: Option<u64>,
    ) -> Result<Self> {
        let wanted = || code.functions.iter().filter(|function| is_wanted(function));
        let calls = wanted().filter_map(|function| {
            let call = code.of(function).find(|at| is_call(at))?;
            function
                .range()
                .contains(&call.next_ip())
                .then_some(call.next_ip())
        });
        let mut calls = calls.skip(1);
        let mut callers: Vec<u64> = calls.by_ref().take(3).collect();
        callers.extend(last);
        let framed = wanted().find_map(|function| {
            let mut all = code.of(function);
            let begins = [all.next()?.mnemonic(), all.next()?.mnemonic()];
            (begins == [Mnemonic::Push, Mnemonic::Mov]).then_some(all.next()?.ip())
        });
        Ok(Self {
            callers,
            stranger: calls.next().context("no further call")?,
            framed: framed.context("no function with a frame")?,
        })
    }
}

struct Judge<'j, 'a> {
    sampler: Sampler,
    atlas: Atlas<'j, 'a>,
    tally: Tally,
    coverage: Coverage,
    map: KernelMap,
    kernel: &'j Actors,
}

impl Judge<'_, '_> {
    /// The kernel's functions, while it works for a program.
    fn kernel(
        &mut self,
        pid: u32,
        program: &Actors,
        code: &Code<'_>,
        is_wanted: impl Fn(&Function) -> bool,
    ) -> Passed {
        let user = Called::in_program(&program.callers);
        let user_state = user.entry.framed();
        let called = Called::in_kernel(&self.kernel.callers);
        let nobody = Called::in_kernel(&[]);
        let framed = self.kernel.framed;
        let explorer = Explorer::new(code, &called.entry)?;
        let mut visits = Visits::default();
        let wanted = || code.functions.iter().filter(|it| is_wanted(it));
        for function in wanted().filter(|it| exception(KERNEL, it).is_none()) {
            let called = if code.is_outermost(function) {
                &nobody
            } else {
                &called
            };
            let found = explorer.explore(function, &called.entry, |at, state| {
                visits.judged.insert(at.ip());
                for (rip, state, back) in moments(at, state, framed) {
                    // A stub that is called gives up the kernel's frames.
                    if self.map.in_stub(rip) {
                        continue;
                    }
                    let stranger = self.kernel.stranger;
                    let scene = Scene::new(pid, program.framed, &user_state, &state, stranger);
                    let kernel = back.into_iter().chain(called.callers.iter().copied());
                    let truth = kernel.chain([program.framed]);
                    let truth = truth.chain(user.callers.iter().copied()).collect();
                    self.judge(pid, &scene, &scene.in_kernel(rip), truth, false)?;
                }
                Ok(())
            })?;
            visits.lost.insert(function.address, found.lost);
        }
        self.coverage.add(KERNEL, code, wanted(), &visits);
        Ok(())
    }

    /// A program's functions, and the kernel while it interrupts them.
    fn program(&mut self, pid: u32, code: &Code<'_>, actors: &Actors) -> Passed {
        let called = Called::in_program(&actors.callers);
        let nobody = Called::in_program(&[]);
        let kernel = Called::in_kernel(&self.kernel.callers);
        let kernel_state = kernel.entry.framed();
        let explorer = Explorer::new(code, &called.entry)?;
        let process = self.atlas.processes.get(pid).context("no process")?;
        let image = process.image.to_string();
        let mut visits = Visits::default();
        let followed = |it: &&Function| exception(&image, it).is_none();
        for function in code.functions.iter().filter(followed) {
            let called = if code.is_outermost(function) {
                &nobody
            } else {
                &called
            };
            let found = explorer.explore(function, &called.entry, |at, state| {
                visits.judged.insert(at.ip());
                for (rip, state, back) in moments(at, state, actors.framed) {
                    let scene = Scene::new(pid, rip, &state, &kernel_state, actors.stranger);
                    let own = back.into_iter().chain(called.callers.iter().copied());
                    let own: Vec<u64> = own.collect();
                    self.judge(pid, &scene, &scene.in_program(rip), own, false)?;
                }
                let is_entry = at.mnemonic() == Mnemonic::Syscall;
                let rip = if is_entry { at.next_ip() } else { at.ip() };
                let scene = Scene::new(pid, rip, state, &kernel_state, actors.stranger);
                let truth = kernel.callers.iter().copied().chain([rip]);
                let truth = truth.chain(called.callers.iter().copied()).collect();
                let interrupted = scene.in_kernel(self.kernel.framed);
                self.judge(pid, &scene, &interrupted, truth, true)
            })?;
            visits.lost.insert(function.address, found.lost);
        }
        let all = code.functions.iter();
        self.coverage.add(&image, code, all, &visits);
        Ok(())
    }

    fn judge(
        &mut self,
        pid: u32,
        scene: &Scene<'_>,
        at: &Interrupted,
        truth: Vec<u64>,
        on_purpose: bool,
    ) -> Passed {
        let sample = self.sampler.sample(at, scene, scene.current())?;
        let chain = chain::chain(&sample, DEEP, self.atlas);
        let callers = Callers {
            pid,
            addresses: truth,
            complete: true,
        };
        self.tally.judge(self.atlas, &chain, &callers, on_purpose);
        Ok(())
    }
}

/// A sample at an instruction; if it calls, also one at the first instruction of who is called, and one when that has built its
/// frame; with the return address.
fn moments(at: &Instruction, state: &State, framed: u64) -> Vec<(u64, State, Option<u64>)> {
    let mut moments = vec![(at.ip(), state.clone(), None)];
    if is_call(at) {
        let back = at.next_ip();
        let callee = state.called(back);
        moments.push((framed, callee.framed(), Some(back)));
        if at.flow_control() == FlowControl::Call {
            moments.push((at.near_branch_target(), callee, Some(back)));
        }
    }
    moments
}

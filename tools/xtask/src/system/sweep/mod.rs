//! One NMI on each instruction of each stub by which the kernel is entered and left: where GS, the stack and RBP may be the program's,
//! a sample must know it.
//!
//! While a profile is on, one CPU has announced its next NMI at any time, so one that a device sends takes a sample like the timer's. At
//! each instruction it has to leave every register as it was, and a record with the address exactly, and with the chain of
//! the program as it was before the entry. That is found apart from the kernel: from the registers at the entry, or where the hardware
//! pushed them.
//!
//! NMIs are blocked from their delivery to the IRET (Intel SDM volume 3, "Handling Multiple NMIs"), so none can land in the stub of NMIs:
//! one that is sent there must come right after, to the instruction that the first has interrupted. The stubs that end the machine are
//! left out: `fatal_entry`, and what `nmi_entry` does of an NMI that nobody asked for.

mod coverage;
pub mod landing;
mod starting;

use anyhow::{Context as _, Result, bail, ensure};
use iced_x86::Mnemonic;
use kcore::apic::vector;
use kcore::base::block::REGS_END;
use kcore::base::regs::{REGS, Reg, VECTOR_SYSCALL};

use crate::test::{Case, Context, Verdict};

use super::disassembly::Kernel;
use super::probe::{Probe, Registers};
use super::report::Report;
use coverage::Coverage;
use landing::{Landing, Program};

/// Exceptions that come here: one has an error code.
const NMI: u8 = 2;
const PAGE_FAULT: u8 = 14;
/// Words that an interrupt's stub saves: what the hardware does not.
const PUSHED_BY_STUB: usize = Reg::Rip as usize;
/// Where no program has code.
const NOWHERE: u64 = 0x10;
/// Ticks until each of the programs that run has had its turn, and many more.
const TURNS: usize = 1000;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("an_nmi_lands_on_every_instruction_of_the_stubs", || {
            sweep(context)
        }),
        Case::new("an_nmi_lands_on_a_cpu_that_is_just_starting", || {
            starting::survives(context)
        }),
        Case::new(
            "an_nmi_before_a_cpu_has_its_handler_resets_the_machine",
            || starting::resets(context),
        ),
    ]
}

fn sweep(context: &Context<'_>) -> Verdict {
    let image = context.image()?;
    let kernel = Kernel::new(std::fs::read(&image.kernel)?)?;
    let mut coverage = Coverage::default();
    coverage.function(&kernel, "syscall_entry", None)?;
    for vector in [NMI, PAGE_FAULT, vector::TIMER] {
        coverage.vector(&kernel, vector)?;
    }
    coverage.function(&kernel, "interrupt_entry", None)?;
    coverage.function(&kernel, "nmi_entry", Some(Mnemonic::Iretq))?;
    for name in ["exit_to_user", "enter_idle", "idle"] {
        coverage.function(&kernel, name, None)?;
    }

    let (iret, _) = coverage
        .last_two(&kernel.span("nmi_entry")?)
        .context("no IRET")?;

    let mut probe = Probe::boot(image)?;
    let busy = probe.session.start("syscalls")?;
    let victim = probe.session.start("spin")?;
    let mut hits = in_window(&mut probe, iret, |landing| {
        let sweep = &mut Sweep {
            kernel: &kernel,
            coverage: &mut coverage,
            landing,
        };
        sweep.system_call()?;
        sweep.interrupt()?;
        sweep.nmi()?;
        sweep.fault(victim)
    })?;
    // It saw no call fail, and runs on.
    let said = probe.session.expect("ps", &["syscalls"])?;
    ensure!(!said.contains("syscalls: "), "{said}");
    probe.session.run(&format!("kill {busy}"))?;
    hits += in_window(&mut probe, iret, |landing| {
        Sweep {
            kernel: &kernel,
            coverage: &mut coverage,
            landing,
        }
        .idle()
    })?;
    probe.session.power_off()?;
    eprintln!("{coverage}{hits} NMIs");
    coverage.check()
}

/// Does this while all is sampled; returns how many NMIs were sent. Each is in the report.
fn in_window(
    probe: &mut Probe,
    iret: u64,
    visit: impl FnOnce(&mut Landing<'_>) -> Verdict,
) -> Result<u64> {
    let (remote, ring) = probe.profile("profile 2000 all 1 -v")?;
    let mut landing = Landing::new(probe, remote, ring, iret);
    visit(&mut landing)?;
    let sent = landing.leave()?;
    probe.session.guest.send(b"\x03")?;
    let text = probe.session.guest.prompt()?;
    // Before the report are the echo of Ctrl-C, and what ended.
    let start = text.find("profiled ").with_context(|| text.clone())?;
    let report = Report::parse(&text[start..])?;
    ensure!(
        report.dropped == 0 && report.samples >= sent,
        "{sent} NMIs were sent, but: {text}"
    );
    Ok(sent)
}

struct Sweep<'s, 'p> {
    kernel: &'s Kernel,
    coverage: &'s mut Coverage,
    landing: &'s mut Landing<'p>,
}

impl Sweep<'_, '_> {
    /// From here on, as long as instructions are part of stubs. Returns the first registers beyond.
    fn stubs(&mut self, program: Option<Program>) -> Result<Registers> {
        loop {
            let at = self.landing.remote.registers()?;
            if !self.coverage.has(at.rip()) {
                return Ok(at);
            }
            self.landing.hit(&at, program)?;
            self.coverage.hit(at.rip())?;
            self.landing.remote.step()?;
        }
    }

    /// A way in: to the call that leads into the kernel's other code.
    fn entry(&mut self, program: Option<Program>) -> Verdict {
        let beyond = self.stubs(program)?;
        ensure!(!beyond.is_user(), "an entry led to {:#x}", beyond.rip());
        Ok(())
    }

    /// A way out: to the program's own next instruction, which is where it was to go on.
    fn exit(&mut self, program: Program) -> Verdict {
        let beyond = self.stubs(Some(program))?;
        let there = Program::of(&beyond);
        ensure!(
            beyond.is_user() && there == program,
            "{program:x?} was left to {there:x?}"
        );
        self.landing.hit(&beyond, Some(program))
    }

    /// The next way out of this kind, and where it leads.
    fn next_exit(&mut self, by_syscall: bool) -> Result<Program> {
        let exit = self.kernel.span("exit_to_user")?.start;
        loop {
            let at = self.landing.remote.run_to(&[exit])?;
            let saved = |reg: Reg| self.landing.word(&at, at.rdi() + reg as u64 * 8);
            if (saved(Reg::Vector)? == VECTOR_SYSCALL) == by_syscall {
                return Ok(Program {
                    rip: saved(Reg::Rip)?,
                    rsp: saved(Reg::Rsp)?,
                    rbp: saved(Reg::Rbp)?,
                });
            }
            self.landing.remote.step()?;
        }
    }

    fn system_call(&mut self) -> Verdict {
        let entry = self.kernel.span("syscall_entry")?.start;
        let at = self.landing.remote.run_to(&[entry])?;
        let end = self.landing.word(&at, at.kernel_gs() + REGS_END as u64)?;
        self.landing.spoil(end, REGS)?;
        self.entry(Some(Program {
            rip: at.rcx(),
            ..Program::of(&at)
        }))?;
        let program = self.next_exit(true)?;
        self.exit(program)
    }

    /// The timer's, in a program.
    fn interrupt(&mut self) -> Verdict {
        let stub = self.kernel.vector(vector::TIMER)?.start;
        let at = self.landing.remote.run_to(&[stub])?;
        let interrupted = self.landing.interrupted(&at)?;
        self.landing.spoil(at.rsp(), PUSHED_BY_STUB)?;
        self.entry(Some(interrupted.context("no program was interrupted")?))?;
        let program = self.next_exit(false)?;
        self.exit(program)
    }

    /// A second NMI while the first is handled, at each instruction of its stub: it comes right after.
    fn nmi(&mut self) -> Verdict {
        let stubs = [self.kernel.vector(NMI)?, self.kernel.span("nmi_entry")?];
        let program = self.next_exit(true)?;
        let home = self.landing.remote.registers()?;
        let (iret, _) = self.coverage.last_two(&stubs[1]).context("no IRET")?;
        self.landing.forget()?;
        for steps in 0.. {
            self.landing.send_nmi()?;
            let first = self.landing.remote.run_to(&[stubs[0].start])?;
            let mut at = first.clone();
            for _ in 0..steps {
                self.landing.remote.step()?;
                at = self.landing.remote.registers()?;
                if !stubs.iter().any(|stub| stub.contains(&at.rip())) && at.rip() != home.rip() {
                    // What the stub calls: up to where that returns to.
                    let back = self.landing.word(&at, at.rsp())?;
                    at = self.landing.remote.run_to(&[back])?;
                }
            }
            if at.rip() == home.rip() {
                return self.landing.handled(&home, Some(program), 1);
            }
            self.coverage.hit(at.rip())?;
            self.landing.send_nmi()?;
            self.landing.remote.step()?;
            let second = self.landing.remote.run_to(&[stubs[0].start])?;
            ensure!(
                second == first,
                "a second NMI came at {:#x} of the first",
                at.rip()
            );
            self.landing.remote.run_to(&[iret])?;
            self.landing.remote.step()?;
            self.landing.handled(&home, Some(program), 2)?;
        }
        Ok(())
    }

    /// A page fault, of a program that is sent nowhere.
    fn fault(&mut self, victim: u64) -> Verdict {
        let timer = self.kernel.vector(vector::TIMER)?.start;
        for _ in 0..TURNS {
            self.landing.remote.run_to(&[timer])?;
            let program = self.next_exit(false)?;
            self.exit(program)?;
            if self.landing.pid() == Some(victim) {
                let stub = self.kernel.vector(PAGE_FAULT)?.start;
                self.landing.remote.set_rip(NOWHERE)?;
                let at = self.landing.remote.run_to(&[stub])?;
                let interrupted = self.landing.interrupted(&at)?;
                let expected = Program {
                    rip: NOWHERE,
                    ..program
                };
                ensure!(
                    interrupted == Some(expected),
                    "{interrupted:x?}, not {expected:x?}"
                );
                return self.entry(interrupted);
            }
        }
        bail!("pid {victim} had no turn in {TURNS}")
    }

    /// The way to idle, idling, and the interrupt that ends it.
    fn idle(&mut self) -> Verdict {
        let (enter, idle) = (self.kernel.span("enter_idle")?, self.kernel.span("idle")?);
        let timer = self.kernel.vector(vector::TIMER)?.start;
        self.landing.remote.run_to(&[enter.start])?;
        // The last instruction, behind the HLT, is executed only after an NMI that has woken the CPU.
        let (last, halt) = self.coverage.last_two(&idle).context("no HLT")?;
        loop {
            let at = self.landing.remote.registers()?;
            self.landing.hit(&at, None)?;
            self.coverage.hit(at.rip())?;
            if at.rip() == halt {
                break;
            }
            self.landing.remote.step()?;
        }
        loop {
            let at = self.landing.remote.run_to(&[last, timer])?;
            if at.rip() == last {
                self.landing.hit(&at, None)?;
                self.coverage.hit(last)?;
                self.landing.remote.step()?;
            } else if self.coverage.is_hit(last) {
                return self.entry(None);
            } else {
                self.landing.remote.run_to(&[halt])?;
            }
        }
    }
}

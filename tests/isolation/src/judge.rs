//! Starts each attack, and holds what init says of its end to what must become of it.

use alloc::format;
use alloc::string::{String, ToString};
use core::arch::x86_64::__cpuid_count;

use ipc::abi::exit::{FAULT_FETCH, FAULT_PRESENT, FAULT_USER, FAULT_WRITE, FaultKind};
use ipc::abi::layout::PAGE_SIZE;
use ipc::abi::{Handle, Rights};
use ipc::proto::init::{Args, Client, Crash, Ending, ExitReport, Name, Spawn};
use sysroot::{Connection, handle, println, syscall};

use crate::attack::{Attack, Table, Wants};
use crate::memory::SECRET;
use crate::table;
use crate::words::Words;

/// Addresses of the kernel's half that are tried beside the known ones, by each attack on them.
const RANDOM: usize = 24;
/// What is at [`SECRET`] here.
const PATTERN: u64 = 0x5ec7_e75e_c7e7_5ec7;
/// Of the obituary's registers.
const RSP: usize = 1;
const RAX: usize = 3;

/// What became of all.
#[derive(Default)]
pub struct Verdict {
    attacks: u64,
    tries: u64,
    failed: u64,
}

/// Features of leaf 7 (Intel SDM volume 2, CPUID), by register (EBX, ECX) and bit.
const SMAP: (usize, u32) = (0, 20);
const UMIP: (usize, u32) = (1, 2);

/// Whether the processor has it.
fn has((register, bit): (usize, u32)) -> bool {
    let leaf = __cpuid_count(7, 0);
    __cpuid_count(0, 0).eax >= 7 && [leaf.ebx, leaf.ecx][register] >> bit & 1 == 1
}

/// Carries out every attack so many times, and prints what became of each. Whether all were held.
pub fn run(rounds: u64) -> bool {
    let mut verdict = Verdict::default();
    keep_secret();
    println!("{:<27}{:<40}{:>6}  OUTCOME", "PROMISE", "ATTACK", "TRIES");
    let mut words = Words::default();
    for (program, table) in [("intruder", table::INTRUDER), ("isolation", table::HOLDER)] {
        verdict.try_all(program, table, rounds, &mut words);
    }
    let Verdict {
        attacks,
        tries,
        failed,
    } = verdict;
    println!("isolation: {attacks} attacks, {tries} tries, {failed} failed");
    failed == 0
}

/// Maps a page where nobody else has one.
fn keep_secret() {
    let memory = syscall::memory_create(Handle::NONE, 1, 0);
    let rights = Rights::READ | Rights::WRITE;
    // SAFETY: nothing of this program is there.
    let mapped = memory
        .and_then(|memory| unsafe { syscall::map(Handle::NONE, memory, SECRET, 0, 1, rights) });
    assert_eq!(mapped, Ok(()), "a page");
    // SAFETY: the page was just mapped, for good.
    unsafe { (SECRET as *mut u64).write_volatile(PATTERN) };
}

fn is_secret_kept() -> bool {
    // SAFETY: mapped by `keep_secret`.
    unsafe { (SECRET as *const u64).read_volatile() == PATTERN }
}

impl Verdict {
    fn try_all(&mut self, program: &str, table: Table, rounds: u64, words: &mut Words) {
        for (attack, number) in table.iter().copied().flatten().zip(0_u64..) {
            let mut row = Row::new(attack);
            for _ in 0..rounds {
                for &value in attack.values {
                    row.add(value, carry_out(program, number, value));
                }
                if matches!(attack.wants, Wants::Kernel(_)) {
                    for _ in 0..RANDOM {
                        let value = words.kernel_address();
                        row.add(value, carry_out(program, number, value));
                    }
                }
            }
            if !is_secret_kept() {
                row.fail(SECRET, "what another process had there has changed");
            }
            row.print();
            self.attacks += 1;
            self.tries += row.tries;
            self.failed += row.failed;
        }
    }
}

/// Has a process of its own carry an attack out.
fn carry_out(program: &str, number: u64, value: u64) -> Result<ExitReport, String> {
    let connection = Connection::named("init").ok_or("no init")?;
    let mut init = Client::new(connection);
    let mut args = Args::new();
    for word in ["attack", &number.to_string(), &value.to_string()] {
        args.push(word).map_err(|_| "too many arguments")?;
    }
    let program = Name::cut(program);
    let spawn = Spawn {
        program,
        args,
        held: false,
    };
    // What it says, such as why it panics, comes out where this program's words do.
    let output = sysroot::startup::handle(ipc::abi::startup::names::STDOUT);
    let output =
        output.and_then(|output| handle::duplicate(output, Rights::CALL | Rights::TRANSFER).ok());
    let pid = init
        .spawn(&spawn, output)
        .map_err(|error| format!("not started: {error}"))?;
    init.wait(&pid)
        .map_err(|error| format!("its end is not known: {error}"))
}

/// What became of one attack.
struct Row<'a> {
    attack: &'a Attack,
    tries: u64,
    failed: u64,
    outcome: String,
}

impl<'a> Row<'a> {
    const fn new(attack: &'a Attack) -> Self {
        Self {
            attack,
            tries: 0,
            failed: 0,
            outcome: String::new(),
        }
    }

    fn add(&mut self, value: u64, report: Result<ExitReport, String>) {
        match report.and_then(|report| self.attack.wants.judge(&report)) {
            Ok((tries, outcome)) => {
                self.tries += tries;
                self.outcome = outcome;
            }
            Err(what) => self.fail(value, &what),
        }
    }

    fn fail(&mut self, value: u64, what: &str) {
        let Attack { promise, name, .. } = self.attack;
        println!("FAIL {promise}: {name} ({value:#x}): {what}");
        self.failed += 1;
    }

    fn print(&self) {
        let Attack { promise, name, .. } = self.attack;
        println!("{promise:<27}{name:<40}{:>6}  {}", self.tries, self.outcome);
    }
}

impl Wants {
    /// How many tries an end stands for, and what it was, in words; or what is wrong with it.
    fn judge(self, report: &ExitReport) -> Result<(u64, String), String> {
        let faulted = report
            .crash
            .as_ref()
            .filter(|_| report.ending == Ending::Faulted);
        let held = match (self, faulted) {
            (Self::Page(error), Some(crash)) => {
                crash.error_code == error && is_page_fault_at(crash, crash.registers[RAX])
            }
            (Self::Kernel(error), Some(crash)) => {
                crash.error_code & !FAULT_PRESENT == error
                    && is_page_fault_at(crash, crash.registers[RAX])
            }
            (Self::Guard, Some(crash)) => {
                let below = crash.registers[RSP].wrapping_sub(8);
                crash.error_code == FAULT_USER | FAULT_WRITE
                    && is_page_fault_at(crash, below)
                    && (below + 8) % PAGE_SIZE == 0
            }
            (Self::Fault(kinds), Some(crash)) => {
                crash.fault().is_some_and(|kind| kinds.contains(&kind))
            }
            (Self::Segment, Some(crash)) => {
                let reads_stack = crash.error_code == FAULT_PRESENT
                    && is_page_fault_at(crash, crash.registers[RSP]);
                crash.fault() == Some(FaultKind::Protection) || has(SMAP) && reads_stack
            }
            (Self::Umip, Some(crash)) => has(UMIP) && crash.fault() == Some(FaultKind::Protection),
            (Self::Umip, None) if report.ending == Ending::Exited && !has(UMIP) => {
                return Ok((1, "allowed: the processor has no UMIP".into()));
            }
            (Self::Refused, None) if report.ending == Ending::Exited && report.code > 0 => {
                return Ok((report.code, "refused".into()));
            }
            _ => false,
        };
        match faulted {
            Some(crash) if held => Ok((1, in_words(crash))),
            Some(crash) => Err(format!("{crash}, error {:#x}", crash.error_code)),
            None => Err(format!("{:?}, code {}", report.ending, report.code)),
        }
    }
}

fn is_page_fault_at(crash: &Crash, at: u64) -> bool {
    crash.fault() == Some(FaultKind::Page) && crash.address == at
}

/// What it was, without the address.
fn in_words(crash: &Crash) -> String {
    if crash.fault() != Some(FaultKind::Page) {
        return crash.to_string();
    }
    let access = match crash.error_code & (FAULT_FETCH | FAULT_WRITE) {
        0 => "read",
        FAULT_WRITE => "write",
        _ => "execution",
    };
    format!("page fault: {access}")
}

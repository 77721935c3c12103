//! A thread did what the hardware refuses. Its process ends, and what it was doing is kept for who watches.

use crate::base::addr::UserAddr;
use crate::base::regs::Reg;
use crate::hardware::Hardware;
use crate::kernel::{CpuState, Kernel};
use crate::mem::paging::Tables;
use crate::object::Thread;
use crate::profile::{End, UserStack, follow};
use crate::sched::load::add;
use core::sync::atomic::Ordering::Relaxed;
use ipc::abi::exit::{BACKTRACE_MAX, BacktraceEnd, CrashReport, ExitReason, FaultKind};
use ipc::abi::trace::TraceKind;
use sample_ring::AtomicU64;

/// Registers of a crash report, in its order.
const REPORTED: [Reg; 18] = [
    Reg::Rip,
    Reg::Rsp,
    Reg::Rflags,
    Reg::Rax,
    Reg::Rbx,
    Reg::Rcx,
    Reg::Rdx,
    Reg::Rsi,
    Reg::Rdi,
    Reg::Rbp,
    Reg::R8,
    Reg::R9,
    Reg::R10,
    Reg::R11,
    Reg::R12,
    Reg::R13,
    Reg::R14,
    Reg::R15,
];

/// What an exception vector says about a program (Intel SDM volume 3A, table 6-1).
const fn kind_of(vector: u8) -> FaultKind {
    match vector {
        0 => FaultKind::Divide,
        1 => FaultKind::Debug,
        3 => FaultKind::Breakpoint,
        6 => FaultKind::InvalidOpcode,
        7 => FaultKind::NoFpu,
        10..=13 => FaultKind::Protection,
        14 => FaultKind::Page,
        17 => FaultKind::Alignment,
        _ => FaultKind::Other,
    }
}

impl<H: Hardware> Kernel<H> {
    /// The current thread raised an exception in user mode.
    ///
    /// # Panics
    /// If there is no current thread: user mode has one.
    pub fn fault(&self, cpu: &CpuState, vector: u8, error: u64, address: u64) {
        self.entered(cpu);
        let id = cpu
            .current()
            .expect("an exception in user mode comes from the current thread");
        add(&cpu.load.exceptions, 1);
        let thread = self.thread(id);
        let kind = kind_of(vector);
        if self.is_tracing() {
            self.record(
                cpu,
                self.event(TraceKind::Fault, id)
                    .detail(u32::from(vector) | (error as u32) << 8)
                    .words(address, thread.regs.get(Reg::Rip)),
            );
        }
        // This CPU may have walked a table that was pruned and since replaced: its program did nothing wrong, and tries again.
        if kind == FaultKind::Page
            && let Some(root) = self.process_of(thread).root()
            && Tables::at(root).fault_is_stale(self.hw, UserAddr(address), error)
        {
            self.hw.flush_all();
            return;
        }
        let mut report = CrashReport {
            kind: kind as u64,
            tid: thread.tid().into(),
            error_code: error,
            address: if kind == FaultKind::Page { address } else { 0 },
            registers: REPORTED.map(|reg| thread.regs.get(reg)),
            ..CrashReport::default()
        };
        self.backtrace(thread, &mut report);
        self.begin_death(
            cpu,
            thread.process.load(Relaxed),
            ExitReason::Faulted,
            0,
            Some(report),
        );
    }

    /// Follows the frame pointers of a thread's user stack as a sample does.
    fn backtrace(&self, thread: &Thread, report: &mut CrashReport) {
        report.backtrace[0] = thread.regs.get(Reg::Rip);
        report.frames = 1;
        report.end = BacktraceEnd::Cut as u64;
        let Some(root) = self.process_of(thread).root() else {
            return;
        };
        let mut stack = UserStack::new(self.hw, root);
        let (rsp, rbp) = (thread.regs.get(Reg::Rsp), thread.regs.get(Reg::Rbp));
        let places: [_; BACKTRACE_MAX - 1] = core::array::from_fn(|_| AtomicU64::new(0));
        let (callers, end) = follow(&mut stack, rsp, rbp, &places);
        for (to, address) in report.backtrace[1..].iter_mut().zip(&places).take(callers) {
            *to = address.load(Relaxed);
        }
        let end = match end {
            End::Complete => BacktraceEnd::Outermost,
            End::Truncated => BacktraceEnd::More,
            End::Cut | End::Unmapped => BacktraceEnd::Cut,
        };
        report.frames = 1 + callers as u64;
        report.end = end as u64;
    }
}

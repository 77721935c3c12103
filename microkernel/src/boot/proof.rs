//! The proofs that sampling depends on: every CPU gets an NMI, and finds out whether its performance counter works.

use crate::arch::cpu;
use crate::arch::machine::Machine;
use crate::arch::monitor::Probe;
use crate::arch::sampling::Alone;
use crate::log::{detail, notice};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use ipc::abi::profile::Source;
use kcore::base::cpu::CpuId;
use kcore::hardware::Hardware;
use kcore::kernel::Kernel;
use kcore::pmu::prove;
use kcore::profile::{Purpose, Trigger};

/// Nanoseconds that an NMI may take. On an emulator, the other CPU has to get to run.
const PATIENCE: u64 = 500_000_000;
/// Nanoseconds until the timer of a lone CPU sends its NMI.
const SOON: u64 = 20_000;

/// Set while the CPUs prove their counters; none of them takes part in the kernel yet.
static PROVING: AtomicBool = AtomicBool::new(false);

/// TSC ticks of the longest proof.
static LONGEST: AtomicU64 = AtomicU64::new(0);

/// Whether a kick asks a CPU for its proof.
pub fn is_on() -> bool {
    PROVING.load(Ordering::Acquire)
}

/// Has each CPU prove its own counter, one after the other, and offers them if they work. Comes after [`nmis`], and says what is left if
/// neither does.
pub fn counters(kernel: &Kernel<Machine>, machine: &Machine) {
    PROVING.store(true, Ordering::Release);
    for (index, cpu) in kernel.cpus.iter().enumerate() {
        let id = cpu.token.id();
        if index == 0 {
            counter(kernel, machine, id);
        } else {
            machine.kick(id);
        }
        let is_proved = || kernel.profiler.proved(index).is_some();
        if !machine.wait(PATIENCE, is_proved) {
            notice(format_args!("cpu {} does not prove its counter", id.0));
        }
        // Most machines have CPUs of one kind.
        let found = |index| kernel.profiler.monitor(index).unwrap_or_default();
        let (this, first) = (found(index), found(0));
        if index == 0 || (this.interface, this.verdict) != (first.interface, first.verdict) {
            detail(format_args!("cpu {}: {this}", id.0));
        }
    }
    PROVING.store(false, Ordering::Release);
    let longest = u128::from(LONGEST.load(Ordering::Relaxed));
    let micros = longest * 1_000_000 / u128::from(machine.scale.hz);
    detail(format_args!("a proof took {micros} us at most"));
    kernel.profiler.offer_counters();
    if kernel.profiler.best() == Some(Source::Tick) {
        notice(format_args!(
            "no NMI can be had from a counter or a timer: samples come from the tick"
        ));
    }
}

/// The proof of the CPU that runs this, with interrupts off.
pub fn counter(kernel: &Kernel<Machine>, machine: &Machine, id: CpuId) {
    if let Some(probe) = Probe::new(kernel, machine, id) {
        let claims = cpu::monitor_claims();
        let begin = cpu::tsc();
        let finding = prove(&claims, &probe, machine.scale.hz);
        LONGEST.fetch_max(cpu::tsc().wrapping_sub(begin), Ordering::Relaxed);
        kernel.profiler.publish(id, finding);
    }
}

/// Has each CPU sent an NMI, and offers the source that works so if all of them arrive.
pub fn nmis(kernel: &Kernel<Machine>, machine: &Machine) {
    let proven = match (kernel.cpus, &machine.alone) {
        ([cpu], Some(Alone { hpet, .. })) => {
            machine.route_hpet(hpet);
            let arrives = arrives(kernel, machine, cpu.token.id(), || {
                hpet.start(hpet.counts(SOON))
            });
            // It would interrupt again when its counter comes round.
            hpet.stop();
            arrives.then_some(Trigger::Own)
        }
        ([_], None) => {
            detail(format_args!(
                "no timer of an HPET can send an NMI to the one cpu"
            ));
            None
        }
        (cpus, _) => cpus
            .iter()
            .map(|cpu| cpu.token.id())
            .all(|cpu| arrives(kernel, machine, cpu, || machine.nmi(cpu)))
            .then_some(Trigger::Neighbour),
    };
    if let Some(trigger) = proven {
        kernel.profiler.offer(Source::TimerNmi, trigger);
    }
}

fn arrives(kernel: &Kernel<Machine>, machine: &Machine, cpu: CpuId, send: impl FnOnce()) -> bool {
    let Some(expected) = kernel.profiler.expected(cpu) else {
        return false;
    };
    if !expected.announce(Purpose::Proof) {
        return false;
    }
    send();
    let arrives = machine.wait(PATIENCE, || !expected.is_pending());
    if !arrives {
        notice(format_args!("an NMI for cpu {} does not arrive", cpu.0));
    }
    arrives
}

//! The proof that NMIs arrive: every CPU gets one before any sample depends on it.

use crate::arch::machine::Machine;
use crate::arch::sampling::Alone;
use crate::log::notice;
use ipc::abi::profile::Source;
use kcore::base::addr::Nanos;
use kcore::base::cpu::CpuId;
use kcore::hardware::Hardware;
use kcore::kernel::Kernel;
use kcore::profile::{Purpose, Trigger};

/// Nanoseconds that an NMI may take. On an emulator, the other CPU has to get to run.
const PATIENCE: u64 = 500_000_000;
/// Nanoseconds until the timer of a lone CPU sends its NMI.
const SOON: u64 = 20_000;

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
        ([_], None) => None,
        (cpus, _) => cpus
            .iter()
            .map(|cpu| cpu.token.id())
            .all(|cpu| arrives(kernel, machine, cpu, || machine.nmi(cpu)))
            .then_some(Trigger::Neighbour),
    };
    match proven {
        Some(trigger) => kernel.profiler.offer(Source::TimerNmi, trigger),
        None => notice(format_args!(
            "no NMI can be had from a timer: samples come from the tick"
        )),
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
    let end = Nanos(machine.now().0 + PATIENCE);
    while expected.is_pending() {
        if machine.now() > end {
            notice(format_args!("an NMI for cpu {} does not arrive", cpu.0));
            return false;
        }
        core::hint::spin_loop();
    }
    true
}

//! The interrupt of a proof that is over: a counter was found never to interrupt, and then it does.

use anyhow::ensure;
use ipc::abi::monitor::Verdict as Proof;

use crate::test::{Context, Verdict};

use super::machine::{Machine, Tally, Time};

/// It comes twice, while the machine boots, and no NMI is called foreign: that would end the machine.
///
/// # Errors
/// If it does, or the counter is used.
pub fn is_ours(context: &Context<'_>, interface: &str) -> Verdict {
    let counters = format!("{interface}:tardy");
    let mut machine = Machine::boot(context, &counters, 1, Time::Counted)?;
    let log = machine.session.run("dmesg claims")?.replace("\n  ", " ");
    ensure!(log.contains(Proof::Silent.text()), "{log}");
    let expected = Tally {
        dropped: 1,
        late: 2,
        ..Tally::default()
    };
    let tally = machine.tally()?;
    ensure!(tally == expected, "{tally:?}");
    machine.power_off()
}

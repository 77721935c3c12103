//! Clients that are killed or time out in mid-call, and others that come in their places: a server is never shown to serve one that it
//! does not serve.

use anyhow::bail;
use truth::CLIENTS;

use crate::test::{Case, Context, Verdict};

use super::subject::{Served, served};

/// Samples of the server at work, at least, that show whom it serves.
const SAMPLES: u64 = 2000;
/// Windows of two seconds that must be enough for them.
const WINDOWS: usize = 40;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("clients_that_go_are_not_served_on_1_cpu", || {
            churn(context, 1)
        }),
        Case::new("clients_that_go_are_not_served_on_4_cpus", || {
            churn(context, 4)
        }),
    ]
}

fn churn(context: &Context<'_>, smp: u32) -> Verdict {
    let mut session = super::boot(context, smp)?;
    session.start("truth-any any")?;
    session.start("truth-churn")?;
    let (mut shown, mut alone) = ([0; CLIENTS], 0);
    for _ in 0..WINDOWS {
        let report = session.profile("2000 all 512 depth 48")?;
        for chain in &report.chains {
            match served(chain) {
                Some((client, Served::Client)) => shown[client] += chain.count,
                // It went before the server was done.
                Some((_, Served::Nobody)) => alone += chain.count,
                Some((_, Served::Another)) => bail!("it does not serve that one: {chain:#?}"),
                None => {}
            }
        }
        let all: u64 = shown.iter().sum();
        if all >= SAMPLES && shown.iter().all(|&count| count > 0) && alone > 0 {
            return session.power_off();
        }
    }
    bail!("after {WINDOWS} windows: {shown:?} for clients, {alone} for none")
}

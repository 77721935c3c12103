//! Clients that are killed or time out in mid-call, and others that come in their places; a server that is killed in mid-call and started
//! again by init. It is never shown to serve one that it does not serve.

use anyhow::{Context as _, Result, bail, ensure};
use truth::CLIENTS;

use crate::test::{Case, Context, Verdict};

use super::super::calm::until;
use super::super::report::Report;
use super::super::session::Session;
use super::subject::{Served, served};

/// Samples of the server at work, at least, that show whom it serves.
const SAMPLES: u64 = 2000;
/// Windows of two seconds that must be enough for them.
const WINDOWS: usize = 40;
/// A window, and all of its chains.
const WINDOW: &str = "2000 all 512 depth 48";
/// Times that a server is killed: fewer than those after which init gives it up.
const KILLS: usize = 4;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("clients_that_go_are_not_served_on_1_cpu", || {
            clients(context, 1)
        }),
        Case::new("clients_that_go_are_not_served_on_4_cpus", || {
            clients(context, 4)
        }),
        Case::new("a_server_started_again_serves_who_calls_it", || {
            server(context, 4)
        }),
    ]
}

/// Whom the server was shown to serve while it worked for a client.
#[derive(Debug, Default)]
struct Shown {
    /// Samples for each client that it was shown to serve.
    clients: [u64; CLIENTS],
    /// Those for nobody: the client went before the server was done.
    nobody: u64,
}

impl Shown {
    fn add(&mut self, report: &Report) -> Verdict {
        for chain in &report.chains {
            match served(chain) {
                Some((client, Served::Client)) => self.clients[client] += chain.count,
                Some((_, Served::Nobody)) => self.nobody += chain.count,
                Some((_, Served::Another)) => bail!("it does not serve that one: {chain:#?}"),
                None => {}
            }
        }
        Ok(())
    }

    /// Samples for clients.
    fn served(&self) -> u64 {
        self.clients.iter().sum()
    }
}

fn clients(context: &Context<'_>, smp: u32) -> Verdict {
    let mut session = super::boot(context, smp)?;
    session.start("truth-any any")?;
    session.start("truth-churn")?;
    let mut shown = Shown::default();
    for _ in 0..WINDOWS {
        shown.add(&session.profile(WINDOW)?)?;
        let all_came = shown.clients.iter().all(|&count| count > 0) && shown.nobody > 0;
        if shown.served() >= SAMPLES && all_came {
            return session.power_off();
        }
    }
    bail!("after {WINDOWS} windows: {shown:?}")
}

/// The server is killed in each window, in the middle of a call, and started again by init.
fn server(context: &Context<'_>, smp: u32) -> Verdict {
    let mut session = super::boot(context, smp)?;
    session.start("truth-any any")?;
    let mut shown = Shown::default();
    for _ in 0..KILLS {
        let server = until(&mut session, instance)?;
        let churn = session.start(&format!("truth-churn {server}"))?;
        let before = shown.served();
        shown.add(&session.profile(WINDOW)?)?;
        ensure!(shown.served() > before, "it serves nobody: {shown:?}");
        session.settle(format!("kill {churn}\n").as_bytes())?;
        let next = until(&mut session, instance)?;
        ensure!(next != server, "it was not killed");
    }
    let before = shown.served();
    shown.add(&session.profile(WINDOW)?)?;
    ensure!(
        shown.served() > before,
        "started again, it serves nobody: {shown:?}"
    );
    session.power_off()
}

/// The pid of the server.
fn instance(session: &mut Session) -> Result<u64> {
    let processes = session.processes()?;
    let mut servers = processes.iter().filter(|it| it.name == "truth-any");
    Ok(servers.next().context("it does not run")?.pid)
}

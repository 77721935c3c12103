//! The network is gone while sessions and programs use it: each of them is told, and those that come after it are served.

use std::process::{Child, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::test::{Case, Context, Verdict};

use super::super::calm::until;
use super::Asked;
use super::tamper::Ports;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("a_network_card_that_fails_is_told_to_who_waits", || {
            fails(context)
        }),
        Case::new("a_net_server_that_ends_is_told_to_who_waits", || {
            ends(context)
        }),
    ]
}

/// A card that gives back what it never had, with a program that waits for datagrams, and a session.
fn fails(context: &Context<'_>) -> Verdict {
    let ports = Ports::free()?;
    let mut asked = Asked::boot_with(context, ports.arguments())?;
    asked.wait()?;
    let client = begin(&mut asked)?;
    ports.break_card()?;
    let session = &mut asked.session;
    // A call has the server look at the card.
    until(session, |session| {
        session.expect("net", &["link        failed", "errors      1"])
    })?;
    session.expect("ping 10.0.2.2 1", &["ping: the network device has failed"])?;
    let said = "net: the network device has failed: it gave back a buffer that it did not have";
    told(&mut asked, said)?;
    asked.session.expect(
        "run netload start 8",
        &[
            "netload: the network device has failed",
            "exited with code 1",
        ],
    )?;
    ended(&mut asked, &["netload", "session"])?;
    lost(client, "nothing was heard from the other side")?;
    kill(&mut asked)?;
    goes_on(asked)
}

/// The server is killed, with the same two.
fn ends(context: &Context<'_>) -> Verdict {
    let mut asked = Asked::boot(context)?;
    asked.wait()?;
    let client = begin(&mut asked)?;
    kill(&mut asked)?;
    ended(&mut asked, &["netload", "session"])?;
    lost(client, "the machine has this session no more")?;
    goes_on(asked)
}

/// Has a program wait for datagrams, and a client for the end of its session.
fn begin(asked: &mut Asked<'_>) -> Result<Child> {
    asked.session.expect("netload start 7", &["started "])?;
    let mut command = asked.sonde(&["exec", "top", "60000"])?;
    let client = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let client = client.spawn()?;
    until(&mut asked.session, |session| {
        session.expect("ps", &[" netload ", " session "])
    })?;
    Ok(client)
}

fn kill(asked: &mut Asked<'_>) -> Verdict {
    let processes = asked.session.processes()?;
    let net = processes.into_iter().find(|process| process.name == "net");
    let pid = net.context("no net server runs")?.pid;
    let killed = format!("killed {pid}");
    asked.session.expect(&format!("kill {pid}"), &[&killed])?;
    Ok(())
}

/// Waits until this is in the log, which the shell breaks at 80 columns.
fn told(asked: &mut Asked<'_>, line: &str) -> Verdict {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    until(&mut asked.session, |session| {
        let log = session.run("dmesg")?;
        ensure!(words(&log).contains(line), "no {line:?} in:\n{log}");
        Ok(())
    })
}

/// Waits until none of these programs run.
fn ended(asked: &mut Asked<'_>, names: &[&str]) -> Verdict {
    until(&mut asked.session, |session| {
        let mut processes = session.processes()?;
        processes.retain(|process| names.contains(&process.name.as_str()));
        ensure!(processes.is_empty(), "they still run: {processes:?}");
        Ok(())
    })
}

/// The client says in a line how its session was lost.
fn lost(client: Child, how: &str) -> Verdict {
    let output = client.wait_with_output()?;
    let stderr = String::from_utf8(output.stderr)?;
    let is_told = stderr.contains(&format!(": {how}"));
    ensure!(
        output.status.code() == Some(3),
        "{}: {stderr}",
        output.status
    );
    ensure!(is_told && stderr.lines().count() == 1, "{stderr}");
    Ok(())
}

/// The next server has a card that works, sockets, and sessions.
fn goes_on(mut asked: Asked<'_>) -> Verdict {
    asked.wait()?;
    let session = &mut asked.session;
    session.expect("ping 10.0.2.2 1", &["1 of 1 answered"])?;
    session.expect("netload start 7", &["started "])?;
    until(session, |session| session.expect("netload", &["port 7"]))?;
    asked.session.power_off()
}

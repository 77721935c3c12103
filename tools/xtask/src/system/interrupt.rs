//! Ctrl-C, whatever the session is at: the prompt is back soon, and nothing goes on running.

use anyhow::{Context as _, ensure};

use crate::test::{Case, Context, Verdict};

use super::session::Session;

/// What Ctrl-C interrupts: its name, what is typed to get there, and what is then seen. None of it ends by itself while a
/// test has patience.
const STATES: [(&str, &[u8], &str); 17] = [
    ("a prompt", b"", ""),
    ("a line half typed", b"half", "half"),
    ("a completion", b"run sle\t", ""),
    ("a completed word", b"run sle\t", "sleep "),
    ("a choice", b"kill \t\t", "init"),
    ("echo", b"repeat 1000000 echo ping\n", "ping\nping"),
    ("help", b"repeat 1000000 help\n", "measure"),
    ("ps", b"repeat 1000000 ps\n", "init"),
    ("dmesg", b"repeat 1000000 dmesg\n", "kernel: "),
    ("a window", b"repeat 1000000 profile 2000\n", "\n"),
    ("a report", b"repeat 1000000 profile 1\n", "profiled"),
    ("a program", b"run sleep 86400000\n", "\n"),
    ("a program that starts", b"run spin\n", ""),
    ("a time", b"time run sleep 86400000\n", "\n"),
    ("a round", b"repeat 1000000 run sleep 86400000\n", "\n"),
    ("a short round", b"time repeat 1000000 run sleep 1\n", "\n"),
    ("a page", b"more repeat 1000000 help\n", "-- more"),
];

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("ctrl_c_works_in_every_state", || states(context)),
        Case::new("ctrl_c_works_while_output_is_held", || held(context)),
        Case::new("ctrl_c_tells_how_a_program_ended", || ends(context)),
        Case::new("ctrl_c_works_while_kill_waits", || kills(context)),
    ]
}

fn states(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    for (name, typed, seen) in STATES {
        let mut interrupted = || {
            session.guest.send(typed)?;
            if !seen.is_empty() {
                session.guest.wait_for(seen)?;
            }
            session.settle(b"\x03")
        };
        interrupted().with_context(|| format!("at {name}"))?;
        let ps = session.run("ps")?;
        ensure!(
            !ps.contains("sleep") && !ps.contains("spin"),
            "after {name} it is still there:\n{ps}"
        );
    }
    session.power_off()
}

fn held(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 1)?;
    session.guest.send(b"repeat 1000000 echo ping\n")?;
    session.guest.wait_for("ping\nping")?;
    session.guest.send(b"\x13")?;
    session.guest.quiet()?;
    session.settle(b"\x03")?;
    session.power_off()
}

fn ends(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    session.guest.send(b"time run sleep 86400000\n")?;
    session.guest.wait_for("\n")?;
    let shown = session.settle(b"\x03")?;
    for part in ["^C\n", "sleep: killed (pid ", " elapsed, "] {
        ensure!(shown.contains(part), "no {part:?} in:\n{shown}");
    }
    session.guest.send(b"repeat 5 profile 2000\n")?;
    session.guest.wait_for("\n")?;
    let shown = session.settle(b"\x03")?;
    // Of the window that it ended early, unless it came before the window.
    ensure!(shown.matches("profiled ").count() <= 1, "{shown}");
    session.power_off()
}

fn kills(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 4)?;
    for _ in 0..8 {
        let pid = session.start("spin")?;
        session.settle(format!("kill {pid}\n\x03").as_bytes())?;
        session.run(&format!("kill {pid}"))?;
        let ps = session.run("ps")?;
        ensure!(!ps.contains("spin"), "it is still there:\n{ps}");
    }
    session.power_off()
}

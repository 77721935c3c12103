//! Sessions from elsewhere without a network: the program `visitor` has them started as the shell's door does, is the other end of
//! each, and tells what was shown there, with control characters as `^M`.

use anyhow::{Context as _, Result, ensure};

use crate::cli::BootOptions;
use crate::test::{Case, Context, Verdict};

use super::calm::{Calm, until};
use super::session::Session;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("a_remote_command_says_how_it_ended", || commands(context)),
        Case::new("a_remote_session_is_a_shell_of_its_own", || shells(context)),
        Case::new("a_remote_session_holds_up_no_other", || apart(context)),
        Case::new(
            "the_end_of_a_remote_session_is_that_of_what_it_waits_for",
            || hang_up(context),
        ),
        Case::new("24_remote_sessions_run_at_once_and_leave_nothing", || {
            many(context)
        }),
        Case::new("remote_sessions_outlive_the_shell_that_let_them_in", || {
            outlive(context)
        }),
    ]
}

fn boot(context: &Context<'_>, smp: u32) -> Result<Session> {
    let options = BootOptions {
        smp,
        ..BootOptions::default()
    };
    Session::boot_image(context.test_image()?, options)
}

/// Has these sessions, and checks that their users did all that they were to do, and that all of these were shown, in this order.
fn visit(session: &mut Session, script: &str, shown: &[&str]) -> Result<String> {
    let text = session.run(&format!("run visitor {script}"))?;
    ensure!(!text.contains("visitor: "), "{script}:\n{text}");
    let mut rest = text.as_str();
    for part in shown {
        let (_, behind) = rest
            .split_once(part)
            .with_context(|| format!("{script}: no {part:?} at its place in:\n{text}"))?;
        rest = behind;
    }
    Ok(text)
}

/// A command as a session of its own, the role, and what comes of it.
const COMMANDS: [(&str, &str, &[&str]); 7] = [
    ("observe", "echo a  b", &["\na b\n", "-- success --"]),
    (
        "observe",
        "time ps",
        &["\nPID", "session", "elapsed\n", "-- success --"],
    ),
    (
        "observe",
        "profile 100",
        &["\nprofiled 100 ms\n", "-- success --"],
    ),
    (
        "observe",
        "nonsense",
        &["\nno command `nonsense`", "-- failed --"],
    ),
    (
        "observe",
        "kill 1",
        &["\nkill: refused: it takes the role control", "-- failed --"],
    ),
    ("control", "run sleep 1", &["-- success --"]),
    (
        "control",
        "run crash null",
        &["\ncrash: page fault", "-- failed --"],
    ),
];

fn commands(context: &Context<'_>) -> Verdict {
    let mut session = boot(context, 2)?;
    for (role, line, shown) in COMMANDS {
        let script = format!("1 {role} exec \"{line}\"");
        let text = visit(&mut session, &script, shown)?;
        // Its output alone: no prompt, no escapes, no carriage returns.
        ensure!(!text.contains('^'), "{text}");
    }
    // Ctrl-C, before or behind its beginning.
    for line in ["run spin", "top 60000", "repeat 1000000 mem"] {
        let script = format!("1 control exec \"{line}\" +^C");
        visit(&mut session, &script, &["-- interrupted --"])?;
    }
    let ps = session.run("ps")?;
    ensure!(!ps.contains("spin") && !ps.contains("session"), "{ps}");
    session.power_off()
}

fn shells(context: &Context<'_>) -> Verdict {
    let mut session = boot(context, 2)?;
    let script =
        "1 control shell \"=> \" \"+run spin^M\" \"=run spin\" +^C =killed \"=> \" +exit^M";
    let shown = [
        "Sonde: 2 cpus",
        "leave with `exit`, or Ctrl-D)^M\nsession 1, from 127.0.0.1:1, with the role control^M\n^M> ^[[K",
        "run spin^M\n",
        "^C^M\nspin: killed",
        "^M> ^[[Kexit^M\n",
        "-- success --",
    ];
    visit(&mut session, script, &shown)?;
    let script =
        "1 observe shell \"=> \" +prof^I \"=profile \" +^Upoweroff^M =control \"=> \" +x^D^U^D";
    let shown = ["poweroff: refused", "-- success --"];
    visit(&mut session, script, &shown)?;
    session.power_off()
}

fn apart(context: &Context<'_>) -> Verdict {
    let mut session = boot(context, 2)?;
    // The first one is at something long until the other, which begins later, is over.
    let script =
        "1 observe shell \"=> \" \"+top 60000^M\" > | +^C =total \"=> \" +^D / 1 observe exec ps";
    visit(
        &mut session,
        script,
        &["total 200.0", "\nPID", "-- success --"],
    )?;
    // Of two profiles at once one is refused, and told who has the other.
    let script = "2 observe exec \"profile 2000 all 1\"";
    let text = visit(&mut session, script, &[])?;
    let refused = text.matches("profile: session ").count();
    let (one, two) = (
        "profile: session 1 of session",
        "profile: session 2 of session",
    );
    ensure!(
        refused == 1 && (text.contains(one) || text.contains(two)),
        "{text}"
    );
    ensure!(text.matches("profiled 2000 ms").count() == 1, "{text}");
    session.power_off()
}

fn hang_up(context: &Context<'_>) -> Verdict {
    let mut session = boot(context, 2)?;
    let script =
        "1 control shell \"=> \" \"+run sleep 60000 &^M\" \"=> \" \"+run spin^M\" \"=run spin\" -";
    visit(&mut session, script, &["-- no status --"])?;
    visit(
        &mut session,
        "1 control exec \"run spin\" -",
        &["-- no status --"],
    )?;
    visit(
        &mut session,
        "1 observe exec \"top 60000\" -",
        &["-- no status --"],
    )?;
    // What is in the background is meant to go on.
    let processes = session.processes()?;
    let runs = |name| processes.iter().any(|process| process.name == name);
    ensure!(
        !runs("spin") && !runs("session") && runs("sleep"),
        "{processes:#?}"
    );
    session.power_off()
}

fn many(context: &Context<'_>) -> Verdict {
    let mut session = boot(context, 4)?;
    let before = Calm::of(&mut session)?;
    let script =
        "23 observe shell \"=> \" > | +echo^I +here^M \"=here\" \"=> \" +^D / 1 observe exec ps";
    let text = visit(&mut session, script, &["-- session 24 --"])?;
    let (_, ps) = text.split_once("-- session 24 --").context("it is there")?;
    ensure!(ps.matches(" session ").count() == 24, "{ps}");
    ensure!(text.matches("-- success --").count() == 24, "{text}");
    before.again(&mut session)?;
    session.power_off()
}

fn outlive(context: &Context<'_>) -> Verdict {
    let mut session = boot(context, 2)?;
    let processes = session.processes()?;
    let shell = processes.iter().find(|process| process.name == "shell");
    let pid = shell.context("no shell")?.pid;
    let script = format!(
        "run visitor 1 control shell \"=> \" \"+kill {pid}^M\" =killed \"=> \" \"+run spin &^M\" =started +^D"
    );
    session.guest.send(format!("{script}\n").as_bytes())?;
    // The console's session begins anew, and the other has gone on.
    session.guest.wait_for("\nSonde: ")?;
    session.guest.prompt()?;
    until(&mut session, |session| {
        session.expect("ps", &["spin"])?;
        Ok(())
    })?;
    session.power_off()
}

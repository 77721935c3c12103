//! What a terminal, a cat on the keyboard or a hostile peer may send: no crash, no stuck prompt.

use anyhow::ensure;

use crate::cli::BootOptions;
use crate::qemu::{POWER_OFF, debug_exit};
use crate::test::{Case, Context, Verdict};

use super::calm::until;
use super::guest::Guest;
use super::session::Session;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("a_line_of_10000_bytes_is_survived", || long_line(context)),
        Case::new("bytes_of_every_value_are_survived", || every_byte(context)),
        Case::new("input_that_is_there_before_the_machine_is_kept", || {
            piped(context)
        }),
        Case::new("lines_can_be_edited", || editing(context)),
        Case::new("bytes_typed_while_a_command_runs_are_kept", || {
            type_ahead(context)
        }),
        Case::new("tab_completes_commands_programs_and_pids", || {
            completion(context)
        }),
        Case::new("output_is_held_and_goes_on", || hold(context)),
        Case::new(
            "what_programs_write_while_output_is_held_is_not_lost",
            || programs_held(context),
        ),
        Case::new("more_shows_a_page_at_a_time", || pages(context)),
    ]
}

fn long_line(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    session.run(&"x".repeat(10_000))?;
    session.run(&format!("help {}", "y ".repeat(5_000)))?;
    session.expect("version", &["Sonde"])?;
    session.power_off()
}

fn every_byte(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    for noise in [
        &b"\0\0\0"[..],
        b"\x1b[1;2;3;4;5;6;7;8;9999999999999999999m\x1b[\x1b]0;title\x07",
        "\u{e4}\u{20ac}\u{1f980}".as_bytes(),
        b"\xff\xfe\xc3\x28\xf0\x9f",
        b"\x1b[A\x1b[B\x1b[C\x1b[D\x1b[H\x1b[F\x1bOA\x7f\x08\x01\x05\x0b\x15\x17\x0c",
    ] {
        session.guest.send(noise)?;
        // Ctrl-C drops whatever that has become, also an unfinished sequence. How many prompts that makes depends on the
        // noise; the answer tells that the last one works.
        session.guest.send(b"\x03version\n")?;
        session.guest.wait_for("Sonde 0.")?;
    }
    session.guest.send(b"version\n")?;
    session.guest.wait_for("Sonde 0.")?;
    session.guest.prompt()?;
    session.power_off()
}

fn editing(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 1)?;
    for typed in [
        "rsion\x1b[Hve",                  // Home
        "version x\x7f\x7f",              // Backspace
        "verXion\x1b[D\x1b[D\x1b[D\x7fs", // cursor left
        "garbage\x15version",             // Ctrl-U
    ] {
        session.expect(typed, &["Sonde"])?;
    }
    session.run("help")?;
    session.expect("\x1b[A\x1b[A", &["Sonde"])?;
    session.power_off()
}

/// As in `printf 'version\npoweroff\n' | ./run.sh`.
fn piped(context: &Context<'_>) -> Verdict {
    let mut guest = Guest::boot(context.image()?, BootOptions::default())?;
    guest.send(b"version\npoweroff\n")?;
    guest.close_input();
    guest.prompt()?;
    guest.wait_for("version\nSonde 0.")?;
    Ok(guest.expect_exit(debug_exit(POWER_OFF))?)
}

fn type_ahead(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    session.guest.send(b"run sleep 300\nversion\nuptime\n")?;
    let text = session.guest.wait_for("2 cpus")?;
    ensure!(text.contains("Sonde"), "{text}");
    session.guest.prompt()?;
    session.power_off()
}

fn completion(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    session.expect("vers\t", &["Sonde 0."])?;
    session.expect("repeat 2 vers\t", &["Sonde 0."])?;
    // Help has lines that look like the prompt.
    let help = session.settle(b"help kil\t\n")?;
    ensure!(help.contains("kill PID"), "{help}");
    // What is typed behind it waits for it.
    let text = session.run("run slee\t 10")?;
    ensure!(text.is_empty(), "{text}");
    let pid = session.start("spin")?;
    session.expect(&format!("kill {pid}\t"), &[&format!("killed {pid}")])?;
    // A second Tab shows the choice, above the line.
    session.guest.send(b"run s\t\t")?;
    session.guest.wait_for("sleep")?;
    session.guest.wait_for("\n> run s")?;
    session.settle(b"\x03kill \t\t\x03")?;
    // None, and nonsense.
    session.settle(b"xyz\t\t\x03nonsense \t\t\x03\"\t\t\x03\t\t\x03")?;
    session.power_off()
}

fn hold(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    session.guest.send(b"repeat 1000000 echo ping\n")?;
    // Ctrl-Q does nothing else, a letter is typed ahead.
    for key in [b"\x11", b"v"] {
        session.guest.wait_for("ping\nping")?;
        session.guest.send(b"\x13")?;
        session.guest.quiet()?;
        session.guest.send(key)?;
    }
    session.guest.wait_for("ping\nping")?;
    session.settle(b"\x03")?;
    session.power_off()
}

fn programs_held(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    session
        .guest
        .send(b"run sleep x &\nrun spin y &\nrun crash z &\n\x13")?;
    session.guest.quiet()?;
    session.settle(b"\x11")?;
    // Their lines come when they have run so far, which a prompt does not wait for.
    until(&mut session, |session| {
        session.run("version")?;
        let all = session.guest.transcript();
        for line in [
            "\nsleep: MS `x`: ",
            "\nspin: `y` is too much",
            "\ncrash: KIND `z`: ",
        ] {
            ensure!(all.contains(line), "nothing of {line:?}:\n{all}");
        }
        Ok(())
    })?;
    session.power_off()
}

fn pages(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    session.guest.send(b"more repeat 60 echo row\n")?;
    session.guest.wait_for("\n")?;
    for _ in 0..2 {
        let page = session.guest.wait_for("-- more")?;
        ensure!(page.matches("row\n").count() == 23, "{page}");
        session.guest.wait_for("--")?;
        session.guest.send(b" ")?;
    }
    let rest = session.guest.prompt()?;
    ensure!(rest.matches("row\n").count() == 14, "{rest}");
    session.guest.send(b"more repeat 60 echo row\n")?;
    session.guest.wait_for("-- more")?;
    session.guest.send(b"q")?;
    let rest = session.guest.prompt()?;
    ensure!(!rest.contains("row"), "{rest}");
    // What a program writes is on the pages, too.
    session.guest.send(b"more repeat 20 run sleep x\n")?;
    session.guest.wait_for("-- more")?;
    session.guest.send(b"\n")?;
    session.guest.prompt()?;
    session.power_off()
}

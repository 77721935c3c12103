//! Commands, as a user types them.

use anyhow::ensure;
use shell::command::{COMMANDS, Command};

use crate::test::{Case, Context, Verdict};

use super::calm::{Calm, until};
use super::session::Session;

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("commands_answer", || commands(context)),
        Case::new("programs_run_and_are_killed", || programs(context)),
        Case::new("ctrl_c_stops_what_runs", || interrupt(context)),
        Case::new("every_crash_is_reported_and_harms_itself_only", || {
            crashes(context)
        }),
        Case::new("ended_programs_leave_no_memory_behind", || leaks(context)),
    ]
}

/// Commands that end the machine: every session is left by one, and `reboot` tests the other.
pub const ENDING: [&str; 2] = ["poweroff", "reboot"];

/// Every other command as it is typed, and some of what it prints.
const ANSWERS: [(&str, &[&str]); 29] = [
    ("profile 100", &["profiled 100 ms\n", " samples on "]),
    ("top 100", &["cpu busy/idle\n", "total 200.0: "]),
    ("time run sleep 20", &[" elapsed, ", "in 1 program\n"]),
    ("time repeat 2 run chain 1 -t 50", &["in 2 programs\n"]),
    ("trace 1", &["tracing is off"]),
    ("ps", &["PID", "init", "console", "profd", "shell"]),
    ("run chain 1 -t 50", &[]),
    ("demo stop", &["demo: it does not run"]),
    ("kill 1", &["kill: "]),
    ("threads 1", &["TID"]),
    ("map 1", &["information page\n"]),
    ("mem", &["total", "free"]),
    ("uptime", &["up ", "2 cpus\n", "cpu 1: "]),
    (
        "lscpu",
        &["cpus        2 threads, ", "\nsource      timer/nmi\n"],
    ),
    ("irq", &["timer ", "spurious "]),
    ("stacks", &["USED", "cpu 1 kernel\n"]),
    ("objects", &["HANDLES\n", "init"]),
    ("dmesg", &["kernel: ", "2 cpus"]),
    ("version", &["Sonde 0."]),
    (
        "help",
        &["measure\n", "programs\n", "machine\n", "session\n"],
    ),
    ("echo one  \"two  three\"", &["one two  three\n"]),
    ("clear", &[]),
    ("repeat 3 echo tick", &["tick\ntick\ntick\n"]),
    ("more version", &["Sonde 0."]),
    ("net", &["mac         52:54:00:", "link        up\n"]),
    ("ping nowhere", &["ping: "]),
    ("netload", &["netload: "]),
    ("exit", &["exit: "]),
    ("nonsense", &["nonsense", "help"]),
];

fn commands(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    let help = session.run("help")?;
    for Command { name, .. } in COMMANDS {
        ensure!(
            help.contains(&format!("  {name} ")),
            "no {name} in:\n{help}"
        );
        // An example looks like the prompt and a command, so it is waited for by what follows it.
        session.guest.send(format!("help {name}\n").as_bytes())?;
        session.guest.wait_for("  # ")?;
    }
    session.settle(b"")?;
    for (line, parts) in ANSWERS {
        session.expect(line, parts)?;
    }
    session.power_off()
}

fn programs(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 4)?;
    let pid = session.start("spin")?;
    let row = format!("\n{pid} ");
    session.expect("ps", &[&row, "spin"])?;
    session.expect(&format!("kill {pid}"), &[&pid.to_string()])?;
    let ps = session.run("ps")?;
    ensure!(!ps.contains("spin"), "it is still there:\n{ps}");
    let text = session.run("run sleep 1")?;
    ensure!(text.is_empty(), "{text}");
    session.expect("run nosuch", &["nosuch", "no such program"])?;
    session.expect(&format!("kill {pid}"), &["it has ended"])?;
    session.expect("kill 0", &["kill: "])?;
    session.power_off()
}

fn interrupt(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    for program in ["spin", "sleep 100000"] {
        session.guest.send(format!("run {program}\n").as_bytes())?;
        session.guest.wait_for("\n")?;
        session.guest.send(b"\x03")?;
        session.guest.prompt()?;
        let name = program.split(' ').next().unwrap_or(program);
        let ps = session.run("ps")?;
        ensure!(!ps.contains(name), "it is still there:\n{ps}");
    }
    session.power_off()
}

/// Each kind of crash, and what the shell says of it.
const CRASHES: [(&str, &str); 10] = [
    ("null", "page fault: read of 0x0"),
    ("wild", "page fault: read of 0x5eadbeef0000"),
    ("stack", "page fault: write"),
    ("ud2", "invalid instruction"),
    ("divide", "divide error"),
    ("hlt", "general protection"),
    ("port", "general protection"),
    ("sse", "SSE"),
    ("exec", "page fault: execution"),
    ("panic", "panic at crash`crash+"),
];

fn crashes(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 4)?;
    let mut told = String::new();
    for (kind, says) in CRASHES {
        let text = session.expect(&format!("run crash {kind}"), &["crash: ", says])?;
        ensure!(
            !text.contains("still here"),
            "`crash {kind}` survived:\n{text}"
        );
        if kind != "exec" {
            ensure!(
                text.contains("crash`"),
                "`crash {kind}` names no place:\n{text}"
            );
        }
        let (end, mains) = match kind {
            "stack" => ("<- ...", 0),
            _ => ("<- crash`main+", 1),
        };
        let last = text.lines().last().unwrap_or_default();
        ensure!(
            last.contains(end) && text.matches("<- crash`main+").count() == mains,
            "the chain of `crash {kind}` does not end with {end}:\n{text}"
        );
        told += &text;
    }
    let message = "crash: panicked at programs/src/bin/crash.rs:";
    session.expect("run crash panic", &[message, ": asked to\n"])?;
    session.expect("ps", &["init", "console", "profd", "shell"])?;
    // init has written to the log what profd told the shell: each finds the names in its own way.
    let log = session.run("dmesg init:")? + &session.run("dmesg <-")?;
    for place in told.split_whitespace().filter(|word| word.contains('`')) {
        ensure!(log.contains(place), "no {place} in the log:\n{log}");
    }
    session.power_off()
}

fn leaks(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 4)?;
    let round = |session: &mut Session, times: usize| -> Verdict {
        for _ in 0..times {
            session.run("run sleep 1")?;
            session.run("run crash null")?;
        }
        Ok(())
    };
    // The prompt does not wait for profd: it has started when it names the place of the first crash, for which it indexes
    // the functions of `crash`, once.
    round(&mut session, 1)?;
    let before = Calm::of(&mut session)?.memory;
    // More ends than init and profd remember.
    round(&mut session, 150)?;
    // The last slots come back after the prompt; what is lost never does.
    until(&mut session, |session| {
        let after = session.memory()?;
        ensure!(after == before, "before: {before:#?}\nafter: {after:#?}");
        Ok(())
    })?;
    session.power_off()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_typed_or_ends_the_machine() {
        for Command { name, .. } in COMMANDS {
            let first = |line: &str| line.split(' ').next() == Some(name);
            let typed = ANSWERS.iter().any(|(line, _)| first(line));
            assert_ne!(typed, ENDING.contains(name), "{name}");
        }
    }
}

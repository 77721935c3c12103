//! gdb on a machine that boots: names and lines of the kernel and of programs, and breakpoints in one program alone.
//!
//! gdb gets the command that `./run.sh --gdb` prints, and commands of its own as arguments.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::cli::BootOptions;
use crate::gdb;
use crate::qemu::{POWER_OFF, debug_exit};
use crate::test::{Case, Context, Report, Verdict};

use super::guest::{Guest, PATIENCE};

/// A function of the kernel that every program goes through, and its file.
const KERNEL: (&str, &str) = ("transfer", "microkernel/core/src/ipc/transfer.rs");
/// A function of a program, and its file.
const PROGRAM: (&str, &str) = ("share_a", "programs/src/bin/shares.rs");
/// How that program is started.
const LINE: &str = "shares 60 30 10";

/// The tests, if there is a gdb that runs the script.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    if is_there() { all(context) } else { Vec::new() }
}

fn all<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("gdb_names_kernel_and_programs", || {
            debug(
                context,
                BootOptions {
                    smp: 2,
                    ..BootOptions::default()
                },
            )
        }),
        Case::new("gdb_names_kernel_and_programs_under_icount", || {
            debug(
                context,
                BootOptions {
                    smp: 1,
                    icount: true,
                    ..BootOptions::default()
                },
            )
        }),
        Case::new("gdb_commands_say_what_they_take", || usage(context)),
    ]
}

/// Says in the report if tests that were asked for are left out.
pub fn note(context: &Context<'_>, report: &mut Report) {
    if !is_there() && all(context).iter().any(|case| context.wants(case.name)) {
        report.notes.push("gdb: there is no gdb with Python".into());
    }
}

fn is_there() -> bool {
    let mut probe = Command::new("gdb");
    probe.args(["--batch", "-nx", "-ex", "python print(1)"]);
    probe.stdin(Stdio::null()).stderr(Stdio::null());
    probe.output().is_ok_and(|output| output.stdout == b"1\n")
}

/// Runs gdb on a machine with these commands; returns what it printed.
fn run(port: u16, context: &Context<'_>, commands: &[&str]) -> Result<String> {
    let mut shell = Command::new("sh");
    let patience = PATIENCE.as_secs();
    let options = format!(
        "--batch -nx -iex 'set tcp connect-timeout {patience}' -iex 'set remotetimeout {patience}'"
    );
    let line = gdb::command_line(context.image()?, port);
    let line = line.replacen("gdb ", &format!("exec gdb {options} "), 1);
    shell.args(["-c", &format!("{line} \"$@\""), "gdb"]);
    for command in commands {
        shell.args(["-ex", command]);
    }
    let mut gdb = Guest::start(shell)?;
    gdb.exit()?;
    Ok(gdb.transcript())
}

fn debug(context: &Context<'_>, options: BootOptions) -> Verdict {
    let port = gdb::free_port(0)?;
    let mut guest = Guest::wait_for_debugger(context.image()?, options, port)?;
    // It waits in the serial line until the shell reads.
    guest.send(format!("run {LINE} &\nrun {LINE} &\n").as_bytes())?;
    let said = run(
        port,
        context,
        &[
            "hbreak _start32",
            "continue",
            "echo \\nkernel:\\n",
            &format!("tbreak {}", KERNEL.0),
            "continue",
            "backtrace",
            // Every program begins at the same address, those that start with the machine before this one.
            "echo \\nstart:\\n",
            "sonde break shares _start",
            "continue",
            "sonde cpus",
            "set $first = $cr3",
            "continue",
            "set $second = $cr3",
            "echo \\nprogram:\\n",
            "delete",
            &format!("sonde break shares {}", PROGRAM.0),
            "continue",
            "backtrace",
            "sonde cpus",
            "echo \\nother:\\n",
            "delete",
            "hbreak share_b if $cr3 == $second",
            "continue",
            "print $cr3 == $second",
            "print $first != $second",
            "sonde cpus",
        ],
    )?;
    let whole = || format!("not all commands ran:\n{said}");
    let (early, rest) = said.split_once("\nkernel:\n").with_context(whole)?;
    let (kernel, rest) = rest.split_once("\nstart:\n").with_context(whole)?;
    let (start, rest) = rest.split_once("\nprogram:\n").with_context(whole)?;
    let (program, other) = rest.split_once("\nother:\n").with_context(whole)?;

    // gdb has left; the machine goes on.
    let mut pids = Vec::new();
    for _ in 0..2 {
        guest.wait_for("started ")?;
        let said = guest.prompt()?;
        pids.extend(said.split(' ').next().map(str::to_owned));
    }

    has_line(early, |line| line.ends_with(" in _start32 ()"))?;
    has_frame(context, kernel, KERNEL)?;
    has_line(kernel, |line| line.ends_with(" in syscall_entry ()"))?;
    has_line(start, |line| {
        line.starts_with('*')
            && pids
                .iter()
                .any(|pid| line.contains(&format!(" user    pid {pid} {LINE}, cr3 0x")))
            && line.ends_with(", at 0x400000 _start")
    })?;
    has_frame(context, program, PROGRAM)?;
    has_line(program, |line| {
        line.starts_with("#1 ") && line.contains(" in main () at programs/src/bin/shares.rs:")
    })?;
    has_line(program, |line| {
        line.starts_with('*') && line.ends_with(" share_a")
    })?;
    has_line(other, |line| line == "$1 = true")?;
    has_line(other, |line| line == "$2 = true")?;
    has_line(other, |line| {
        line.starts_with('*') && line.ends_with(" share_b")
    })?;

    guest.send(b"poweroff\n")?;
    Ok(guest.expect_exit(debug_exit(POWER_OFF))?)
}

/// What a command prints that is typed wrong, or where it cannot work.
fn usage(context: &Context<'_>) -> Verdict {
    let port = gdb::free_port(0)?;
    let _guest = Guest::wait_for_debugger(context.image()?, BootOptions::default(), port)?;
    let commands = [
        (
            "sonde break shares",
            "sonde break NAME LOCATION, as in: sonde break shares share_a",
        ),
        ("sonde break nothing main", "no program `nothing`: "),
        ("sonde program nothing", "no program `nothing`: "),
        (
            "sonde program",
            "the selected CPU has no program: sonde program NAME, or another CPU (sonde cpus)",
        ),
    ];
    for (command, says) in commands {
        let said = run(port, context, &[command])?;
        has_line(&said, |line| line.starts_with(says))?;
    }
    Ok(())
}

/// The innermost frame is in this function, at a line of its file that is in it.
fn has_frame(context: &Context<'_>, said: &str, (function, file): (&str, &str)) -> Verdict {
    let frame = said.lines().find(|line| line.starts_with("#0 "));
    let frame = frame.with_context(|| format!("no backtrace in:\n{said}"))?;
    let (name, line) = frame
        .split_once(&format!(" () at {file}:"))
        .with_context(|| frame.to_owned())?;
    let name = name.trim_start_matches("#0").trim();
    ensure!(name.split('<').next() == Some(function), "{frame}");
    let source = fs::read_to_string(context.workspace.root.join(file))?;
    let line: usize = line.parse()?;
    let before: Vec<&str> = source.lines().take(line).collect();
    // The function that the line is in: the last one that begins before it. A macro gives the program's its name.
    let begins = before.iter().rev().find(|line| line.contains("fn "));
    let begins = begins.with_context(|| frame.to_owned())?;
    ensure!(
        begins.contains(&format!("fn {function}")) || begins.contains("fn $name"),
        "{frame}, which is in: {begins}"
    );
    Ok(())
}

fn has_line(said: &str, is_it: impl Fn(&str) -> bool) -> Verdict {
    ensure!(said.lines().any(is_it), "a line is missing in:\n{said}");
    Ok(())
}

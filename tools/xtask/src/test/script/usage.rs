//! Arguments that are wrong: what is wrong by name, in lines that fit a screen, and status 2, before anything is built or booted.

use std::os::unix::fs::symlink;
use std::{env, fs, iter};

use anyhow::{Context as _, ensure};

use crate::test::{Case, Verdict};
use crate::workspace::Workspace;

use super::{Toolbox, expect_status, output, run_sh};
use crate::text::COLUMNS;

/// The tests.
pub fn cases(workspace: &Workspace) -> Vec<Case<'_>> {
    vec![
        Case::new("what_does_not_exist_is_refused_by_name", || {
            shapes(workspace)
        }),
        Case::new("a_missing_value_is_told_by_what_it_is", || {
            missing(workspace)
        }),
        Case::new("help_prints_the_usage", || help(workspace)),
        Case::new("a_filter_that_leaves_nothing_is_told_what_there_is", || {
            filters(workspace)
        }),
        Case::new("values_out_of_range_are_refused", || values(workspace)),
        Case::new("the_client_refuses_in_a_line", || client(workspace)),
        Case::new("the_client_costs_one_look_of_cargo", || one_look(workspace)),
    ]
}

fn shapes(workspace: &Workspace) -> Verdict {
    for arguments in [
        &["bogus"][..],
        &["--bogus"],
        &["-x"],
        &["build", "x"],
        &["test", "a", "b"],
        &["test", "--smp"],
        &["soak", "boots"],
        &["soak", "-1"],
        &["soak", "1.5"],
        &["soak", "1", "--smp"],
        &["soak", "1", "a", "b"],
        &["bench", "x"],
        &["bench", ""],
        &["bench", "--chek"],
        &["bench", "--check", "--check"],
        &["new"],
        &["new", "--server"],
        &["new", "a", "b"],
        &["new", "a", "--server", "b"],
        &["boot", "x"],
        &["boot", "build"],
        &["--smp=2", "x"],
        &["--gdb=yes"],
        &["--an-option-that-there-is-not=and-a-value", "--smp", "2"],
        &["help", "x"],
        &["--help", "x"],
        &["-h", "boot"],
        &["--gdb", "x"],
        &[""],
    ] {
        let result = output(&mut run_sh(workspace, arguments), b"")?;
        expect_status(&result, 2)?;
        let stderr = String::from_utf8_lossy(&result.stderr);
        // What is missing has no name in the arguments.
        let is_named = arguments
            .iter()
            .any(|argument| stderr.contains(&format!("`{argument}`")));
        let is_missing = stderr.contains(" takes a NAME ");
        ensure!(is_refusal(&stderr), "{arguments:?}: {stderr}");
        ensure!(is_named || is_missing, "{arguments:?}: {stderr}");
        ensure!(result.stdout.is_empty(), "{arguments:?} printed on stdout");
    }
    Ok(())
}

fn help(workspace: &Workspace) -> Verdict {
    for word in ["-h", "--help", "help"] {
        let result = output(&mut run_sh(workspace, &[word]), b"")?;
        expect_status(&result, 0)?;
        let stdout = String::from_utf8_lossy(&result.stdout);
        ensure!(stdout.starts_with("usage: ./run.sh"), "{word}: {stdout}");
        ensure!(fits(&stdout), "{word}: {stdout}");
    }
    Ok(())
}

/// Whether it is what `run.sh` says of its arguments: a line, and those on which it goes on.
fn is_refusal(stderr: &str) -> bool {
    let mut lines = stderr.lines();
    let begins = lines
        .next()
        .is_some_and(|line| line.starts_with("run.sh: "));
    begins && lines.all(|line| line.starts_with("  ")) && fits(stderr)
}

fn fits(text: &str) -> bool {
    text.lines().all(|line| line.chars().count() <= COLUMNS)
}

fn missing(workspace: &Workspace) -> Verdict {
    for (option, takes) in [
        ("--smp", "N, a number of CPUs"),
        ("--mem", "MIB, "),
        ("--cpu", "MODEL, "),
        ("--accel", "tcg or kvm"),
        ("--cmdline", "STR, "),
        ("--udp-port", "P, "),
        ("--forward", "P:G, the numbers of two ports"),
        ("--timeout", "S, a number of seconds"),
    ] {
        let result = output(&mut run_sh(workspace, &["--gdb", option]), b"")?;
        expect_status(&result, 2)?;
        let stderr = String::from_utf8_lossy(&result.stderr);
        let says = format!("run.sh: `{option}` takes a value: {takes}");
        ensure!(
            stderr.starts_with(&says) && is_refusal(&stderr),
            "{option}: {stderr}"
        );
    }
    Ok(())
}

/// Nothing is built for a filter that leaves nothing.
fn filters(workspace: &Workspace) -> Verdict {
    for (arguments, there) in [
        (&["test", "nosuchtest"][..], "the suites are lint, "),
        (&["soak", "1", "nosuchsoak"], "the soaks are boots, "),
    ] {
        let result = output(&mut run_sh(workspace, arguments), b"")?;
        expect_status(&result, 1)?;
        let stderr = String::from_utf8_lossy(&result.stderr);
        let told = stderr.split_once("xtask: no ").map_or("", |(_, told)| told);
        let told = told.replace("\n ", "");
        ensure!(told.contains(there), "{arguments:?}: {stderr}");
    }
    Ok(())
}

fn values(workspace: &Workspace) -> Verdict {
    for arguments in [
        &["--smp", "0"][..],
        &["soak", "0"],
        &["new", "Upper"],
        &["new", "match"],
        &["new", "shares"],
        &["new", "thirteen_char", "--server"],
        &["soak", "99999999999999999999"],
        &["--mem", "much"],
        &["--accel", "hvf"],
        &["--udp-port", "70000"],
        &["--forward", "7"],
        &["--smp", "65"],
        &["--smp="],
        &["boot", "--timeout", "0"],
        &["--timeout", "x"],
        &["--accel", "kvm", "--icount"],
    ] {
        let result = output(&mut run_sh(workspace, arguments), b"")?;
        expect_status(&result, 2)?;
        let stderr = String::from_utf8_lossy(&result.stderr);
        let (_, error) = stderr.split_once("error: ").unwrap_or_default();
        ensure!(fits(error), "{arguments:?}: {stderr}");
        let told = stderr.lines().filter(|line| line.starts_with("error: "));
        ensure!(
            told.count() == 1 && stderr.ends_with('\n') && !stderr.contains("\n\n"),
            "{arguments:?}: {stderr}"
        );
        ensure!(result.stdout.is_empty(), "{arguments:?} printed on stdout");
    }
    Ok(())
}

/// What the client says of its own arguments comes through, with its status, before any machine is asked.
fn client(workspace: &Workspace) -> Verdict {
    for (arguments, status, says) in [
        (&[][..], 2, "requires a subcommand"),
        (&["bogus"], 2, "unrecognized subcommand 'bogus'"),
        (&["exec"], 2, "<[HOST] COMMAND>"),
        (&["profile", "100"], 2, "--folded <FILE>|--svg <FILE>"),
        (&["load", "127.0.0.1"], 3, "no port; say HOST:PORT"),
        (
            &["load", "a:7", "--size", "1"],
            2,
            "a number from 24 to 65507",
        ),
        (&["ping", "--key", "12"], 3, "64 hexadecimal digits, not 2"),
        (&["ping", "a:0"], 3, "a number from 1 to 65535"),
        (&["ping", "--open", "--key", "12"], 2, "cannot be used with"),
    ] {
        let arguments = [&["sonde"], arguments].concat();
        let mut command = run_sh(workspace, &arguments);
        command.env("SONDE_HOST", "127.0.0.1:1");
        let result = output(&mut command, b"")?;
        expect_status(&result, status)?;
        let stderr = String::from_utf8_lossy(&result.stderr);
        let line = stderr.lines().find_map(|line| line.strip_prefix("sonde: "));
        ensure!(
            line.is_some_and(|line| line.contains(says)),
            "{arguments:?}: {stderr}"
        );
        ensure!(result.stdout.is_empty(), "{arguments:?} printed on stdout");
    }
    Ok(())
}

/// Between the command and the client's first datagram, cargo looks once whether all is built, and at nothing but the client.
fn one_look(workspace: &Workspace) -> Verdict {
    let tools = Toolbox::new(workspace, "one-look")?;
    let (log, cargo) = (tools.file("log"), tools.file("real"));
    let real = env::var_os("CARGO").context("the tests are run by cargo")?;
    symlink(real, &cargo)?;
    let script = format!("echo \"$*\" >>{log:?}\nexec {cargo:?} \"$@\"");
    tools.pretend("cargo", &script)?;
    let path = env::var_os("PATH").context("there is no PATH")?;
    let path = iter::once(tools.path().to_owned()).chain(env::split_paths(&path));

    let mut command = run_sh(workspace, &["sonde", "--help"]);
    command.env("PATH", env::join_paths(path)?);
    command.env_remove("CARGO");
    let result = output(&mut command, b"")?;
    expect_status(&result, 0)?;
    let looks = fs::read_to_string(log)?;
    ensure!(looks == "build --quiet --package sonde\n", "{looks}");
    Ok(())
}

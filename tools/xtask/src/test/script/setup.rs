//! The set-up where something is missing: one command to run and status 1, or packages that get installed.

use std::fs;
use std::process::Command;

use anyhow::ensure;

use crate::test::{Case, Verdict};
use crate::workspace::Workspace;

use super::{Toolbox, expect_status, output, run_sh};

/// What the scripts use on every machine. Neither QEMU nor a package manager is among them.
const BASICS: &[&str] = &[
    "bash", "basename", "cat", "cc", "cksum", "cp", "cut", "dirname", "env", "flock", "grep", "ls",
    "mkdir", "mktemp", "mv", "rm", "sed", "sh", "timeout", "touch", "rustup", "rustc", "cargo",
];

/// The tests.
pub fn cases(workspace: &Workspace) -> Vec<Case<'_>> {
    vec![
        Case::new(
            "without_the_right_to_install_one_command_is_printed",
            || refused(workspace),
        ),
        Case::new("without_a_package_manager_the_package_is_named", || {
            no_manager(workspace)
        }),
        Case::new("missing_packages_are_installed", || installed(workspace)),
        Case::new("a_missing_rust_is_named", || no_rust(workspace)),
        Case::new("a_wrong_qemu_variable_is_named", || wrong_qemu(workspace)),
        Case::new("a_second_setup_changes_nothing", || repeated(workspace)),
    ]
}

/// `command` on a machine that has only these tools and nothing built.
fn on(mut command: Command, tools: &Toolbox) -> Command {
    command.env("PATH", tools.path()).env_remove("QEMU");
    command.env("CARGO_TARGET_DIR", tools.file("target"));
    command
}

fn setup(workspace: &Workspace, tools: &Toolbox) -> Command {
    let mut command = Command::new(workspace.root.join("sysroot/scripts/setup.sh"));
    command.arg(tools.file("target/toolchain")).arg("qemu");
    on(command, tools)
}

fn refused(workspace: &Workspace) -> Verdict {
    let tools = Toolbox::new(workspace, "refused")?;
    tools.link(BASICS)?;
    tools.pretend("id", "echo 1000")?;
    tools.pretend("apt-get", "echo called >&2; exit 1")?;
    tools.pretend("sudo", "exit 1")?;
    for arguments in [&[][..], &["test"], &["--smp", "2"]] {
        let result = output(&mut on(run_sh(workspace, arguments), &tools), b"")?;
        expect_status(&result, 1)?;
        let stderr = String::from_utf8_lossy(&result.stderr);
        let command = "\nsudo apt-get install --no-install-recommends qemu-system-x86\n";
        ensure!(
            stderr.ends_with(command) && !stderr.contains("called"),
            "{stderr}"
        );
        ensure!(result.stdout.is_empty(), "something was printed on stdout");
        ensure!(
            !tools.file("target").exists(),
            "something was done before the refusal"
        );
    }
    Ok(())
}

fn no_manager(workspace: &Workspace) -> Verdict {
    let tools = Toolbox::new(workspace, "no-manager")?;
    tools.link(BASICS)?;
    tools.pretend("id", "echo 0")?;
    let result = output(&mut setup(workspace, &tools), b"")?;
    expect_status(&result, 1)?;
    let stderr = String::from_utf8_lossy(&result.stderr);
    ensure!(
        stderr.contains("QEMU") && stderr.contains("qemu-system-x86"),
        "{stderr}"
    );
    Ok(())
}

fn installed(workspace: &Workspace) -> Verdict {
    let tools = Toolbox::new(workspace, "installed")?;
    tools.link(BASICS)?;
    tools.pretend("id", "echo 0")?;
    // The lists are empty at first, as on a fresh machine: the first attempt fails, and works after an update.
    tools.pretend(
        "apt-get",
        r#"here=$(dirname "$0")
        echo "$*" >> "$here/log"
        case $1 in
            update) touch "$here/lists" ;;
            install) [ -e "$here/lists" ] || exit 100; cp "$here/sh" "$here/qemu-system-x86_64" ;;
        esac"#,
    )?;
    expect_status(&output(&mut setup(workspace, &tools), b"")?, 0)?;
    let log = fs::read_to_string(tools.file("log"))?;
    let expected = "install -y -qq --no-install-recommends qemu-system-x86\n";
    ensure!(log == format!("{expected}update -qq\n{expected}"), "{log}");
    ensure!(
        tools.file("target/toolchain/env").exists(),
        "the toolchain was not written down"
    );
    Ok(())
}

fn no_rust(workspace: &Workspace) -> Verdict {
    let tools = Toolbox::new(workspace, "no-rust")?;
    let without: Vec<_> = BASICS
        .iter()
        .copied()
        .filter(|tool| !tool.starts_with("rust"))
        .collect();
    tools.link(&without)?;
    let result = output(&mut setup(workspace, &tools), b"")?;
    expect_status(&result, 1)?;
    let stderr = String::from_utf8_lossy(&result.stderr);
    ensure!(stderr.contains("Rust 1.95 or newer is needed"), "{stderr}");

    tools.pretend("rustc", "echo 'rustc 1.94.1 (abcdef 2026-01-01)'")?;
    let result = output(&mut setup(workspace, &tools), b"")?;
    expect_status(&result, 1)
}

fn wrong_qemu(workspace: &Workspace) -> Verdict {
    let mut command = run_sh(workspace, &[]);
    let result = output(command.env("QEMU", "/nowhere/qemu"), b"")?;
    expect_status(&result, 1)?;
    let stderr = String::from_utf8_lossy(&result.stderr);
    ensure!(stderr.contains("/nowhere/qemu"), "{stderr}");
    Ok(())
}

fn repeated(workspace: &Workspace) -> Verdict {
    let tools = Toolbox::new(workspace, "repeated")?;
    tools.link(BASICS)?;
    tools.link(&["id"])?;
    tools.pretend("qemu-system-x86_64", "exit 0")?;
    expect_status(&output(&mut setup(workspace, &tools), b"")?, 0)?;
    let written = fs::metadata(tools.file("target/toolchain/env"))?.modified()?;
    let second = output(&mut setup(workspace, &tools), b"")?;
    expect_status(&second, 0)?;
    ensure!(
        second.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&second.stderr)
    );
    ensure!(
        fs::metadata(tools.file("target/toolchain/env"))?.modified()? == written,
        "it was written again"
    );
    Ok(())
}

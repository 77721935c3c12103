//! The set-up where something is missing: one command to run and status 1, or packages that get installed.

use std::env;
use std::fs;
use std::process::{Command, Output};

use anyhow::{Result, ensure};

use crate::test::{Case, Verdict};
use crate::text::COLUMNS;
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
        Case::new("old_package_lists_do_not_bring_an_old_compiler", || {
            old_lists(workspace)
        }),
        Case::new("a_compiler_that_is_too_old_is_not_installed", || {
            too_old(workspace)
        }),
        Case::new("rustup_adds_the_target_where_it_can", || {
            rustup_adds(workspace)
        }),
        Case::new("packages_bring_the_target_where_rustup_cannot", || {
            rustup_fails(workspace)
        }),
        Case::new("a_compiler_that_is_not_rustups_is_named", || {
            not_rustups(workspace)
        }),
        Case::new("a_missing_rust_is_named", || no_rust(workspace)),
        Case::new("a_wrong_qemu_variable_is_named", || wrong_qemu(workspace)),
        Case::new("a_second_setup_changes_nothing", || repeated(workspace)),
    ]
}

/// `command` on a machine that has only these tools and nothing built.
fn on(mut command: Command, tools: &Toolbox) -> Result<Command> {
    let path = env::join_paths([tools.path(), &tools.file(INSTALLED)])?;
    command.env("PATH", path).env_remove("QEMU");
    command.env("CARGO_TARGET_DIR", tools.file("target"));
    command.env_remove("RUSTUP_TOOLCHAIN");
    Ok(command)
}

fn setup(workspace: &Workspace, tools: &Toolbox) -> Result<Command> {
    let mut command = Command::new(workspace.root.join("sysroot/scripts/setup.sh"));
    command.arg(tools.file("target/toolchain")).arg("qemu");
    on(command, tools)
}

/// Where packages go, after the other tools in PATH.
const INSTALLED: &str = "installed";

/// A machine with QEMU, and a compiler in `own` that lacks the bare target and has no sources; the right to install. Package lists
/// give the distribution's compiler in the version `old`, and after an update in the version `new`.
fn lacking(workspace: &Workspace, name: &str, old: &str, new: &str) -> Result<Toolbox> {
    let tools = Toolbox::new(workspace, name)?;
    let real = |tool: &&str| !tool.starts_with("rust") && *tool != "cargo";
    tools.link(&BASICS.iter().copied().filter(real).collect::<Vec<_>>())?;
    tools.pretend("id", "echo 0")?;
    tools.pretend("qemu-system-x86_64", "exit 0")?;
    fs::create_dir_all(tools.file("own/bin"))?;
    fs::write(tools.file("own/bin/rustc"), "")?;
    tools.pretend(
        "rustc",
        r#"case "$*" in
            -V) echo "rustc 1.95.0 (1111111 2026-01-01)" ;;
            -vV) echo "commit-hash: 1111111111111111" ;;
            "--print sysroot") echo "$(dirname "$0")/own" ;;
        esac"#,
    )?;
    tools.pretend(
        "apt-cache",
        &format!(
            r#"version={old}
            [ ! -e "$(dirname "$0")/lists" ] || version={new}
            [ "$*" != "policy rustc-web" ] || printf '%s\n' rustc-web: "  Candidate: $version""#
        ),
    )?;
    tools.pretend(
        "apt-get",
        r#"here=$(dirname "$0")
        echo "$*" >> "$here/log"
        case $2 in
            update) touch "$here/lists" ;;
            install)
                library=$here/installed/lib/rustlib/src/rust/library
                for crate in core alloc compiler-builtins/compiler-builtins stdarch portable-simd; do
                    mkdir -p "$library/$crate"
                    touch "$library/$crate/Cargo.toml"
                done
                cp "$here/rustc" "$here/installed/rustc"
                sed -i -e s/1.95.0/1.96.0/ -e 's:/own::' "$here/installed/rustc" ;;
        esac"#,
    )?;
    // Builds the sysroot.
    tools.pretend(
        "cargo",
        r#"while [ "$1" != --target-dir ]; do shift; done
        built=$2/x86_64-unknown-none/release/deps
        mkdir -p "$built"
        touch "$built/libcore-1.rlib" "$built/liballoc-1.rlib" "$built/libcompiler_builtins-1.rlib""#,
    )?;
    Ok(tools)
}

/// Adds a rustup whose compiler is `own`. It adds the target as this script does.
fn with_rustup(tools: &Toolbox, add: &str) -> Result<()> {
    tools.pretend(
        "rustup",
        &format!(
            r#"here=$(dirname "$0")
            case $1 in
                toolchain) echo stable-x86_64-unknown-linux-gnu ;;
                which) echo "$here/own/bin/rustc" ;;
                target) {add} ;;
            esac"#
        ),
    )?;
    Ok(())
}

/// What apt-get was told; empty if it was not called.
fn log(tools: &Toolbox) -> String {
    fs::read_to_string(tools.file("log")).unwrap_or_default()
}

/// Fails unless the packages of the compiler were installed, and the target built from its sources.
fn is_built_from_packages(tools: &Toolbox) -> Verdict {
    let log = log(tools);
    let install = "-qq install -y --no-install-recommends rustc-web rust-web-src\n";
    ensure!(log == format!("-qq update\n{install}"), "{log}");
    let env = fs::read_to_string(tools.file("target/toolchain/env"))?;
    let rustc = tools.file(INSTALLED).join("rustc");
    ensure!(
        env.contains(&format!("BARE_RUSTC={}\n", rustc.display())) && env.contains("BARE_SYSROOT="),
        "{env}"
    );
    Ok(())
}

fn refused(workspace: &Workspace) -> Verdict {
    let tools = Toolbox::new(workspace, "refused")?;
    tools.link(BASICS)?;
    tools.pretend("id", "echo 1000")?;
    tools.pretend("apt-get", "echo called >&2; exit 1")?;
    tools.pretend("sudo", "exit 1")?;
    for arguments in [&[][..], &["test"], &["--smp", "2"]] {
        let result = output(&mut on(run_sh(workspace, arguments), &tools)?, b"")?;
        expect_status(&result, 1)?;
        let stderr = String::from_utf8_lossy(&result.stderr);
        let command = "\nsudo apt-get update && sudo apt-get install --no-install-recommends qemu-system-x86\n";
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

/// Runs a set-up that must end with status 1; returns what it says, which must fit a screen, each message as one line.
fn setup_fails(workspace: &Workspace, tools: &Toolbox) -> Result<String> {
    let result = output(&mut setup(workspace, tools)?, b"")?;
    expect_status(&result, 1)?;
    let stderr = String::from_utf8_lossy(&result.stderr);
    for line in stderr.lines() {
        // Commands and paths are whole, to be copied.
        let is_whole = line.starts_with("sudo ") || !line.trim().contains(' ');
        ensure!(is_whole || line.chars().count() <= COLUMNS, "{stderr}");
    }
    Ok(joined(&result))
}

fn no_manager(workspace: &Workspace) -> Verdict {
    let tools = Toolbox::new(workspace, "no-manager")?;
    tools.link(BASICS)?;
    tools.pretend("id", "echo 0")?;
    let stderr = setup_fails(workspace, &tools)?;
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
    // The lists are empty at first, as on a fresh machine.
    tools.pretend(
        "apt-get",
        r#"here=$(dirname "$0")
        echo "$*" >> "$here/log"
        case $2 in
            update) touch "$here/lists" ;;
            install) [ -e "$here/lists" ] || exit 100; cp "$here/sh" "$here/qemu-system-x86_64" ;;
        esac"#,
    )?;
    expect_status(&output(&mut setup(workspace, &tools)?, b"")?, 0)?;
    let log = log(&tools);
    let install = "-qq install -y --no-install-recommends qemu-system-x86\n";
    ensure!(log == format!("-qq update\n{install}"), "{log}");
    ensure!(
        tools.file("target/toolchain/env").exists(),
        "the toolchain was not written down"
    );
    Ok(())
}

const OLD: &str = "1.85.0+dfsg3-1~deb12u3";
const NEW: &str = "1.96.0+dfsg1-1~deb12u2";

fn old_lists(workspace: &Workspace) -> Verdict {
    let tools = lacking(workspace, "old-lists", OLD, NEW)?;
    expect_status(&output(&mut setup(workspace, &tools)?, b"")?, 0)?;
    is_built_from_packages(&tools)
}

fn too_old(workspace: &Workspace) -> Verdict {
    for offered in [OLD, "1:1.85.0-1", "'(none)'"] {
        let tools = lacking(workspace, "too-old", offered, offered)?;
        let stderr = setup_fails(workspace, &tools)?;
        let says = format!("rustc-web is {}, and 1.95", offered.trim_matches('\''));
        ensure!(stderr.contains(&says), "{stderr}");
        ensure!(log(&tools) == "-qq update\n", "{}", log(&tools));

        // Who may not install is told before, and what was installed in vain is not asked for again without a word.
        tools.pretend("id", "echo 1000")?;
        let stderr = setup_fails(workspace, &tools)?;
        let command = "sudo apt-get update && sudo apt-get install --no-install-recommends rustc-web rust-web-src\n";
        ensure!(stderr.ends_with(command), "{stderr}");
        ensure!(stderr.contains("must be 1.95 or newer"), "{stderr}");
    }
    Ok(())
}

fn rustup_adds(workspace: &Workspace) -> Verdict {
    let tools = lacking(workspace, "rustup-adds", OLD, NEW)?;
    let add = r#"lib=$here/own/lib/rustlib/x86_64-unknown-none/lib
        mkdir -p "$lib"; touch "$lib/libcore-1.rlib" "$lib/liballoc-1.rlib""#;
    with_rustup(&tools, add)?;
    expect_status(&output(&mut setup(workspace, &tools)?, b"")?, 0)?;
    let env = fs::read_to_string(tools.file("target/toolchain/env"))?;
    ensure!(
        env == "RUSTUP_TOOLCHAIN=stable-x86_64-unknown-linux-gnu\n",
        "{env}"
    );
    ensure!(log(&tools).is_empty(), "{}", log(&tools));
    Ok(())
}

/// What a command said, each message as one line.
fn joined(result: &Output) -> String {
    String::from_utf8_lossy(&result.stderr).replace("\n  ", " ")
}

fn rustup_fails(workspace: &Workspace) -> Verdict {
    for (add, says) in [
        ("exit 1", "rustup cannot add it here"),
        ("exit 0", "rustup says that it is there, but it is not"),
    ] {
        let tools = lacking(workspace, "rustup-fails", OLD, NEW)?;
        with_rustup(&tools, add)?;
        let result = output(&mut setup(workspace, &tools)?, b"")?;
        expect_status(&result, 0)?;
        let stderr = joined(&result);
        ensure!(stderr.contains(says), "{stderr}");
        is_built_from_packages(&tools)?;
    }
    Ok(())
}

fn not_rustups(workspace: &Workspace) -> Verdict {
    let tools = lacking(workspace, "not-rustups", OLD, NEW)?;
    with_rustup(&tools, r#"touch "$here/called""#)?;
    // Another compiler than rustup's is first in PATH.
    fs::remove_file(tools.file("own/bin/rustc"))?;
    tools.pretend("id", "echo 1000")?;
    let stderr = setup_fails(workspace, &tools)?;
    let rustc = tools.file("rustc");
    let says = format!("for {}, which is not rustup's.", rustc.display());
    ensure!(stderr.contains(&says), "{stderr}");

    tools.pretend("id", "echo 0")?;
    let result = output(&mut setup(workspace, &tools)?, b"")?;
    expect_status(&result, 0)?;
    let stderr = joined(&result);
    ensure!(!stderr.contains("cannot add"), "{stderr}");
    ensure!(!tools.file("called").exists(), "rustup was asked to add it");
    is_built_from_packages(&tools)
}

fn no_rust(workspace: &Workspace) -> Verdict {
    let tools = Toolbox::new(workspace, "no-rust")?;
    let without: Vec<_> = BASICS
        .iter()
        .copied()
        .filter(|tool| !tool.starts_with("rust"))
        .collect();
    tools.link(&without)?;
    let stderr = setup_fails(workspace, &tools)?;
    ensure!(stderr.contains("Rust 1.95 or newer is needed"), "{stderr}");

    tools.pretend("rustc", "echo 'rustc 1.94.1 (abcdef 2026-01-01)'")?;
    let result = output(&mut setup(workspace, &tools)?, b"")?;
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
    expect_status(&output(&mut setup(workspace, &tools)?, b"")?, 0)?;
    let written = fs::metadata(tools.file("target/toolchain/env"))?.modified()?;
    let second = output(&mut setup(workspace, &tools)?, b"")?;
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

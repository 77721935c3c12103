//! `run.sh boot` with a QEMU that only pretends: what it is told, what passes through, and what each end means.

use std::fs;
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use crate::system::guest::PATIENCE;
use crate::test::{Case, Context, Verdict};

use super::{Toolbox, expect_status, output, run_sh};

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("serial_alone_is_on_stdout", || serial(context)),
        Case::new("only_a_power_off_is_success", || statuses(context)),
        Case::new("a_restart_boots_the_same_machine_again", || {
            restart(context)
        }),
        Case::new("options_reach_qemu", || options(context)),
        Case::new("memory_that_cannot_hold_the_image_is_refused", || {
            memory(context)
        }),
        Case::new("a_cpu_that_qemu_does_not_have_is_refused", || cpu(context)),
        Case::new("the_time_ends_a_machine_that_hangs", || timeout(context)),
        Case::new("a_signal_ends_the_machine_too", || signal(context)),
        Case::new("the_machine_ends_with_whoever_waits_for_it", || {
            killed(context)
        }),
        Case::new("kvm_that_aborts_is_replaced", || kvm(context)),
    ]
}

/// `run.sh` with this script for QEMU.
fn boot(
    context: &Context<'_>,
    tools: &Toolbox,
    qemu: &str,
    arguments: &[&str],
) -> anyhow::Result<Command> {
    context.image()?;
    let mut command = run_sh(context.workspace, arguments);
    command.env("QEMU", tools.pretend("qemu", qemu)?);
    Ok(command)
}

fn serial(context: &Context<'_>) -> Verdict {
    let tools = Toolbox::new(context.workspace, "serial")?;
    let mut command = boot(context, &tools, "printf 'boot> '; cat; exit 33", &[])?;
    let input = b"typed \x00\x03\xff\n";
    let result = output(&mut command, input)?;
    expect_status(&result, 0)?;
    ensure!(
        result.stdout == [b"boot> ", &input[..]].concat(),
        "{:?}",
        String::from_utf8_lossy(&result.stdout)
    );
    Ok(())
}

fn statuses(context: &Context<'_>) -> Verdict {
    let tools = Toolbox::new(context.workspace, "statuses")?;
    for (qemu, status, says) in [
        ("exit 33", 0, ""),
        ("exit 35", 35, "after an error"),
        ("exit 0", 1, "triple fault"),
        ("exit 1", 1, ""),
        ("kill -9 $$", 1, "signal 9"),
    ] {
        let result = output(&mut boot(context, &tools, qemu, &["boot"])?, b"")?;
        expect_status(&result, status)?;
        let stderr = String::from_utf8_lossy(&result.stderr);
        ensure!(stderr.contains(says), "{qemu}: {stderr}");
    }
    Ok(())
}

/// QEMU that ends as after a restart is started again with the same arguments and streams, until it ends otherwise; the time that was
/// given is for all of it.
fn restart(context: &Context<'_>) -> Verdict {
    let tools = Toolbox::new(context.workspace, "restart")?;
    let (first, second) = (tools.file("first"), tools.file("second"));
    let runs = format!(
        "if [ -e {first} ]; then echo \"$@\" > {second}; echo again; exit 33; fi\n\
         echo \"$@\" > {first}; echo once; exit 37",
        first = first.display(),
        second = second.display()
    );
    let arguments = ["--smp", "2", "--", "-x y"];
    let result = output(&mut boot(context, &tools, &runs, &arguments)?, b"")?;
    expect_status(&result, 0)?;
    ensure!(
        result.stdout == b"once\nagain\n",
        "{:?}",
        String::from_utf8_lossy(&result.stdout)
    );
    let (first, second) = (fs::read_to_string(first)?, fs::read_to_string(second)?);
    ensure!(
        first == second && first.ends_with(" -x y\n"),
        "{first}{second}"
    );
    let result = output(
        &mut boot(context, &tools, "exit 37", &["--timeout", "1"])?,
        b"",
    )?;
    expect_status(&result, 124)
}

fn options(context: &Context<'_>) -> Verdict {
    let tools = Toolbox::new(context.workspace, "options")?;
    let qemu = "for word; do echo \"$word\"; done; exit 33";
    let arguments = [
        "--smp",
        "3",
        "--mem",
        "77",
        "--cmdline",
        "a  b",
        "--icount",
        "--udp-port",
        "4000",
        "--gdb",
        "--",
        "-x y",
    ];
    let result = output(&mut boot(context, &tools, qemu, &arguments)?, b"")?;
    expect_status(&result, 0)?;
    let words = String::from_utf8(result.stdout)?;
    let stderr = String::from_utf8_lossy(&result.stderr);
    for expected in [
        "-smp\n3\n",
        "-m\n77M\n",
        "-append\na  b\n",
        "-icount\nshift=0,sleep=off\n",
        "user,id=net,hostfwd=udp:127.0.0.1:4000-:5555\n",
    ] {
        ensure!(words.contains(expected), "no {expected:?} in:\n{words}");
    }
    let port = words.split_once("-gdb\ntcp:127.0.0.1:");
    let port = port.and_then(|(_, rest)| rest.lines().next());
    let port = port.with_context(|| format!("no port in:\n{words}"))?;
    ensure!(
        stderr.contains(&format!("-ex 'target remote 127.0.0.1:{port}'")),
        "no port {port} in:\n{stderr}"
    );
    ensure!(words.ends_with("\n-x y\n"), "{words}");
    // Without a remote shell, nobody is sent there.
    ensure!(!stderr.contains("sonde shell"), "{stderr}");
    let mut command = boot(context, &tools, qemu, &["--udp-port", "4000"])?;
    let result = output(&mut command, b"")?;
    let stderr = String::from_utf8_lossy(&result.stderr);
    let words = String::from_utf8_lossy(&result.stdout);
    ensure!(words.contains("-append\nudpshell=5555\n"), "{words}");
    let says = "in another terminal: ./run.sh sonde shell (UDP port 4000)";
    ensure!(stderr.contains(says), "{stderr}");
    Ok(())
}

fn memory(context: &Context<'_>) -> Verdict {
    let tools = Toolbox::new(context.workspace, "memory")?;
    let ran = tools.file("ran");
    let qemu = format!("touch {}; exit 33", ran.display());
    let result = output(&mut boot(context, &tools, &qemu, &["--mem", "2"])?, b"")?;
    expect_status(&result, 1)?;
    let stderr = String::from_utf8_lossy(&result.stderr);
    let says = "error: --mem 2 cannot hold the image: at least ";
    ensure!(
        stderr.lines().any(|line| line.starts_with(says)),
        "{stderr}"
    );
    ensure!(!ran.exists(), "QEMU was started");
    Ok(())
}

/// QEMU lists its models; a machine is made of one that it has, with features behind it or not, and of no other.
fn cpu(context: &Context<'_>) -> Verdict {
    let tools = Toolbox::new(context.workspace, "cpu")?;
    let ran = tools.file("ran");
    let qemu = format!(
        "case \"$*\" in *'-cpu help') echo 'x86 some  of some maker' ;; *) touch {}; exit 33 ;; esac",
        ran.display()
    );
    let result = output(
        &mut boot(context, &tools, &qemu, &["--cpu", "nosuch,+a"])?,
        b"",
    )?;
    expect_status(&result, 2)?;
    let stderr = String::from_utf8_lossy(&result.stderr).replace("\n ", "");
    for says in ["error: --cpu nosuch: ", "/qemu -cpu help` lists "] {
        ensure!(stderr.contains(says), "no {says:?} in:\n{stderr}");
    }
    for host in ["host", "host,+a"] {
        let result = output(&mut boot(context, &tools, &qemu, &["--cpu", host])?, b"")?;
        expect_status(&result, 2)?;
        let stderr = String::from_utf8_lossy(&result.stderr).replace("\n ", "");
        let says = "; --accel kvm --cpu host uses it";
        ensure!(stderr.contains(says), "no {says:?} in:\n{stderr}");
    }
    ensure!(!ran.exists(), "a machine was started");
    for model in ["some", "some,+a"] {
        let result = output(&mut boot(context, &tools, &qemu, &["--cpu", model])?, b"")?;
        expect_status(&result, 0)?;
    }
    Ok(())
}

fn timeout(context: &Context<'_>) -> Verdict {
    let tools = Toolbox::new(context.workspace, "timeout")?;
    let pid = tools.file("pid");
    let qemu = format!("echo $$ > {}; echo here; exec sleep 600", pid.display());
    let start = Instant::now();
    let result = output(&mut boot(context, &tools, &qemu, &["--timeout", "1"])?, b"")?;
    expect_status(&result, 124)?;
    ensure!(
        result.stdout == b"here\n",
        "{:?}",
        String::from_utf8_lossy(&result.stdout)
    );
    ensure!(
        start.elapsed() < Duration::from_secs(300),
        "it waited for the machine"
    );
    ensure!(
        !is_alive(fs::read_to_string(pid)?.trim()),
        "the machine still runs"
    );
    Ok(())
}

fn signal(context: &Context<'_>) -> Verdict {
    let tools = Toolbox::new(context.workspace, "signal")?;
    let pid = tools.file("pid");
    // It kills its parent, as a script that gives up on `run.sh` would.
    let qemu = format!(
        "echo $$ > {}; kill -TERM $PPID; exec sleep 600",
        pid.display()
    );
    let result = output(&mut boot(context, &tools, &qemu, &[])?, b"")?;
    expect_status(&result, 128 + 15)?;
    ensure!(
        !is_alive(fs::read_to_string(pid)?.trim()),
        "the machine still runs"
    );
    Ok(())
}

fn killed(context: &Context<'_>) -> Verdict {
    let tools = Toolbox::new(context.workspace, "killed")?;
    // It kills its parent, as a host that is out of memory would, and runs as long as it has input.
    let mut command = boot(context, &tools, "kill -KILL $PPID; exec cat", &[])?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let input = child.stdin.take();
    let mut stdout = child.stdout.take().context("no stdout")?;
    let status = child.wait()?;
    ensure!(status.signal() == Some(9), "{status}");
    let (sender, ended) = mpsc::channel();
    thread::spawn(move || {
        let read = stdout.read_to_end(&mut Vec::new());
        let _ = sender.send(read);
    });
    let read = ended.recv_timeout(PATIENCE);
    drop(input);
    read.context("the machine still runs")??;
    Ok(())
}

fn kvm(context: &Context<'_>) -> Verdict {
    let tools = Toolbox::new(context.workspace, "kvm")?;
    let qemu = "case \"$*\" in *'-cpu help') echo host ;; *'-accel kvm'*) echo 'qemu: no such MSR' >&2; kill -6 $$ ;; *'-accel tcg'*'-cpu max'*) exit 33 ;; *) exit 1 ;; esac";
    for cpu in ["max", "host"] {
        let arguments = ["--accel", "kvm", "--cpu", cpu];
        let result = output(&mut boot(context, &tools, qemu, &arguments)?, b"")?;
        expect_status(&result, 0)?;
        let stderr = String::from_utf8_lossy(&result.stderr);
        let why = "KVM cannot be used here: no such MSR; emulating with TCG";
        ensure!(stderr.contains(why), "{stderr}");
    }
    Ok(())
}

fn is_alive(pid: &str) -> bool {
    fs::exists(format!("/proc/{pid}")).unwrap_or(true)
}

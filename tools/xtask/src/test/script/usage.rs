//! Arguments that are wrong: a line that names what is wrong, and status 2, before anything is built or booted.

use anyhow::ensure;

use crate::test::{Case, Verdict};
use crate::workspace::Workspace;

use super::{expect_status, output, run_sh};

/// The tests.
pub fn cases(workspace: &Workspace) -> Vec<Case<'_>> {
    vec![
        Case::new("what_does_not_exist_is_refused_by_name", || {
            shapes(workspace)
        }),
        Case::new("help_prints_the_usage", || help(workspace)),
        Case::new("values_out_of_range_are_refused", || values(workspace)),
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
        &["--smp"],
        &["--smp=2"],
        &["--timeout"],
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
        let is_missing = stderr.contains(" takes a value;") || stderr.contains(" takes a NAME ");
        ensure!(
            stderr.starts_with("run.sh: ") && stderr.lines().count() == 1,
            "{arguments:?}: {stderr}"
        );
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
        &["boot", "--timeout", "0"],
        &["--accel", "kvm", "--icount"],
    ] {
        let result = output(&mut run_sh(workspace, arguments), b"")?;
        expect_status(&result, 2)?;
        let stderr = String::from_utf8_lossy(&result.stderr);
        let told = stderr.lines().filter(|line| line.starts_with("error: "));
        ensure!(
            told.count() == 1 && stderr.ends_with('\n') && !stderr.contains("\n\n"),
            "{arguments:?}: {stderr}"
        );
        ensure!(result.stdout.is_empty(), "{arguments:?} printed on stdout");
    }
    Ok(())
}

//! Arguments that are wrong: usage and status 2, before anything is built or booted.

use anyhow::ensure;

use crate::test::{Case, Verdict};
use crate::workspace::Workspace;

use super::{expect_status, output, run_sh};

/// The tests.
pub fn cases(workspace: &Workspace) -> Vec<Case<'_>> {
    vec![
        Case::new("usage_is_printed_for_what_does_not_exist", || {
            shapes(workspace)
        }),
        Case::new("values_out_of_range_are_refused", || values(workspace)),
    ]
}

fn shapes(workspace: &Workspace) -> Verdict {
    for arguments in [
        &["bogus"][..],
        &["--bogus"],
        &["-h"],
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
        ensure!(
            stderr.starts_with("usage: ./run.sh"),
            "{arguments:?}: {stderr}"
        );
        ensure!(result.stdout.is_empty(), "{arguments:?} printed on stdout");
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
        ensure!(result.stdout.is_empty(), "{arguments:?} printed on stdout");
    }
    Ok(())
}

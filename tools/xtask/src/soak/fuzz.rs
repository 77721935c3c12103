//! The targets of `tools/fuzz`, with libFuzzer looking for inputs that reach further: one target, for some seconds.
//!
//! Stable Rust can do it: the compiler counts which edges of the program were passed by flags of its own, and libFuzzer comes
//! with the crate `libfuzzer-sys`. What it kept of a round is where the next one begins.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use fastrand::Rng;

use crate::child;
use crate::test::{Context, Verdict, succeed};
use crate::workspace::Workspace;

/// How long a round looks, in seconds.
const SECONDS: u32 = 20;
/// Longest input, in bytes: two of the longest frames, or a small ELF file.
const BYTES_MAX: u32 = 4096;
/// An input that takes longer than this, in seconds, or more memory than this, in MiB, is a finding.
const INPUT_SECONDS_MAX: u32 = 20;
const MEMORY_MAX: u32 = 1024;

/// Counts edges, and says where they are and what comparisons compare.
const COVERAGE: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

pub(super) fn round(context: &Context<'_>, dice: &mut Rng, target: &str) -> Verdict {
    let workspace = context.workspace;
    let program = build(workspace)?;
    let kept = workspace.target.join("fuzz/kept").join(target);
    let found = workspace.target.join("fuzz/found").join(target);
    fs::create_dir_all(&kept)?;
    fs::create_dir_all(&found)?;
    let mut fuzzer = child::command(&program);
    fuzzer
        .env("SONDE_FUZZ_TARGET", target)
        .arg(format!("-seed={}", dice.u32(1..)))
        .arg(format!("-max_total_time={SECONDS}"))
        .arg(format!("-max_len={BYTES_MAX}"))
        .arg(format!("-timeout={INPUT_SECONDS_MAX}"))
        .arg(format!("-rss_limit_mb={MEMORY_MAX}"))
        // Acts are short: what is long from the beginning does more of them.
        .args(["-len_control=0", "-use_value_profile=1"])
        .arg(format!("-artifact_prefix={}/", found.display()))
        .arg(kept)
        .arg(workspace.root.join("tools/fuzz/corpus").join(target));
    let output = fuzzer.output().context("the fuzzer cannot be run")?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!(
            "{}\nto make it a test, copy the input that is named there to tools/fuzz/corpus/{target}",
            finding(&text)
        );
    }
    let done = text.lines().find(|line| line.contains("DONE"));
    println!(
        "{target}: {}",
        done.context("libFuzzer does not say that it is done")?
    );
    Ok(())
}

/// What libFuzzer says of a finding, without what it said of its progress.
fn finding(text: &str) -> String {
    let lines = text.lines().skip_while(|line| {
        ["INFO:", "#", "\tNEW_FUNC"]
            .iter()
            .any(|of| line.starts_with(of))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Builds the fuzzer; the program.
fn build(workspace: &Workspace) -> Result<PathBuf> {
    let host = host()?;
    let target = workspace.target.join("fuzz");
    let mut cargo = workspace.cargo("build");
    cargo.args(["--quiet", "--package", "fuzz", "--features", "guided"]);
    // With a target named, what runs while building is built without the flags.
    cargo.args(["--profile", "fuzz", "--target", &host]);
    cargo.env("CARGO_TARGET_DIR", &target);
    cargo
        .env("RUSTFLAGS", COVERAGE)
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    succeed(&mut cargo)?;
    Ok(target.join(host).join("fuzz/fuzz"))
}

/// The target that the compiler itself runs on.
fn host() -> Result<String> {
    let output = Command::new("rustc")
        .arg("-vV")
        .output()
        .context("rustc cannot be run")?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say its host")?.to_owned())
}

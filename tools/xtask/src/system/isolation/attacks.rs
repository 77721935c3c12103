//! The program `isolation` has each attack carried out by a process of its own. What it printed is left in the target directory, as a
//! table of attacks, tries and outcomes.

use std::fs;

use anyhow::{Context as _, Result, bail, ensure};

use crate::cli::BootOptions;
use crate::test::{Context, Verdict};

use super::super::calm::Calm;
use super::super::session::Session;

/// Times that each attack is carried out with each of its values.
const ROUNDS: u32 = 2;

/// The promises that must have been tried, in the order of the table.
const PROMISES: [&str; 19] = [
    "kernel memory",
    "another process's memory",
    "unmapped memory",
    "executing data",
    "writing code",
    "W^X",
    "guard pages",
    "ports",
    "MSRs",
    "counters",
    "privileged instructions",
    "ways into the kernel",
    "UMIP",
    "x87, MMX, SSE",
    "flags",
    "handles",
    "profiler",
    "kernel addresses",
    "sample rings",
];
/// Columns of the promise, and of the attack behind it.
const PROMISE: usize = 27;
const ATTACK: usize = 40;

/// Boots so many CPUs of this model, and has every attack tried: each must be held, and the system be as before.
pub fn held(context: &Context<'_>, model: &str, smp: u32) -> Verdict {
    let options = BootOptions {
        smp,
        cpu: model.to_owned(),
        ..BootOptions::default()
    };
    let mut session = Session::boot_image(context.test_image()?, options)?;
    // The first profile is before, so that profd has what it needs.
    session.profile("100 all 1")?;
    session.run("run isolation attack 0 0")?;
    let before = Calm::of(&mut session)?;
    let text = session.run(&format!("run isolation {ROUNDS}"))?;
    let cpus = if smp == 1 { "cpu" } else { "cpus" };
    let model = model.replace([',', '='], "-");
    let file = format!("isolation-{model}-{smp}-{cpus}.txt");
    fs::write(context.workspace.target.join(file), &text)?;
    let promises = promises(&text)?;
    ensure!(promises == PROMISES, "tried were {promises:?}, in:\n{text}");
    before.again(&mut session)?;
    session.profile("200 all")?;
    session.power_off()
}

/// The promises of the table's rows, each once, if every attack was held.
fn promises(text: &str) -> Result<Vec<&str>> {
    let failed: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("FAIL"))
        .collect();
    ensure!(failed.is_empty(), "{}\nin:\n{text}", failed.join("\n"));
    let mut lines = text
        .lines()
        .skip_while(|line| !line.starts_with("PROMISE "))
        .skip(1);
    let (mut promises, mut attacks, mut tries) = (Vec::new(), 0, 0);
    for line in &mut lines {
        if let Some(verdict) = line.strip_prefix("isolation: ") {
            let whole = format!("{attacks} attacks, {tries} tries, 0 failed");
            ensure!(verdict == whole, "{verdict}, not {whole}, in:\n{text}");
            ensure!(lines.next().is_none(), "it did not end well:\n{text}");
            return Ok(promises);
        }
        let row = row(line).with_context(|| format!("`{line}` is no row of the table"))?;
        ensure!(row.tries > 0, "not tried: {line}");
        if !promises.contains(&row.promise) {
            promises.push(row.promise);
        }
        attacks += 1;
        tries += row.tries;
    }
    bail!("no verdict in:\n{text}")
}

struct Row<'a> {
    promise: &'a str,
    tries: u64,
}

fn row(line: &str) -> Option<Row<'_>> {
    let (promise, rest) = line.split_at_checked(PROMISE)?;
    let (_, rest) = rest.split_at_checked(ATTACK)?;
    let (tries, outcome) = rest.trim_start().split_once("  ")?;
    let (promise, tries) = (promise.trim_end(), tries.parse().ok()?);
    (!promise.is_empty() && !outcome.is_empty()).then_some(Row { promise, tries })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
PROMISE                    ATTACK                                   TRIES  OUTCOME
kernel memory              read                                        30  page fault: read
kernel memory              write                                       30  page fault: write
handles                    forge, for each call                      8000  refused
isolation: 3 attacks, 8060 tries, 0 failed
";

    #[test]
    fn a_table_is_read() {
        assert_eq!(promises(TEXT).unwrap(), ["kernel memory", "handles"]);
    }

    #[test]
    fn what_was_not_held_is_refused() {
        for (old, new, says) in [
            (
                "PROMISE",
                "FAIL handles: forge (0x0): x\nPROMISE",
                "FAIL handles: forge",
            ),
            (
                "  30  page fault: write",
                "   0  page fault: write",
                "not tried",
            ),
            ("8060 tries", "8061 tries", "8060 tries"),
            ("3 attacks", "4 attacks", "3 attacks"),
            ("0 failed", "1 failed", "0 failed"),
            (
                "0 failed\n",
                "0 failed\nisolation: exited with code 1\n",
                "end well",
            ),
            ("8000  refused", "refused", "no row"),
            ("isolation: 3", "isolation:  3", "3 attacks"),
        ] {
            let error = promises(&TEXT.replacen(old, new, 1)).expect_err(new);
            assert!(error.to_string().contains(says), "{new}: {error}");
        }
        assert!(promises("").is_err());
    }
}

//! `./run.sh soak`: random rounds of what breaks systems that have run for long, until the time is over or something breaks.
//!
//! A round gets a seed and makes every choice from it, and each seed follows from the one before: the seed of a round that
//! failed repeats that round and those that came after. It repeats the choices, not the machine: with several CPUs the
//! order of events is a matter of the moment.

mod bootfs;
mod boots;
mod commands;
mod dice;
mod fuzz;
mod load;
mod nmis;
mod properties;
mod storm;
mod typing;
mod witness;

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use fastrand::Rng;

use crate::test::{Case, Context, Images, Verdict, nothing, print_failures, run_case, verdict};
use crate::workspace::Workspace;

/// Environment variable that says the first round's seed.
const SEED: &str = "SONDE_SEED";

/// One thing that is done again and again.
#[derive(Clone, Copy)]
struct Soak {
    name: &'static str,
    /// Whether the system tests have a short form of it, under this name.
    test: Option<&'static str>,
    round: fn(&Context<'_>, &mut Rng) -> Verdict,
}

/// The soak of one fuzz target. The tests `corpus` of the suite `host` are its short form.
macro_rules! fuzz {
    ($name:literal) => {
        Soak {
            name: concat!("fuzz-", $name),
            test: None,
            round: |context, dice| fuzz::round(context, dice, $name),
        }
    };
}

const SOAKS: [Soak; 19] = [
    Soak {
        name: "boots",
        test: Some("a_soak_of_boots"),
        round: boots::round,
    },
    Soak {
        name: "storm",
        test: Some("a_soak_of_programs"),
        round: storm::round,
    },
    Soak {
        name: "typing",
        test: Some("a_soak_of_noise_typed"),
        round: typing::round,
    },
    Soak {
        name: "commands",
        test: Some("a_soak_of_commands"),
        round: commands::round,
    },
    Soak {
        name: "bootfs",
        test: Some("a_soak_of_damaged_archives"),
        round: bootfs::round,
    },
    Soak {
        name: "load",
        test: Some("a_soak_of_load"),
        round: load::round,
    },
    // The tests `storm_of_nmis` of the suite `system` are its short form.
    Soak {
        name: "nmis",
        test: None,
        round: nmis::round,
    },
    Soak {
        name: "witness",
        test: None,
        round: witness::round,
    },
    // The tests of the suite `host` are its short form.
    Soak {
        name: "properties",
        test: None,
        round: properties::round,
    },
    fuzz!("archive"),
    fuzz!("boot"),
    fuzz!("image"),
    fuzz!("network"),
    fuzz!("pci"),
    fuzz!("remote-client"),
    fuzz!("remote-server"),
    fuzz!("samples"),
    fuzz!("settings"),
    fuzz!("virtio"),
];

impl Soak {
    /// The round with this seed.
    fn case<'a>(self, name: &'static str, context: &'a Context<'a>, seed: u64) -> Case<'a> {
        Case::new(name, move || {
            let repeat = || {
                format!(
                    "repeat it with: {SEED}={seed} ./run.sh soak 1 {}",
                    self.name
                )
            };
            (self.round)(context, &mut Rng::with_seed(seed)).with_context(repeat)
        })
    }
}

/// A short form of each, with a seed that is always the same: for the system tests.
pub fn short_cases<'a>(context: &'a Context<'a>) -> Vec<Case<'a>> {
    let short = |soak: &Soak| Some(soak.case(soak.test?, context, 1));
    SOAKS.iter().filter_map(short).collect()
}

/// Goes through the soaks whose name contains the filter, round after round, until the minutes are over or one failed. The
/// status is success if at least one round passed and none failed.
///
/// # Errors
/// If the image does not build, or the first seed is no number.
pub fn run(workspace: &Workspace, minutes: u64, filter: &str) -> Result<ExitCode> {
    let seed = match env::var(SEED) {
        Ok(text) => text
            .parse()
            .with_context(|| format!("{SEED} is {text:?}, no number"))?,
        Err(_) => fastrand::u32(..).into(),
    };
    let context = Context {
        workspace,
        suite: "soak",
        filter,
        images: &Images::default(),
    };
    let wanted: Vec<_> = SOAKS
        .into_iter()
        .filter(|soak| context.wants(soak.name))
        .collect();
    if wanted.is_empty() {
        let soaks = SOAKS.map(|soak| soak.name);
        eprintln!("{}", nothing("soak", filter, "soaks", &soaks));
    } else {
        context.image()?;
    }
    let time = Duration::from_secs(minutes * 60);
    rounds(&mut io::stdout().lock(), &context, &wanted, seed, time)
}

/// The rounds. The one that has begun when the time is over is finished.
fn rounds(
    out: &mut impl Write,
    context: &Context<'_>,
    soaks: &[Soak],
    mut seed: u64,
    time: Duration,
) -> Result<ExitCode> {
    let (start, mut passed) = (Instant::now(), 0);
    while !soaks.is_empty() && (passed == 0 || start.elapsed() < time) {
        for soak in soaks {
            eprintln!("{}::{} seed {seed}", context.suite, soak.name);
            let outcome = run_case(context, &soak.case(soak.name, context, seed));
            if print_failures(out, context.suite, &[outcome])? > 0 {
                return verdict(out, passed, 1);
            }
            passed += 1;
        }
        seed = Rng::with_seed(seed).u32(..).into();
    }
    verdict(out, passed, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// The first numbers that each round drew, in order.
    static DRAWN: Mutex<Vec<u64>> = Mutex::new(Vec::new());

    fn third_fails(_: &Context<'_>, dice: &mut Rng) -> Verdict {
        let mut drawn = DRAWN.lock().unwrap();
        drawn.push(dice.u64(..));
        anyhow::ensure!(drawn.len() < 3, "broken");
        Ok(())
    }

    #[test]
    fn every_fuzz_target_is_a_soak() {
        let corpus = Workspace::find().unwrap().root.join("tools/fuzz/corpus");
        let targets = std::fs::read_dir(corpus).unwrap();
        let targets = targets.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut targets: Vec<_> = targets.collect();
        targets.sort();
        let soaks = SOAKS
            .iter()
            .filter_map(|soak| soak.name.strip_prefix("fuzz-"));
        assert_eq!(soaks.collect::<Vec<_>>(), targets);
    }

    #[test]
    fn the_first_failure_ends_it_and_says_how_to_repeat_it() {
        let workspace = Workspace::find().unwrap();
        let context = Context {
            workspace: &workspace,
            suite: "soak",
            filter: "",
            images: &Images::default(),
        };
        let soak = Soak {
            name: "sample",
            test: None,
            round: third_fails,
        };
        let go_on = |seed, minutes: u64| {
            let mut out = Vec::new();
            let time = Duration::from_secs(60 * minutes);
            rounds(&mut out, &context, &[soak], seed, time).unwrap();
            String::from_utf8(out).unwrap()
        };
        let text = go_on(7, 1);
        assert!(text.ends_with("broken\n2 passed, 1 failed\n"), "{text}");
        let (_, rest) = text.split_once("SONDE_SEED=").unwrap();
        let (seed, rest) = rest.split_once(' ').unwrap();
        assert!(rest.starts_with("./run.sh soak 1 sample"), "{text}");

        // With the seed told, the round that failed comes first; and no time is still one round.
        let failed = DRAWN.lock().unwrap().split_off(2);
        DRAWN.lock().unwrap().clear();
        assert_eq!(go_on(seed.parse().unwrap(), 0), "1 passed, 0 failed\n");
        assert_eq!(*DRAWN.lock().unwrap(), failed);
    }
}

//! Programs that sleep, and programs that spend their time in the kernel.

use anyhow::{Result, bail};
use truth::WHOLE;

use super::super::super::report::Chain;
use super::super::chain::{is_at, is_in};
use super::{Share, Subject};

/// In step with the tick: at each tick it works for 2 ms.
pub fn in_step(cpus: u32) -> Subject {
    duty("lockstep", cpus, 2000, 10_000)
}

/// In step with nothing: its period is the golden section of the tick's, so ticks come at phases that lie evenly between each other.
pub fn asleep(cpus: u32) -> Subject {
    duty("idle", cpus, 1236, 6180)
}

/// A program that works for so many microseconds of each period.
fn duty(name: &'static str, cpus: u32, work: u32, period: u32) -> Subject {
    let busy = f64::from(work) / f64::from(period) / f64::from(cpus);
    // What else the machine does: the samples themselves, draining them, and ticks.
    const ELSE: f64 = 0.02;
    let shares = vec![
        Share::new("truth-duty`work", busy, |chain| {
            is_in(chain, "truth-duty`work")
        }),
        Share::between("kernel`idle", 1.0 - busy - ELSE..=1.0 - busy, |chain| {
            is_at(chain, "kernel`idle")
        }),
    ];
    Subject::new(name, vec![format!("truth-duty {work} {period}")], shares)
}

/// Kernel against user time of a known mix of system calls. What the program says that it measured is the truth: the time of each
/// part, and how much of it may be in the program itself, around the calls.
///
/// # Errors
/// If it says anything else.
pub fn mix(said: &str) -> Result<Subject> {
    let numbers = said.split(' ').filter_map(|word| word.trim().parse().ok());
    let numbers: Vec<f64> = numbers.map(|number: f64| number / WHOLE as f64).collect();
    let [work, make, null, around_make, around_null] = numbers[..] else {
        bail!("truth-mix said {said:?}");
    };
    let is_call = |chain: &Chain| is_in(chain, "truth-mix`null") || is_in(chain, "truth-mix`make");
    let is_kernel = |chain: &Chain| chain.image == "kernel";
    let calls = make + null;
    let shares = vec![
        Share::new("truth-mix`work", work, |chain| {
            is_in(chain, "truth-mix`work")
        }),
        Share::between(
            "kernel",
            calls - around_make - around_null..=calls,
            move |chain| is_call(chain) && is_kernel(chain),
        ),
        Share::between("interrupts off", make - around_make..=make, move |chain| {
            is_in(chain, "truth-mix`make") && is_kernel(chain)
        }),
    ];
    let subject = Subject {
        cannot_pause: true,
        ..Subject::new("system calls", vec!["truth-mix".into()], shares)
    };
    Ok(subject.among(move |chain| is_call(chain) || is_in(chain, "truth-mix`work")))
}

/// The program of [`mix`], which ends and says what it measured.
pub const MEASURE: &str = "run truth-mix 500";

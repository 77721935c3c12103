//! What `top` says, read back, and whether it adds up.

use anyhow::{Context as _, Result, bail, ensure};

/// What rounding to a tenth takes from a number, or gives to it.
const ROUNDING: f64 = 0.05;

/// A row of a thread.
#[derive(Debug)]
pub struct Thread {
    /// Percent of one CPU.
    pub share: f64,
    /// Process id.
    pub pid: u64,
}

/// A window.
#[derive(Debug, Default)]
pub struct Usage {
    /// Each thread that is listed.
    pub threads: Vec<Thread>,
    /// What those that are not listed had.
    rest: f64,
    ended: f64,
    /// Each CPU: busy, idle.
    cpus: Vec<[f64; 2]>,
    /// Most that the readings can differ by, all CPUs together.
    bound: f64,
}

impl Usage {
    /// Reads it, and checks that it adds up for so many CPUs.
    ///
    /// # Errors
    /// If it does not have the documented form, or does not add up.
    pub fn read(text: &str, cpus: usize) -> Result<Self> {
        let mut usage = Self::default();
        let mut total = None;
        for line in text.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                [window, "ms", "on", ..] => {
                    let reading = words.iter().rev().nth(1).context("no time of reading")?;
                    let (window, reading): (f64, f64) = (window.parse()?, reading.parse()?);
                    usage.bound = 100.0 * 2.0 * cpus as f64 * reading / (1000.0 * window);
                }
                ["CPU%", ..] | ["cpu", "busy/idle"] => {}
                [share, "threads", "that", "have", "ended"] => usage.ended = share.parse()?,
                [share, _, "thread" | "threads", "more"] => usage.rest = share.parse()?,
                ["total", ..] => total = Some(numbers(line)),
                [share, pid, _, _, _, _] if !share.contains('/') && !pid.contains('/') => {
                    let (share, pid) = (share.parse()?, pid.parse()?);
                    usage.threads.push(Thread { share, pid });
                }
                _ => {
                    for cell in words.iter().filter(|word| word.contains('/')) {
                        let cell = numbers(&cell.replace('/', " "));
                        let &[busy, idle] = &cell[..] else {
                            bail!("a CPU that is not busy/idle: {line}");
                        };
                        usage.cpus.push([busy, idle]);
                    }
                }
            }
        }
        let total = total.context("no total")?;
        usage
            .check(cpus, &total)
            .with_context(|| format!("in:\n{text}"))?;
        Ok(usage)
    }

    fn check(&self, cpus: usize, total: &[f64]) -> Result<()> {
        let &[all, threads, ended, idle, off] = total else {
            bail!("a total of other numbers: {total:?}");
        };
        ensure!(self.cpus.len() == cpus, "{} CPUs", self.cpus.len());
        let near = |name: &str, one: f64, other: f64, terms: usize| {
            let slack = ROUNDING * (terms + 1) as f64 + 0.001;
            ensure!((one - other).abs() <= slack, "{name}: {one} is not {other}");
            Ok(())
        };
        for [busy, idle] in &self.cpus {
            near("a CPU", busy + idle, 100.0, 2)?;
        }
        near("all", all, 100.0 * cpus as f64, 1)?;
        let listed: f64 = self.threads.iter().map(|thread| thread.share).sum();
        near(
            "threads",
            listed + self.rest,
            threads,
            self.threads.len() + 2,
        )?;
        near("ended", self.ended, ended, 1)?;
        let idles: f64 = self.cpus.iter().map(|[_, idle]| idle).sum();
        near("idle", idles, idle, cpus + 1)?;
        near("total", threads + ended + idle + off, all, 5)?;
        ensure!(
            off.abs() <= self.bound + ROUNDING,
            "{off} is off, and {} can be",
            self.bound
        );
        Ok(())
    }
}

/// The numbers in a line, whatever stands between them.
fn numbers(line: &str) -> Vec<f64> {
    line.split([' ', ',', ':'])
        .filter_map(|word| word.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(shell: &str, off: &str) -> String {
        format!(
            "\
1000 ms on 2 cpus, read in 5000 us
  CPU%   PID   TID NAME             CPU PRI
 100.0     9    14 spin               1  10
   {shell}     4     6 shell              0  20
   2.0 1 thread more
   3.0 threads that have ended
cpu busy/idle
 0  10.0/90.0   1 100.0/0.0
total 200.0: threads 107.0, ended 3.0, idle 90.0, off {off}
"
        )
    }

    #[test]
    fn a_window_that_adds_up_is_read() {
        let usage = Usage::read(&text("5.0", "0.0"), 2).unwrap();
        let read: Vec<_> = usage
            .threads
            .iter()
            .map(|thread| (thread.pid, thread.share))
            .collect();
        assert_eq!(read, [(9, 100.0), (4, 5.0)]);
        assert!((usage.bound - 2.0).abs() < 1e-9);
    }

    #[test]
    fn one_that_does_not_add_up_is_refused() {
        assert!(Usage::read(&text("5.0", "0.0"), 1).is_err());
        assert!(Usage::read(&text("6.0", "0.0"), 2).is_err());
        assert!(Usage::read(&text("5.0", "1.0"), 2).is_err());
        assert!(Usage::read("", 2).is_err());
        let more = text("5.0", "0.0").replace("idle 90.0", "idle 85.0");
        assert!(Usage::read(&more.replace("90.0 ", "85.0 "), 2).is_err());
    }
}

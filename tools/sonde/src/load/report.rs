//! What is told of a load.

use std::net::SocketAddr;
use std::time::Duration;

use crate::cli::LoadOptions;

use super::rates::Count;

/// What one thread did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// How long it sent.
    pub time: Duration,
    /// Datagrams sent.
    pub sent: u64,
    /// Those that came back, each once.
    pub back: u64,
    /// Those that came back once more.
    pub again: u64,
    /// Datagrams that came and were none of this thread's, or were changed.
    pub foreign: u64,
    /// Times that the peer's system said that nobody listens.
    pub refused: u64,
    /// Time from sending to coming back, of those that came back: the shortest, the longest, and all of them together.
    shortest: Option<Duration>,
    longest: Duration,
    together: Duration,
}

impl Counts {
    /// One came back for the first time, so long after it was sent.
    pub fn came_back(&mut self, time: Duration) {
        self.back += 1;
        self.shortest = Some(self.shortest.map_or(time, |shortest| shortest.min(time)));
        self.longest = self.longest.max(time);
        self.together = self.together.saturating_add(time);
    }
}

/// What all threads did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    counts: Counts,
    bytes: u64,
}

impl Summary {
    /// Of datagrams of so many bytes.
    pub fn of(bytes: usize) -> Self {
        Self {
            counts: Counts::default(),
            bytes: bytes as u64,
        }
    }

    /// Adds what a thread did.
    pub fn add(&mut self, other: &Counts) {
        let counts = &mut self.counts;
        counts.time = counts.time.max(other.time);
        counts.sent += other.sent;
        counts.back += other.back;
        counts.again += other.again;
        counts.foreign += other.foreign;
        counts.refused += other.refused;
        counts.shortest = match (counts.shortest, other.shortest) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        counts.longest = counts.longest.max(other.longest);
        counts.together = counts.together.saturating_add(other.together);
    }

    /// The counts of all threads.
    #[cfg(test)]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Whether nothing came back but that nobody listens.
    pub const fn is_refused(&self) -> bool {
        self.counts.refused > 0 && self.counts.back == 0
    }

    /// All of it, to be printed.
    pub fn lines(&self) -> Vec<String> {
        let counts = &self.counts;
        let seconds = counts.time.as_secs_f64();
        let rate = |count: u64| {
            if seconds > 0.0 {
                count as f64 / seconds
            } else {
                0.0
            }
        };
        let mut lines = vec![format!(
            "sent {} in {seconds:.2} s: {:.0} a second, {:.2} Mbit/s",
            counts.sent,
            rate(counts.sent),
            rate(counts.sent.saturating_mul(8 * self.bytes)) / 1e6
        )];
        let lost = counts.sent.saturating_sub(counts.back);
        lines.push(format!(
            "back {}: {:.0} a second, lost {lost} ({}), again {}, foreign {}, refused {}",
            counts.back,
            rate(counts.back),
            percent(lost, counts.sent),
            counts.again,
            counts.foreign,
            counts.refused
        ));
        match (
            counts.shortest,
            u32::try_from(counts.back.min(u32::MAX.into())),
        ) {
            (Some(shortest), Ok(back)) if back > 0 => lines.push(format!(
                "round trip {} at least, {} on average, {} at most",
                millis(shortest),
                millis(counts.together / back),
                millis(counts.longest)
            )),
            _ if self.is_refused() => {}
            _ => lines.push("nothing came back: the peer only takes, or all was lost".to_owned()),
        }
        lines
    }
}

/// What is about to be sent.
pub fn heading(peer: SocketAddr, options: &LoadOptions) -> String {
    let rate = match options.pps {
        0 => "as many as can be".to_owned(),
        pps => format!("{pps} a second"),
    };
    let time = match options.secs {
        0 => "until Ctrl-C".to_owned(),
        secs => format!("for {secs} s"),
    };
    let threads = match options.threads {
        1 => "1 thread".to_owned(),
        threads => format!("{threads} threads"),
    };
    let size = options.size;
    format!("to {peer}: datagrams of {size} bytes, {rate}, {threads}, {time}")
}

/// What one second was like that ended so long after the start.
pub fn second(end: Duration, count: Count) -> String {
    format!(
        "{:4} s  sent {:8}  back {:8}",
        end.as_secs(),
        count.sent,
        count.back
    )
}

fn percent(part: u64, whole: u64) -> String {
    let percent = if whole > 0 {
        100.0 * part as f64 / whole as f64
    } else {
        0.0
    };
    format!("{percent:.2}%")
}

fn millis(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_threads_are_added_up() {
        let mut one = Counts {
            time: Duration::from_secs(2),
            sent: 1000,
            ..Counts::default()
        };
        let mut other = Counts {
            sent: 600,
            again: 2,
            ..one
        };
        for millis in [1, 3] {
            one.came_back(Duration::from_millis(millis));
        }
        for _ in 0..1398 {
            other.came_back(Duration::from_millis(2));
        }
        let mut summary = Summary::of(125);
        summary.add(&one);
        summary.add(&other);
        assert_eq!(
            summary.lines(),
            [
                "sent 1600 in 2.00 s: 800 a second, 0.80 Mbit/s",
                "back 1400: 700 a second, lost 200 (12.50%), again 2, foreign 0, refused 0",
                "round trip 1.000 ms at least, 2.000 ms on average, 3.000 ms at most",
            ]
        );
    }

    #[test]
    fn nothing_is_divided_by_nothing() {
        let lines = Summary::of(64).lines();
        assert_eq!(lines[0], "sent 0 in 0.00 s: 0 a second, 0.00 Mbit/s");
        assert!(lines[1].contains("lost 0 (0.00%)"), "{lines:?}");
        assert!(lines[2].starts_with("nothing came back"), "{lines:?}");
    }
}

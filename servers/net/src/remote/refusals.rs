//! What the log is told of those who were not let in: by name, and seldom, so that nobody can fill it from afar.

use core::fmt;

use remote_shell::Statistics;

/// The log is told at most so often, in nanoseconds.
const TELL_EVERY: u64 = 60 * 1_000_000_000;

/// Those counts that are of refusals. What a bad link does by itself, doubling and delaying, is not told, nor is what went well.
const fn refusals(of: &Statistics) -> Statistics {
    Statistics {
        opened: 0,
        lost: 0,
        pings: 0,
        questions: 0,
        challenges: 0,
        no_session: 0,
        replayed: 0,
        ..*of
    }
}

/// What the log was told.
#[derive(Debug, Default)]
pub struct Refusals {
    told: u64,
    next: u64,
}

impl Refusals {
    /// What to tell the log at this time, if anything; it counts as told.
    pub fn tell(&mut self, statistics: &Statistics, now: u64) -> Option<Refused> {
        let all = sum(statistics);
        if all == self.told || now < self.next {
            return None;
        }
        self.told = all;
        self.next = now.saturating_add(TELL_EVERY);
        Some(Refused(refusals(statistics)))
    }

    /// When there will be something to tell, if nothing else happens.
    #[must_use]
    pub fn deadline(&self, statistics: &Statistics) -> Option<u64> {
        (sum(statistics) != self.told).then_some(self.next)
    }
}

fn sum(statistics: &Statistics) -> u64 {
    refusals(statistics).each().map(|(_, count)| count).sum()
}

/// What was refused, as a line of the log.
#[derive(Debug)]
pub struct Refused(Statistics);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("remote shell refused since it started: ")?;
        let mut between = "";
        for (reason, count) in self.0.each().filter(|(_, count)| *count > 0) {
            write!(f, "{between}{count} {reason}")?;
            between = ", ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_told_at_once_and_then_once_a_minute() {
        let mut refusals = Refusals::default();
        let mut statistics = Statistics {
            opened: 3,
            replayed: 2,
            ..Statistics::default()
        };
        assert!(refusals.tell(&statistics, 5).is_none());
        assert_eq!(refusals.deadline(&statistics), None);
        statistics.unauthenticated = 1;
        let line = refusals.tell(&statistics, 5).unwrap().to_string();
        let said = "remote shell refused since it started: 1 by no key of this machine";
        assert_eq!(line, said);
        assert_eq!(refusals.deadline(&statistics), None);
        statistics.unauthenticated = 1000;
        statistics.other_version = 2;
        assert!(refusals.tell(&statistics, TELL_EVERY + 4).is_none());
        assert_eq!(refusals.deadline(&statistics), Some(TELL_EVERY + 5));
        let line = refusals.tell(&statistics, TELL_EVERY + 5).unwrap();
        let said = "remote shell refused since it started: 1000 by no key of this machine, 2 of another version";
        assert_eq!(line.to_string(), said);
    }
}

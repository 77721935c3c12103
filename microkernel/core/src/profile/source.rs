//! Where samples come from: what the driver asks of a source, and which one a request gets.
//!
//! The kernel gives the driver its sources, best first. The tick is the only one there is; a performance counter or a
//! timer's NMI stands beside it by implementing [`SampleSource`].

use crate::base::cpu::CpuId;
use ipc::abi::Error;
use ipc::abi::profile::{DOMAINS_ALL, EVENT_CYCLES, EventSpec, Source, SourceRequest};

/// A source of samples. Each CPU arms and disarms its own, in its tick, with interrupts off.
pub trait SampleSource: Sync {
    /// Which it is.
    fn id(&self) -> Source;
    /// Nominal samples per second on each CPU.
    fn frequency(&self) -> u64;
    /// Whether the driver's tick takes the samples; else the source's own interrupt does.
    fn in_tick(&self) -> bool;
    /// Starts it on this CPU.
    fn arm(&self, cpu: CpuId);
    /// Stops it on this CPU: it takes no sample after this returns.
    fn disarm(&self, cpu: CpuId);
}

/// The per-CPU timer tick, which runs anyway. It cannot see inside the kernel, whose code runs with interrupts off.
#[derive(Debug)]
pub struct Tick {
    /// Ticks per second on each CPU.
    pub frequency: u64,
}

impl SampleSource for Tick {
    fn id(&self) -> Source {
        Source::Tick
    }
    fn frequency(&self) -> u64 {
        self.frequency
    }
    fn in_tick(&self) -> bool {
        true
    }
    fn arm(&self, _: CpuId) {}
    fn disarm(&self, _: CpuId) {}
}

/// The first of the sources that fits the request, by index.
///
/// # Errors
/// `Unsupported` if there is none.
pub(super) fn select(
    sources: &[&dyn SampleSource],
    request: SourceRequest,
) -> Result<usize, Error> {
    let fits = |source: &&dyn SampleSource| match request {
        SourceRequest::Best => true,
        SourceRequest::Pmu => matches!(
            source.id(),
            Source::PmuIntel | Source::PmuAmd | Source::PmuAmdV2
        ),
        SourceRequest::Timer => source.id() == Source::TimerNmi,
        SourceRequest::Tick => source.id() == Source::Tick,
    };
    sources.iter().position(fits).ok_or(Error::Unsupported)
}

/// Checks the events to sample against what a source with this frequency can do.
///
/// # Errors
/// `BadArgument` if there is no specification or it has no meaning; `Unsupported` if there is more than one, or one that
/// asks for anything but cycles, in both domains, at the source's own rate.
pub(super) fn check(specs: &[EventSpec], frequency: u64) -> Result<(), Error> {
    let [spec] = specs else {
        return Err(if specs.is_empty() {
            Error::BadArgument
        } else {
            Error::Unsupported
        });
    };
    if spec.domains == 0 || spec.domains & !DOMAINS_ALL != 0 {
        return Err(Error::BadArgument);
    }
    let own_rate = spec.frequency == 0 || spec.frequency == frequency;
    if spec.event != EVENT_CYCLES || spec.raw != 0 || spec.domains != DOMAINS_ALL || !own_rate {
        return Err(Error::Unsupported);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CYCLES: EventSpec = EventSpec {
        event: EVENT_CYCLES,
        raw: 0,
        frequency: 0,
        domains: DOMAINS_ALL,
    };

    #[test]
    fn the_tick_is_the_best_there_is_and_no_other_request_gets_it() {
        let tick = Tick { frequency: 100 };
        let sources: [&dyn SampleSource; 1] = [&tick];
        assert_eq!(select(&sources, SourceRequest::Best), Ok(0));
        assert_eq!(select(&sources, SourceRequest::Tick), Ok(0));
        for other in [SourceRequest::Pmu, SourceRequest::Timer] {
            assert_eq!(select(&sources, other), Err(Error::Unsupported));
        }
        assert_eq!(select(&[], SourceRequest::Best), Err(Error::Unsupported));
    }

    #[test]
    fn exactly_one_event_is_accepted_and_it_is_cycles() {
        let verdict = |change: fn(&mut EventSpec)| {
            let mut spec = CYCLES;
            change(&mut spec);
            check(&[spec], 100)
        };
        assert_eq!(verdict(|_| ()), Ok(()));
        assert_eq!(verdict(|s| s.frequency = 100), Ok(()));
        assert_eq!(verdict(|s| s.frequency = 101), Err(Error::Unsupported));
        assert_eq!(verdict(|s| s.event = 1), Err(Error::Unsupported));
        assert_eq!(verdict(|s| s.raw = 1), Err(Error::Unsupported));
        assert_eq!(verdict(|s| s.domains = 1), Err(Error::Unsupported));
        assert_eq!(verdict(|s| s.domains = 0), Err(Error::BadArgument));
        assert_eq!(verdict(|s| s.domains = 4), Err(Error::BadArgument));
        assert_eq!(check(&[], 100), Err(Error::BadArgument));
        assert_eq!(check(&[CYCLES; 2], 100), Err(Error::Unsupported));
    }
}

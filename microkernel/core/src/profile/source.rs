//! Where samples come from: what the driver asks of a source, and which one a request gets.
//!
//! The kernel gives the driver its sources, best first, and offers those that have shown that they work on every CPU.

use crate::apic::pace::PERIOD;
use crate::base::cpu::CpuId;
use core::ops::RangeInclusive;
use ipc::abi::Error;
use ipc::abi::profile::{DOMAINS_ALL, EVENT_CYCLES, EventSpec, Source, SourceRequest};

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// What takes the samples of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Trigger {
    /// The driver's tick.
    Tick = 1,
    /// An NMI that another CPU sends, when its timer says so.
    Neighbour = 2,
    /// An NMI that the source itself causes on its CPU, after [`SampleSource::arm`] and each `Machine::next_sample`.
    Own = 3,
    /// An overflow of the CPU's own performance counter, which the driver has. A CPU whose counter does not work is sampled by
    /// [`Trigger::Neighbour`].
    Counter = 4,
}

/// A source of samples. Each CPU arms and disarms its own, in its tick, with interrupts off.
pub trait SampleSource: Sync {
    /// Which it is.
    fn id(&self) -> Source;
    /// Nominal samples per second on each CPU, unless others are asked for.
    fn frequency(&self) -> u64;
    /// Those that can be asked for.
    fn frequencies(&self) -> RangeInclusive<u64> {
        self.frequency()..=self.frequency()
    }
    /// What takes its samples.
    fn trigger(&self) -> Trigger;
    /// Starts it on this CPU, at one of its frequencies.
    fn arm(&self, cpu: CpuId, frequency: u64);
    /// Stops it on this CPU. An NMI that is on its way still comes.
    fn disarm(&self, cpu: CpuId);
    /// Whether the NMI that it asked for is so late that it will not come; only of a source that is its own [`Trigger`].
    fn is_lost(&self, _: CpuId) -> bool {
        false
    }
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
    fn trigger(&self) -> Trigger {
        Trigger::Tick
    }
    fn arm(&self, _: CpuId, _: u64) {}
    fn disarm(&self, _: CpuId) {}
}

/// The performance counters of one interface.
#[derive(Debug)]
pub struct CounterSource {
    /// The interface, as a source.
    pub id: Source,
}

impl SampleSource for CounterSource {
    fn id(&self) -> Source {
        self.id
    }
    fn frequency(&self) -> u64 {
        SECOND / PERIOD
    }
    // A period begins at the end of a sample, so even the shortest leaves the CPU time; this is where most of it is left.
    fn frequencies(&self) -> RangeInclusive<u64> {
        10..=10_000
    }
    fn trigger(&self) -> Trigger {
        Trigger::Counter
    }
    fn arm(&self, _: CpuId, _: u64) {}
    fn disarm(&self, _: CpuId) {}
}

/// The first of the sources that is offered, a bit each, and that fits the request; by index.
///
/// # Errors
/// `Unsupported` if there is none.
pub(super) fn select(
    sources: &[&dyn SampleSource],
    offered: u64,
    request: SourceRequest,
) -> Result<usize, Error> {
    let fits = |source: &dyn SampleSource| match request {
        SourceRequest::Best => true,
        SourceRequest::Pmu => matches!(
            source.id(),
            Source::PmuIntel | Source::PmuAmd | Source::PmuAmdV2
        ),
        SourceRequest::Timer => source.id() == Source::TimerNmi,
        SourceRequest::Tick => source.id() == Source::Tick,
    };
    let mut sources = sources.iter().enumerate();
    sources
        .find_map(|(index, source)| (offered >> index & 1 == 1 && fits(*source)).then_some(index))
        .ok_or(Error::Unsupported)
}

/// Checks the events to sample against what a source can do, and says at which frequency.
///
/// # Errors
/// `BadArgument` if there is no specification or it has no meaning; `Unsupported` if there is more than one, or one that
/// asks for anything but cycles, in both domains, at a frequency of the source.
pub(super) fn check(specs: &[EventSpec], source: &dyn SampleSource) -> Result<u64, Error> {
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
    let frequency = match spec.frequency {
        0 => source.frequency(),
        asked => asked,
    };
    let is_cycles = spec.event == EVENT_CYCLES && spec.raw == 0 && spec.domains == DOMAINS_ALL;
    if !is_cycles || !source.frequencies().contains(&frequency) {
        return Err(Error::Unsupported);
    }
    Ok(frequency)
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

    struct Nmi;

    impl SampleSource for Nmi {
        fn id(&self) -> Source {
            Source::TimerNmi
        }
        fn frequency(&self) -> u64 {
            1000
        }
        fn frequencies(&self) -> RangeInclusive<u64> {
            10..=2000
        }
        fn trigger(&self) -> Trigger {
            Trigger::Neighbour
        }
        fn arm(&self, _: CpuId, _: u64) {}
        fn disarm(&self, _: CpuId) {}
    }

    #[test]
    fn the_first_that_is_offered_and_fits_is_taken() {
        let tick = Tick { frequency: 100 };
        let sources: [&dyn SampleSource; 2] = [&Nmi, &tick];
        let none = Err(Error::Unsupported);
        for (offered, request, expected) in [
            (0b11, SourceRequest::Best, Ok(0)),
            (0b11, SourceRequest::Timer, Ok(0)),
            (0b11, SourceRequest::Tick, Ok(1)),
            (0b11, SourceRequest::Pmu, none),
            (0b10, SourceRequest::Best, Ok(1)),
            (0b10, SourceRequest::Timer, none),
            (0b00, SourceRequest::Best, none),
        ] {
            assert_eq!(
                select(&sources, offered, request),
                expected,
                "{offered:b} {request:?}"
            );
        }
        assert_eq!(select(&[], u64::MAX, SourceRequest::Best), none);
    }

    #[test]
    fn exactly_one_event_is_accepted_and_it_is_cycles() {
        let verdict = |change: fn(&mut EventSpec)| {
            let mut spec = CYCLES;
            change(&mut spec);
            check(&[spec], &Nmi)
        };
        assert_eq!(verdict(|_| ()), Ok(1000));
        assert_eq!(verdict(|s| s.event = 1), Err(Error::Unsupported));
        assert_eq!(verdict(|s| s.raw = 1), Err(Error::Unsupported));
        assert_eq!(verdict(|s| s.domains = 1), Err(Error::Unsupported));
        assert_eq!(verdict(|s| s.domains = 0), Err(Error::BadArgument));
        assert_eq!(verdict(|s| s.domains = 4), Err(Error::BadArgument));
        assert_eq!(check(&[], &Nmi), Err(Error::BadArgument));
        assert_eq!(check(&[CYCLES; 2], &Nmi), Err(Error::Unsupported));
    }

    #[test]
    fn a_frequency_is_accepted_if_the_source_has_it() {
        let verdict = |source: &dyn SampleSource, frequency| {
            check(
                &[EventSpec {
                    frequency,
                    ..CYCLES
                }],
                source,
            )
        };
        for frequency in [10, 999, 2000] {
            assert_eq!(verdict(&Nmi, frequency), Ok(frequency));
        }
        for frequency in [9, 2001, u64::MAX] {
            assert_eq!(verdict(&Nmi, frequency), Err(Error::Unsupported));
        }
        let tick = Tick { frequency: 100 };
        assert_eq!(verdict(&tick, 100), Ok(100));
        assert_eq!(verdict(&tick, 99), Err(Error::Unsupported));
    }
}

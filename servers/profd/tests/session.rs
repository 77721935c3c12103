//! The course of a profile, with a driver that behaves and with one that does not.

mod support;

use ipc::abi::Error;
use ipc::abi::monitor::{Interface, MonitorInfo, Verdict};
use ipc::abi::profile::ProfilerStatus;
use ipc::proto::profd::{Refusal, Request, Source};
use profd::atlas::Atlas;
use profd::catalog::Catalog;
use profd::profile::Profile;
use profd::session::{ARM_MS, Progress, Session};
use proptest::prelude::*;
use support::driver::{Fake, memory};
use support::record::Record;
use support::{KERNEL, MS, World, clock};

struct Bench<'w> {
    atlas: Atlas<'w, 'w>,
    fake: Fake<'w>,
}

/// Runs `body` with a driver of `cpus` CPUs.
fn bench(cpus: usize, body: impl FnOnce(&mut Bench<'_>)) {
    let world = World::new();
    let catalog: Catalog<'_> = world.catalog();
    let memory = memory(cpus);
    let atlas = Atlas {
        catalog: &catalog,
        processes: &world.processes,
    };
    body(&mut Bench {
        atlas,
        fake: Fake::new(&memory),
    });
}

impl Bench<'_> {
    fn start(&mut self, request: Request) -> Result<Session, Refusal> {
        Session::start(request, clock(), self.atlas, &mut self.fake)
    }
    fn poll(&mut self, session: &mut Session, ms: u64) -> Result<Option<Profile>, Refusal> {
        Ok(match session.poll(self.atlas, &mut self.fake, ms * MS)? {
            Progress::Wait(until) => {
                assert!(until >= ms * MS, "a wait ends in the past");
                None
            }
            Progress::Done(profile) => Some(*profile),
        })
    }
    fn sample(&mut self, cpu: u8, ms: u64) {
        self.fake.take(&Record {
            cpu,
            tsc: ms * MS,
            ..Record::new(0, &[KERNEL + 3])
        });
    }
}

fn request(window_ms: u16) -> Request {
    Request {
        window_ms,
        ..Request::default()
    }
}

#[test]
fn every_sample_is_accounted_for() {
    bench(2, |bench| {
        // From an earlier profile, and not of this one.
        bench.sample(0, 1);
        let mut session = bench.start(request(100)).unwrap();
        bench.sample(0, 4);
        assert_eq!(bench.poll(&mut session, 5), Ok(None));
        bench.fake.open(10 * MS);
        assert_eq!(bench.poll(&mut session, 10), Ok(None));
        for ms in [9, 10, 60, 110, 111] {
            bench.sample(1, ms);
        }
        assert_eq!(bench.poll(&mut session, 60), Ok(None));
        assert_eq!(bench.poll(&mut session, 110), Ok(None));
        assert_eq!(bench.fake.stops, 1);
        // One CPU samples until its next tick.
        bench.sample(0, 115);
        assert_eq!(bench.poll(&mut session, 115), Ok(None));
        bench.fake.idle();
        let profile = bench.poll(&mut session, 120).unwrap().unwrap();
        let counts = profile.counts;
        assert_eq!(
            (
                counts.taken,
                counts.reported,
                counts.outside,
                counts.unaccounted()
            ),
            (7, 3, 4, 0)
        );
        assert_eq!(
            (profile.profiled_ms, profile.cpus, profile.unconfirmed),
            (100, 1, 0)
        );
    });
}

#[test]
fn a_ring_that_overflows_is_counted_exactly() {
    bench(1, |bench| {
        let mut session = bench.start(request(100)).unwrap();
        bench.fake.open(0);
        bench.poll(&mut session, 0).unwrap();
        (0..1500).for_each(|_| bench.sample(0, 50));
        bench.poll(&mut session, 100).unwrap();
        bench.fake.idle();
        let counts = bench.poll(&mut session, 101).unwrap().unwrap().counts;
        assert_eq!(
            (
                counts.taken,
                counts.reported,
                counts.overwritten,
                counts.unaccounted()
            ),
            (1500, 1024, 476, 0)
        );
    });
}

#[test]
fn a_stop_says_how_far_it_got() {
    bench(1, |bench| {
        let mut session = bench.start(request(1000)).unwrap();
        bench.fake.open(10 * MS);
        bench.poll(&mut session, 10).unwrap();
        bench.poll(&mut session, 10).unwrap();
        bench.sample(0, 100);
        session.stop();
        bench.poll(&mut session, 322).unwrap();
        bench.fake.status.closed = 322 * MS;
        bench.sample(0, 323);
        bench.fake.idle();
        let profile = bench.poll(&mut session, 330).unwrap().unwrap();
        assert_eq!((profile.profiled_ms, profile.asked_ms), (312, 1000));
        assert_eq!((profile.counts.reported, profile.counts.outside), (1, 1));
    });
}

#[test]
fn stragglers_are_named_and_nothing_stays_armed() {
    bench(1, |bench| {
        let mut session = bench.start(request(100)).unwrap();
        bench.fake.status.stragglers = 0b1010;
        // What was to be done before took its time, and CPUs are not to blame for it.
        let first = 2 * u64::from(ARM_MS);
        let late = first + u64::from(ARM_MS);
        assert_eq!(bench.poll(&mut session, first), Ok(None));
        assert_eq!(bench.poll(&mut session, late - 1), Ok(None));
        assert_eq!(bench.fake.stops, 0);
        assert_eq!(bench.poll(&mut session, late), Ok(None));
        assert_eq!(bench.fake.stops, 1);
        bench.fake.idle();
        let refusal = Refusal::NotArmed {
            cpus: 0b1010,
            waited_ms: ARM_MS,
        };
        assert_eq!(bench.poll(&mut session, late + 20), Err(refusal));
    });
}

#[test]
fn a_stop_before_the_window_opens_ends_it() {
    bench(1, |bench| {
        let mut session = bench.start(request(100)).unwrap();
        session.stop();
        assert_eq!(bench.poll(&mut session, 1), Ok(None));
        bench.fake.idle();
        assert_eq!(bench.poll(&mut session, 2), Err(Refusal::Stopped));
    });
}

#[test]
fn a_cpu_that_does_not_confirm_its_end_is_named() {
    bench(1, |bench| {
        let mut session = bench.start(request(10)).unwrap();
        bench.fake.open(0);
        bench.poll(&mut session, 0).unwrap();
        bench.poll(&mut session, 10).unwrap();
        bench.fake.status.stragglers = 1;
        // To read the rings took its time, and no CPU is to blame for it.
        assert_eq!(bench.poll(&mut session, 900), Ok(None));
        assert_eq!(bench.poll(&mut session, 1399), Ok(None));
        let profile = bench.poll(&mut session, 1400).unwrap().unwrap();
        assert_eq!(profile.unconfirmed, 1);
    });
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_is_armed() {
    bench(1, |bench| {
        let refusals = [
            (
                Request {
                    window_ms: 0,
                    ..request(1)
                },
                Refusal::BadRequest,
            ),
            (
                Request {
                    depth: 0,
                    ..request(1)
                },
                Refusal::BadRequest,
            ),
            (
                Request {
                    pid: Some(999_999),
                    ..request(1)
                },
                Refusal::NoProcess { pid: 999_999 },
            ),
            (
                Request {
                    source: Source::Pmu,
                    ..request(1)
                },
                Refusal::NoSource { asked: Source::Pmu },
            ),
        ];
        for (request, refusal) in refusals {
            assert_eq!(bench.start(request).unwrap_err(), refusal);
        }
        let says = |verdict: Verdict| MonitorInfo {
            interface: Interface::AmdCore as u64,
            verdict: verdict as u64,
            ..MonitorInfo::default()
        };
        bench.fake.status.cpus = 2;
        bench.fake.monitors = vec![says(Verdict::Works), says(Verdict::StandsStill)];
        let liar = Refusal::NoCounter {
            cpu: 1,
            interface: 2,
            verdict: 3,
        };
        let pmu = Request {
            source: Source::Pmu,
            ..request(1)
        };
        assert_eq!(bench.start(pmu).unwrap_err(), liar);
        bench.fake.start_fails = Some(Error::Busy);
        let busy = Refusal::Driver {
            error: Error::Busy as u64,
        };
        assert_eq!(bench.start(request(1)).unwrap_err(), busy);
        assert_eq!(bench.fake.starts, 0);
    });
}

#[test]
fn a_driver_that_has_stopped_by_itself_ends_the_window() {
    bench(1, |bench| {
        let mut session = bench.start(request(100)).unwrap();
        bench.fake.open(0);
        bench.poll(&mut session, 0).unwrap();
        bench.fake.idle();
        bench.fake.stop_fails = Some(Error::WrongState);
        assert_eq!(bench.poll(&mut session, 50), Ok(None));
        bench.fake.idle();
        bench.fake.status.closed = 40 * MS;
        let profile = bench.poll(&mut session, 51).unwrap().unwrap();
        assert_eq!(profile.profiled_ms, 40);
    });
}

#[test]
fn a_driver_that_fails_is_told_to_stop() {
    bench(1, |bench| {
        let mut session = bench.start(request(100)).unwrap();
        bench.fake.status_fails = Some(Error::BadHandle);
        let refusal = Refusal::Driver {
            error: Error::BadHandle as u64,
        };
        assert_eq!(bench.poll(&mut session, 1), Err(refusal));
        assert_eq!(bench.fake.stops, 1);
    });
}

fn wild() -> impl Strategy<Value = ProfilerStatus> {
    let number = prop_oneof![0u64..5, any::<u64>(), 0u64..2_000_000_000];
    (0u64..6, prop::collection::vec(number, 5)).prop_map(|(phase, numbers)| ProfilerStatus {
        phase,
        stragglers: numbers[0],
        opened: numbers[1],
        closed: numbers[2],
        frequency: numbers[3],
        counters: ipc::abi::profile::SampleCounters {
            taken: numbers[4],
            cost: numbers[4],
            ..Default::default()
        },
        ..ProfilerStatus::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_the_driver_says_every_wait_ends(statuses in prop::collection::vec(wild(), 1..12), words in prop::collection::vec(any::<u64>(), 63), stop in any::<bool>()) {
        let mut outcome = Ok(());
        bench(2, |bench| {
            let mut session = bench.start(request(300)).unwrap();
            let mut now = 0;
            let mut next = statuses.iter().cycle();
            for step in 0.. {
                bench.fake.status = *next.next().unwrap();
                let mut slot = bench.fake.writers[0].begin();
                words[1..].iter().for_each(|&word| assert!(slot.push(word)));
                slot.publish(words[0]);
                if stop && step == 3 {
                    session.stop();
                }
                match session.poll(bench.atlas, &mut bench.fake, now) {
                    Ok(Progress::Wait(until)) => now = until.max(now + MS),
                    Ok(Progress::Done(_)) | Err(_) => break,
                }
                // Arming, the window and disarming.
                if now > (500 + 300 + 500 + 100) * MS {
                    outcome = Err(TestCaseError::fail("it goes on for too long"));
                    break;
                }
            }
        });
        outcome?;
    }
}

//! Every order of events.

use ipc::proto::stream::CHUNK_MAX;
use proptest::prelude::*;

use super::{Bench, on_the_line};

#[derive(Clone, Debug)]
enum Step {
    Write(Vec<u8>),
    Read(u16),
    Arrive(Vec<u8>),
    Carry,
    Interrupt,
    Watch,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..CHUNK_MAX)
            .prop_map(Step::Write),
        (1..200u16).prop_map(Step::Read),
        prop::collection::vec(any::<u8>(), 1..40).prop_map(Step::Arrive),
        Just(Step::Carry),
        Just(Step::Interrupt),
        Just(Step::Watch),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    /// Whatever the order of events, all that was accepted goes out once and in order, all that the device did not
    /// lose comes in once and in order, every write is answered, and no interrupt is called lost that the device did not lose.
    #[test]
    fn no_byte_is_lost_or_doubled(
        depth in prop_oneof![Just(1usize), Just(16)],
        lose_every in 0u32..4,
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut bench = Bench::new(depth);
        bench.device.0.borrow_mut().lose_every = lose_every;
        let (mut written, mut arrived, mut calls) = (Vec::new(), Vec::new(), Vec::new());
        for (call, step) in steps.into_iter().enumerate() {
            let call = call as u32;
            match step {
                Step::Write(bytes) => if bench.write(call, &bytes) {
                    calls.push(call);
                    written.extend(on_the_line(&bytes));
                },
                Step::Read(max) => { bench.read(call, max); }
                Step::Arrive(bytes) => for byte in bytes {
                    if bench.device.room() > 0 {
                        arrived.push(byte);
                    }
                    bench.device.arrive(byte);
                },
                Step::Carry => bench.device.carry(),
                Step::Interrupt => { bench.serve_interrupt(); }
                // Its time may be over at any moment.
                Step::Watch => if bench.console.watch().is_some() { bench.watchdog(); },
            }
        }
        bench.settle();
        for call in 1000..1100 {
            bench.read(call, 100);
            bench.settle();
        }
        prop_assert_eq!(bench.sent(), written);
        prop_assert_eq!(bench.input(), arrived);
        prop_assert_eq!(bench.writes, calls);
        let overrun = bench.device.0.borrow().overrun > 0;
        let counters = bench.console.counters();
        prop_assert_eq!(counters.overruns > 0, overrun);
        prop_assert!(lose_every > 0 || counters.lost_interrupts == 0, "{}", counters);
    }
}

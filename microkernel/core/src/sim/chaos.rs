//! Random programs under a random schedule: whatever they do, every law holds after every entry, and when all are dead
//! the machine is as it was.

use super::Sim;
use super::random::Step;
use proptest::prelude::*;

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(
        (any::<u8>(), any::<u8>(), any::<u8>(), any::<[u16; 6]>()),
        0..most,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, max_shrink_iters: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn whatever_programs_do_the_laws_hold(cpus in 1..=4usize, steps in steps(900)) {
        let mut sim = Sim::new(cpus);
        sim.crowd(3);
        sim.send_nmis();
        sim.toggle_sampling(sim.cpu(0));
        for step in steps {
            sim.random_step(step);
        }
        sim.check_nmis();
        sim.send_no_nmis();
        sim.tear_down();
    }
}

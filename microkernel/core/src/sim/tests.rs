//! Directed tests.

use super::*;

#[test]
fn it_starts() {
    for cpus in [1, 2, 4] {
        let mut sim = Sim::new(cpus);
        sim.ticks(3);
    }
}

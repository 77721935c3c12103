//! A profile from its start to its end, by a driver that behaves.

use ipc::proto::profd::Request;
use profd::atlas::Atlas;
use profd::profile::Profile;
use profd::session::{Progress, Session};
use sample_ring::AtomicU64;

use super::driver::{Fake, memory};
use super::record::Record;
use super::{MS, World, clock};

/// Takes these samples in a window of 100 ms on so many CPUs, and spoils the rings' memory before it is read.
pub fn course(
    request: Request,
    cpus: usize,
    records: &[Record],
    spoil: impl FnOnce(&[AtomicU64]),
) -> Profile {
    let world = World::new();
    let memory = memory(cpus);
    let mut fake = Fake::new(&memory);
    let catalog = world.catalog();
    let atlas = Atlas {
        catalog: &catalog,
        processes: &world.processes,
    };
    let request = Request {
        window_ms: 100,
        ..request
    };
    let mut session =
        Session::start(request, clock(), atlas, &mut fake).expect("a request that can be run");
    fake.status.cpus = cpus as u64;
    fake.open(10 * MS);
    for record in records {
        fake.take(&Record {
            tsc: 20 * MS,
            ..record.clone()
        });
    }
    spoil(&memory);
    for now in [10, 60, 110] {
        let progress = session.poll(atlas, &mut fake, now * MS);
        assert!(matches!(progress, Ok(Progress::Wait(_))));
    }
    fake.idle();
    match session.poll(atlas, &mut fake, 111 * MS) {
        Ok(Progress::Done(profile)) => *profile,
        other => panic!("not done: {other:?}"),
    }
}

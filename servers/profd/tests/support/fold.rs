//! Profiles of records that were all taken in the window, without a driver.

use ipc::abi::profile::Source;
use profd::atlas::Atlas;
use profd::chain::chain;
use profd::cpus::ByCpu;
use profd::fold::Table;
use profd::profile::{Counts, Profile};
use profd::report::Options;
use profd::resolve::resolve;

use super::World;
use super::record::Record;

/// What the tests print, if nothing else.
pub const SHORT: Options = Options {
    chains: 8,
    verbose: false,
};

/// Folds records that were all taken in the window.
pub fn profile(world: &World, depth: u8, records: &[Record]) -> Profile {
    let catalog = world.catalog();
    let atlas = Atlas {
        catalog: &catalog,
        processes: &world.processes,
    };
    let mut table = Table::new(512);
    for record in records {
        table.add(chain(&record.sample(), depth, atlas));
    }
    let resolved = resolve(&table, None, atlas);
    Profile {
        asked_ms: 1000,
        profiled_ms: 1000,
        source: Source::TimerNmi,
        frequency: 1000,
        depth,
        filter: None,
        cpus: 4,
        asked_cpus: 4,
        counting: 0,
        unconfirmed: 0,
        counts: Counts {
            taken: records.len() as u64,
            reported: records.len() as u64,
            table: 512,
            cost_ns: 800 * records.len() as u64,
            ..Counts::default()
        },
        came: ByCpu(vec![records.len() as u64]),
        strings: resolved.strings,
        accounts: resolved.accounts,
        images: resolved.images,
        chains: resolved.chains,
        addresses: resolved.addresses,
    }
}

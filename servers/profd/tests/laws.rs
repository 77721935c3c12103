//! Laws of folding and printing, over random samples.

mod support;

use std::collections::BTreeSet;

use ipc::abi::profile::{Source, flags};
use profd::account::Ledger;
use profd::atlas::Atlas;
use profd::bytes::DecodeError;
use profd::catalog::{Catalog, Content};
use profd::chain::chain;
use profd::cpus::ByCpu;
use profd::decode::decode;
use profd::encode::encode;
use profd::fold::{CHAINS, Table};
use profd::process::{Fate, Processes};
use profd::profile::{Counts, Filter, Profile};
use profd::report::{Options, report};
use profd::resolve::resolve;
use profd::stacks::stacks;
use proptest::prelude::*;
use support::elf::Elf;
use support::process;
use support::record::Record;

const BASE: u64 = 0x40_1000;

/// An image whose functions have long names, some of which differ in a hash or in the middle alone.
fn image(names: &[String]) -> Vec<u8> {
    let functions = names.iter().zip(0..);
    Elf::new(functions.map(|(name, at)| (name.as_str(), BASE + at * 0x10, 0x10))).build()
}

fn name() -> impl Strategy<Value = String> {
    let hash = prop::sample::select(vec!["0123456789abcdef", "fedcba9876543210"]);
    prop_oneof![
        "[ab]{1,2}",
        "[xy]{30,34}[ab]{40,44}",
        "a{60}[bc]{6}d{60}",
        ("[fg]{1,2}", hash).prop_map(|(name, hash)| format!("_ZN{}{}17h{hash}E", name.len(), name)),
    ]
}

fn record() -> impl Strategy<Value = Record> {
    let frames = prop::collection::vec(BASE - 4..BASE + 0x88, 1..12);
    let client = (1u32..5, prop::collection::vec(BASE - 4..BASE + 0x88, 1..6));
    let marks = prop::sample::select(vec![0, 0, 0, flags::CUT, flags::TRUNCATED, flags::CHANGED]);
    let marks = (marks, 0usize..5).prop_map(|(mark, part)| match mark {
        0 => 0,
        mark => mark | flags::incomplete(part),
    });
    (1u32..5, frames, prop::collection::vec(client, 0..3), marks).prop_map(
        |(pid, frames, clients, flags)| Record {
            clients,
            flags,
            ..Record::new(pid, &frames)
        },
    )
}

#[derive(Debug)]
struct Case {
    names: Vec<String>,
    records: Vec<Record>,
    depth: u8,
    capacity: usize,
    by_client: bool,
}

fn case() -> impl Strategy<Value = Case> {
    let records = prop::collection::vec(record(), 0..60);
    let capacity = prop::sample::select(vec![3, 20, CHAINS]);
    let names = prop::collection::vec(name(), 8);
    (names, records, 1u8..10, capacity, any::<bool>()).prop_map(
        |(names, records, depth, capacity, by_client)| Case {
            names,
            records,
            depth,
            capacity,
            by_client,
        },
    )
}

fn folded(case: &Case) -> Profile {
    let (one, other) = (image(&case.names), image(&case.names));
    let mut catalog = Catalog::new(None);
    catalog.add("bin/one", Content::Bytes(&one));
    catalog.add("bin/other", Content::Bytes(&other));
    let mut processes = Processes::default();
    // Two processes of one image, one of another, and 4 is unknown.
    for (pid, name) in [(1, "one"), (2, "one"), (3, "other")] {
        processes.start(pid, process(name));
    }
    let atlas = Atlas {
        catalog: &catalog,
        processes: &processes,
    };
    let mut table = Table::new(case.capacity);
    let mut ledger = case.by_client.then(Ledger::default);
    for record in &case.records {
        let sample = record.sample();
        let mut chain = chain(&sample, case.depth, atlas);
        chain.key.payer = ledger.as_mut().and_then(|ledger| ledger.enter(&sample));
        table.add(chain);
    }
    let resolved = resolve(&table, ledger.as_ref(), atlas);
    let reported = case.records.len() as u64;
    Profile {
        asked_ms: 100,
        profiled_ms: 50,
        source: Source::Tick,
        frequency: 100,
        depth: case.depth,
        filter: Some(Filter {
            pid: 1,
            name: "one".into(),
            fate: Fate::Live,
        }),
        cpus: 1,
        asked_cpus: 4,
        counting: 0,
        unconfirmed: 5,
        counts: Counts {
            taken: reported + 3,
            reported,
            overwritten: 3,
            beyond_table: table.beyond,
            table: case.capacity as u64,
            ..Counts::default()
        },
        came: ByCpu(vec![reported]),
        strings: resolved.strings,
        accounts: resolved.accounts,
        images: resolved.images,
        chains: resolved.chains,
        addresses: resolved.addresses,
    }
}

/// The printed chains, each behind its account, and without its percent, count and span of offsets.
fn printed_chains(text: &str) -> Vec<String> {
    let mut chains: Vec<String> = Vec::new();
    let mut account = "";
    for line in text.lines().skip(2) {
        if line
            .trim_start()
            .split_once('%')
            .is_some_and(|(share, _)| share.parse::<f32>().is_ok())
        {
            let leaf = line.trim_start().splitn(3, ' ').nth(2).unwrap_or_default();
            if leaf.starts_with("for ") {
                account = leaf;
                continue;
            }
            let name = leaf.split_once('+').map_or(leaf, |(name, _)| name);
            chains.push(format!("{account} {name}"));
        } else if line.starts_with("        <") {
            let chain = chains.last_mut().expect("a chain begins with its leaf");
            // How many frames were cut off is of the samples, not of the chain.
            chain.push_str(if line.contains("...") { "..." } else { line });
        }
    }
    chains
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn folding_keeps_every_sample(case in case()) {
        let profile = folded(&case);
        let chains: u64 = profile.chains.iter().map(|chain| chain.count).sum();
        prop_assert_eq!(chains + profile.counts.beyond_table, profile.counts.reported);
        let addresses: u64 = profile.addresses.iter().map(|leaf| leaf.count).sum();
        prop_assert_eq!(addresses, profile.counts.reported);
        let text = stacks(&profile, 4);
        let folded: u64 = text.lines().filter(|line| !line.starts_with('#')).map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum();
        prop_assert_eq!(folded, profile.counts.reported);
        prop_assert!(profile.chains.is_sorted_by(|a, b| a.count >= b.count));
        let charged: u64 = profile.accounts.iter().map(|account| account.balance.charged()).sum();
        prop_assert_eq!(charged, if case.by_client { profile.counts.reported } else { 0 });
        for (account, index) in profile.accounts.iter().zip(0..) {
            let chains: u64 = profile.chains_of(Some(index)).map(|chain| chain.count).sum();
            prop_assert!(chains <= account.balance.charged());
        }
        prop_assert!(profile.chains.iter().all(|chain| chain.steps.len() <= usize::from(case.depth) + 6));
    }

    #[test]
    fn no_two_printed_chains_look_alike_and_every_line_fits(case in case()) {
        let profile = folded(&case);
        for verbose in [false, true] {
            let text = report(&profile, Options { chains: 512, verbose });
            let chains = printed_chains(&text);
            prop_assert_eq!(chains.len(), profile.chains.len());
            let distinct: BTreeSet<_> = chains.iter().collect();
            prop_assert_eq!(distinct.len(), chains.len(), "{}", text);
            if !verbose {
                prop_assert!(text.lines().all(|line| line.chars().count() <= 80), "{}", text);
            }
        }
    }

    #[test]
    fn a_profile_survives_its_bytes(case in case()) {
        let profile = folded(&case);
        prop_assert_eq!(decode(&encode(&profile)), Ok(profile));
    }

    #[test]
    fn what_is_no_profile_is_refused_and_what_is_accepted_prints(case in case(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4), cut in any::<prop::sample::Index>()) {
        let whole = encode(&folded(&case));
        prop_assert!(decode(&whole[..cut.index(whole.len())]).is_err());
        let mut bytes = whole;
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(profile) = decode(&bytes) {
            let _ = stacks(&profile, 512);
            let text = report(&profile, Options { chains: 512, verbose: false });
            prop_assert!(text.lines().all(|line| line.chars().count() <= 80), "{}", text);
        }
    }

    #[test]
    fn random_bytes_are_no_profile(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(decode(&bytes).is_err());
    }
}

/// The bytes of a profile of one sample.
fn one_sample() -> Vec<u8> {
    let case = Case {
        names: vec!["a".into(); 8],
        records: vec![Record::new(1, &[BASE])],
        depth: 8,
        capacity: 3,
        by_client: false,
    };
    encode(&folded(&case))
}

#[test]
fn each_way_to_be_no_profile_is_told_apart() {
    let bytes = one_sample();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut changed = bytes.clone();
        change(&mut changed);
        decode(&changed).unwrap_err()
    };
    assert_eq!(with(&|bytes| bytes[0] = 0), DecodeError::NotAProfile);
    assert_eq!(with(&|bytes| bytes[8] = 1), DecodeError::Version(1));
    assert_eq!(with(&|bytes| bytes.truncate(40)), DecodeError::Truncated);
    assert_eq!(with(&|bytes| bytes.push(0)), DecodeError::Trailing);
    // The source, behind magic, version and two times.
    assert_eq!(with(&|bytes| bytes[20] = 9), DecodeError::BadNumber);
    // The samples reported, behind the filter and the samples taken.
    assert_eq!(with(&|bytes| bytes[50 + 13 + 8] = 2), DecodeError::BadSum);
    // Those of the CPU, behind the counts and how many CPUs there are.
    let came = 50 + 13 + 19 * 8 + 4;
    assert_eq!(with(&|bytes| bytes[came] = 2), DecodeError::BadSum);
}

#[test]
fn the_first_bytes_of_the_layout_are_pinned() {
    let bytes = one_sample();
    assert_eq!(
        bytes[..26],
        *b"SondePrf\x05\0\0\0\x64\0\0\0\x32\0\0\0\x01\x08\x01\0\0\0"
    );
    // Numbers, filter, counts, samples of one CPU, strings, no accounts, images, one chain, one address.
    assert_eq!(bytes.len(), 50 + 13 + 19 * 8 + 12 + 16 + 4 + 16 + 45 + 24);
}

//! Each target over its corpus, and over variations of it that are the same each time.

use std::fs;
use std::io;
use std::path::Path;

use fastrand::Rng;
use fuzz::{TARGETS, Target};

/// Variations of each target, where `PROPTEST_CASES` does not say how many.
const CASES: u32 = 400;
/// Longest input that is made up.
const BYTES_MAX: usize = 2000;

/// The inputs in the corpus of a target, in the order of their names.
fn corpus(target: Target) -> io::Result<Vec<Vec<u8>>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target.name);
    let entries = fs::read_dir(&directory)?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    paths.iter().map(fs::read).collect()
}

/// A number that the environment says.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// An input made of two of the corpus, or of nothing.
fn variation(corpus: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut some = || {
        let index = rng.usize(..=corpus.len());
        corpus.get(index).cloned().unwrap_or_default()
    };
    let (mut bytes, other) = (some(), some());
    bytes.truncate(rng.usize(..=bytes.len()));
    bytes.extend_from_slice(&other[rng.usize(..=other.len())..]);
    for _ in 0..rng.usize(..8) {
        if let Some(byte) = rng.choice(bytes.iter_mut()) {
            *byte = rng.u8(..);
        }
    }
    if rng.u8(..4) == 0 {
        let from = bytes.len();
        bytes.resize(from + rng.usize(..400), 0);
        rng.fill(&mut bytes[from..]);
    }
    bytes.truncate(BYTES_MAX);
    bytes
}

fn check(name: &str) {
    let target = fuzz::find(name).unwrap_or_else(|| panic!("there is no target {name}"));
    let corpus = corpus(target).unwrap_or_else(|error| panic!("the corpus of {name}: {error}"));
    assert!(!corpus.is_empty(), "{name} has no corpus");
    for bytes in &corpus {
        (target.run)(bytes);
    }
    let cases = number("PROPTEST_CASES").unwrap_or(CASES.into());
    let mut rng = Rng::with_seed(number("PROPTEST_RNG_SEED").unwrap_or(1));
    for _ in 0..cases {
        let bytes = variation(&corpus, &mut rng);
        let outcome = std::panic::catch_unwind(|| (target.run)(&bytes));
        assert!(outcome.is_ok(), "{name} fails on {bytes:?}");
    }
}

#[test]
fn every_target_has_its_test() {
    let tests = include_str!("corpus.rs");
    for target in TARGETS {
        assert!(
            tests.contains(&format!("check({:?})", target.name)),
            "{}",
            target.name
        );
    }
}

#[test]
fn archive() {
    check("archive");
}
#[test]
fn boot() {
    check("boot");
}
#[test]
fn image() {
    check("image");
}
#[test]
fn network() {
    check("network");
}
#[test]
fn pci() {
    check("pci");
}
#[test]
fn remote_client() {
    check("remote-client");
}
#[test]
fn remote_server() {
    check("remote-server");
}
#[test]
fn samples() {
    check("samples");
}
#[test]
fn settings() {
    check("settings");
}
#[test]
fn virtio() {
    check("virtio");
}

//! libFuzzer over one target, which the environment variable `SONDE_FUZZ_TARGET` names.
#![no_main]

use std::sync::LazyLock;

use fuzz::{TARGETS, Target, find};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("SONDE_FUZZ_TARGET").unwrap_or_default();
    find(&name).unwrap_or_else(|| {
        let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!(
            "there is no target {name:?}; there are {}",
            names.join(", ")
        );
        std::process::exit(2)
    })
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (TARGET.run)(bytes));

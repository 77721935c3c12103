//! The tests inside the crates, with the property tests on a new seed and, where they do not say themselves how many cases
//! they try, on more cases.

use fastrand::Rng;

use crate::test::{Context, Verdict, succeed};

/// Cases; proptest's own default is 256.
const CASES: u32 = 512;

pub(super) fn round(context: &Context<'_>, dice: &mut Rng) -> Verdict {
    let mut cargo = context.workspace.cargo("test");
    cargo.args(["--quiet", "--workspace", "--lib", "--bins", "--tests"]);
    cargo.env("PROPTEST_CASES", CASES.to_string());
    cargo.env("PROPTEST_RNG_SEED", dice.u64(..).to_string());
    // The seed repeats a failure; no file in the sources needs to.
    cargo.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "true");
    succeed(&mut cargo)
}

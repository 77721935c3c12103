//! The targets.

pub mod archive;
pub mod boot;
pub mod image;
pub mod network;
pub mod pci;
pub mod remote_client;
pub mod remote_server;
pub mod samples;
pub mod settings;
pub mod virtio;

use arbitrary::{Arbitrary, Unstructured};

/// Most acts of one input: more take longer and reach no further.
const ACTS_MAX: usize = 200;

/// The acts that the rest of an input says, until it ends.
fn acts<'a, A: Arbitrary<'a>>(input: &mut Unstructured<'a>) -> impl Iterator<Item = A> {
    std::iter::from_fn(|| {
        let act = (!input.is_empty()).then(|| A::arbitrary(input));
        act.and_then(Result::ok)
    })
    .take(ACTS_MAX)
}

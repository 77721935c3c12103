//! What the system keeps apart, attacked: by programs of the test archive, from outside where the kernel's own memory is concerned, and
//! through sessions where it is about who may see what.

mod attacks;

use crate::test::{Case, Context};

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("isolation_on_1_cpu", || attacks::held(context, "max", 1)),
        Case::new("isolation_on_4_cpus", || attacks::held(context, "max", 4)),
        Case::new("isolation_without_smep_smap_and_umip", || {
            attacks::held(context, "max,smep=off,smap=off,umip=off", 2)
        }),
    ]
}

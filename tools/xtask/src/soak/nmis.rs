//! Storms of NMIs, which are counted and judged: `crate::system::storm` has a short form of each.

use fastrand::Rng;

use crate::system::storm::{COUNTED, COUNTERS, PARALLEL, SMP, rage};
use crate::test::{Context, Verdict};

use super::dice::one;

pub(super) fn round(context: &Context<'_>, dice: &mut Rng) -> Verdict {
    let kind = one(dice, &[PARALLEL, COUNTED, COUNTERS]);
    let smp = *one(dice, &SMP);
    let said = rage(context, kind, smp, kind.long, dice.u32(..).into())?;
    println!("{}, {said}", kind.name);
    Ok(())
}

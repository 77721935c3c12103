//! Boots on four CPUs. One counts when a profile has been taken and the machine has powered itself off.

use fastrand::Rng;

use crate::system::session::Session;
use crate::test::{Context, Verdict};

pub(super) fn round(context: &Context<'_>, _: &mut Rng) -> Verdict {
    let mut session = Session::on(context, 4)?;
    session.profile("100")?;
    session.power_off()
}

//! Waiting for a time, which Ctrl-C ends.

use crate::protocol::Stop;
use crate::session::Session;
use crate::system::System;

/// Waits until a time, in nanoseconds since boot, or until Ctrl-C.
///
/// The notification that ends the wait may be late: that of a Ctrl-C which came as an earlier wait was over ends this one. So it only
/// says that the terminal is to be asked.
pub fn pause(session: &mut dyn Session, system: &mut dyn System, until: u64) {
    while !session.guard(Stop::Wait) && system.now() < until {
        system.rest(until);
    }
    session.guard(Stop::Nothing);
}

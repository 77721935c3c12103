//! `profile`: asks profd, and shows its report.

use core::fmt;

use super::{Argument, Command, Context, Group, Role};
use crate::protocol::Stop;

pub(super) const PROFILE: Command = Command {
    name: "profile",
    group: Group::Measure,
    role: Role::Observe,
    usage: profd::request::USAGE,
    summary: "where time is spent",
    arguments: &[Argument::Other, Argument::Pid],
    details: "\
ms        how long, 1 to 2000; 1000 if not said
pid|all   one process, or every one; `all` is how chains are said without a pid
chains    how many to print, 1 to 512, the hottest first; 8 if not said
depth N   frames of a chain, 1 to 48; 8 if not said. A sample holds 16 of the
          program that ran, and more only with those of its clients
source S  pmu, timer or tick, or pmu/nmi or timer/nmi as the report prints;
          the best that works if not said
by-client each process with what servers did for it, and 3 chains of each
folded    one chain a line, for flame graphs
-v        nothing shortened, and every counter

A sample belongs to the process that was executing; by client, to the one on
whose behalf. `<-` is a caller, `<=` begins the frames of the client that was
served, and `?` behind either is one that is known to be missing. A counter
(pmu) sees no halted CPU, and the tick no kernel. Ctrl-C ends the window.
",
    facts: None,
    examples: &[
        ("profile", "1000 ms, every process, the 8 hottest chains"),
        (
            "profile 2000 all 3 depth 4",
            "2 s, 3 chains of 4 frames: fits one screen",
        ),
        ("profile 500 12", "500 ms, only pid 12"),
        (
            "profile 1000 all by-client",
            "each process, with what servers did for it",
        ),
    ],
    run,
};

fn run(context: Context<'_>) -> fmt::Result {
    let request = match profd::request::parse(context.args) {
        Ok(request) => request,
        Err(error) => return context.fail(error),
    };
    let number = context.system.profile_number();
    if context.session.guard(Stop::Profile(number)) {
        return Ok(());
    }
    let (mut closed, mut written) = (false, Ok(()));
    let session = &mut *context.session;
    let result = context.system.profile(number, request, &mut |text| {
        if !closed {
            // The window is. From here on Ctrl-C ends the report.
            session.guard(Stop::Nothing);
            closed = true;
        }
        if written.is_ok() {
            written = session.write_str(text);
        }
    });
    if !closed {
        context.session.guard(Stop::Nothing);
    }
    written?;
    match result {
        Ok(()) => Ok(()),
        Err(error) => context.fail(error),
    }
}

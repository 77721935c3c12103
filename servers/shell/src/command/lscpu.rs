//! `lscpu`: what the processors are, and which source of samples they give. profd knows both.

use core::fmt;

use super::{Argument, Command, Context, Group, Quoted, Role};

pub(super) const LSCPU: Command = Command {
    name: "lscpu",
    group: Group::Machine,
    role: Role::Observe,
    usage: "lscpu [-v]",
    summary: "processors; their counters",
    arguments: &[Argument::OneOf(&["-v"])],
    details: "\
-v        also the registers of the counters, as they were in the proof at boot,
          and every answer of CPUID: leaf, part, EAX, EBX, ECX, EDX

monitor   performance counters as CPUID claims them
counters  what the proof found out about them
source    what `profile` uses if no other is asked for
A row begins with the CPUs that it holds for, if it does not for all. What a CPU
does not have, or does not say, has no row.
",
    facts: None,
    examples: &[
        ("lscpu", "what a report of this machine can be"),
        ("lscpu -v", "all that there is to know of a counter"),
    ],
    run,
};

fn run(context: Context<'_>) -> fmt::Result {
    let verbose = match *context.args {
        [] => false,
        ["-v"] => true,
        ["-v", more, ..] => return context.too_many(more),
        [first, ..] => return context.fail(format_args!("{}: there is only -v", Quoted(first))),
    };
    let mut written = Ok(());
    let session = &mut *context.session;
    let result = context.system.processors(verbose, &mut |text| {
        if written.is_ok() {
            written = session.write_str(text);
        }
    });
    written?;
    match result {
        Ok(()) => Ok(()),
        Err(error) => context.fail(error),
    }
}

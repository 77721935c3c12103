//! `mem`, `uptime`, `version` and `poweroff`.

use alloc::format;
use core::fmt;

use ipc::abi::info::Pool;
use profd::text::counted;

use super::{Command, Context, Group, Role};
use crate::format::{Microseconds, PAGE_KIB, Percent, Span};
use crate::text;

pub(super) const MEM: Command = Command {
    name: "mem",
    group: Group::Machine,
    role: Role::Observe,
    usage: "mem",
    summary: "where the memory is",
    arguments: &[],
    details: "\
free, waiting, kernel, bootfs and processes add up to the total. `waiting` is
freed, but some CPU may still reach it. Below them are the kernel's pools: slots
in use, of how many.
",
    facts: None,
    examples: &[("mem", "all of it, in KiB")],
    run: mem,
};

pub(super) const UPTIME: Command = Command {
    name: "uptime",
    group: Group::Machine,
    role: Role::Observe,
    usage: "uptime",
    summary: "time since boot; CPU loads",
    arguments: &[],
    details: "\
longest: the longest time that the CPU had interrupts off in one kernel entry.
On an emulator a CPU may stand still meanwhile, and that time is in it.
",
    facts: None,
    examples: &[("uptime", "one line, and one for each CPU")],
    run: uptime,
};

pub(super) const VERSION: Command = Command {
    name: "version",
    group: Group::Machine,
    role: Role::Observe,
    usage: "version",
    summary: "what this is",
    arguments: &[],
    details: "",
    facts: None,
    examples: &[("version", "one line")],
    run: version,
};

pub(super) const POWEROFF: Command = Command {
    name: "poweroff",
    group: Group::Machine,
    role: Role::Control,
    usage: "poweroff",
    summary: "power the machine off",
    arguments: &[],
    details: "",
    facts: None,
    examples: &[("poweroff", "at once, without a question")],
    run: poweroff,
};

fn mem(context: Context<'_>) -> fmt::Result {
    if let [first, ..] = *context.args {
        return context.too_many(first);
    }
    let memory = match context.system.memory() {
        Ok(memory) => memory,
        Err(error) => return context.fail(error),
    };
    let session = context.session;
    for (name, pages) in [
        ("total", memory.total),
        ("free", memory.free),
        ("waiting", memory.waiting),
        ("kernel", memory.kernel),
        ("bootfs", memory.bootfs),
        ("processes", memory.processes),
    ] {
        let kib = pages.saturating_mul(PAGE_KIB);
        writeln!(session, "{name:<14} {kib:>10} KiB")?;
    }
    for (pool, [used, all]) in Pool::ALL.into_iter().zip(memory.pools) {
        let name = pool.name();
        writeln!(session, "{name:<14} {used:>10} of {all}")?;
    }
    Ok(())
}

fn uptime(context: Context<'_>) -> fmt::Result {
    if let [first, ..] = *context.args {
        return context.too_many(first);
    }
    let cpus = context.system.cpus();
    let now = Span(context.system.now());
    writeln!(context.session, "up {now}, {}", counted(cpus, "cpu"))?;
    let hz = context.system.tsc_hz();
    for number in 0..cpus {
        let cpu = match context.system.cpu(number) {
            Ok(cpu) => cpu,
            Err(error) => return context.fail(error),
        };
        let busy = Percent(cpu.busy_ns, cpu.busy_ns.saturating_add(cpu.idle_ns));
        let longest = Microseconds {
            ticks: cpu.longest_entry,
            hz,
        };
        let line = format!(
            "cpu {number}: {busy} busy, {} ticks, {} calls, {} switches, longest {longest}",
            cpu.ticks, cpu.syscalls, cpu.switches
        );
        context.session.write_str(&text::wrapped(&line))?;
    }
    Ok(())
}

fn version(context: Context<'_>) -> fmt::Result {
    if let [first, ..] = *context.args {
        return context.too_many(first);
    }
    match context.system.version() {
        Ok(version) => writeln!(context.session, "{}", version.trim_end()),
        Err(error) => context.fail(error),
    }
}

fn poweroff(context: Context<'_>) -> fmt::Result {
    if let [first, ..] = *context.args {
        return context.too_many(first);
    }
    let error = context.system.power_off();
    context.fail(error)
}

//! The commands that look into the system: whether what they say adds up, and agrees with what else is known.

mod columns;
mod usage;

use anyhow::{Context as _, Result, ensure};

use crate::test::{Case, Context, Verdict};

use super::calm::until;
use super::session::Session;
use columns::Columns;
use usage::Usage;

/// Headings of `threads`.
const THREADS: &str = "TID STATE CPU PIN PRI BASE TIME IT";
/// Headings of `map`.
const MAP: &str = "START END KIB RIGHTS WHAT";
/// Headings of `stacks`.
const STACKS: &str = "USED SIZE PART STACK";
/// Kinds of objects: the heading in `objects`, and the pool in `mem`.
const KINDS: [(&str, &str); 7] = [
    ("PROC", "processes"),
    ("THREAD", "threads"),
    ("ENDPT", "endpoints"),
    ("NOTIF", "notifications"),
    ("MEMORY", "memory objects"),
    ("CHUNK", "handle chunks"),
    ("BADGE", "badges"),
];

/// The tests.
pub fn cases<'a>(context: &'a Context<'_>) -> Vec<Case<'a>> {
    vec![
        Case::new("top_adds_up_on_1_cpu", || top(context, 1)),
        Case::new("top_adds_up_on_2_cpus", || top(context, 2)),
        Case::new("top_adds_up_on_4_cpus", || top(context, 4)),
        Case::new("a_process_is_shown_from_inside", || process(context)),
        Case::new("objects_are_what_the_pools_have", || objects(context)),
        Case::new("interrupts_are_counted", || irq(context)),
        Case::new("a_trace_shows_a_programs_life", || trace(context)),
    ]
}

fn top(context: &Context<'_>, cpus: u32) -> Verdict {
    let mut session = Session::on(context, cpus)?;
    let shares = session.start("shares 60 30 10")?;
    let spin = session.start("spin")?;
    for arguments in ["1000 all", "50", "1"] {
        let text = session.run(&format!("top {arguments}"))?;
        Usage::read(&text, cpus as usize)?;
        ensure!(
            text.lines().count() < 24,
            "it does not fit a screen:\n{text}"
        );
    }
    let text = session.run("top 1000 all")?;
    let usage = Usage::read(&text, cpus as usize)?;
    // Whoever else runs, it is not for long; what is busy all the time is busiest.
    let mut first: Vec<u64> = (usage.threads.iter().take(2))
        .map(|thread| thread.pid)
        .collect();
    first.sort_unstable();
    ensure!(
        first == [shares, spin],
        "pids {first:?} were busiest:\n{text}"
    );
    // One that has ended is accounted for, and Ctrl-C ends the window.
    session.guest.send(b"top 60000\n")?;
    session.guest.wait_for("\n")?;
    session.guest.send(b"\x03")?;
    let text = session.guest.prompt()?;
    let text = text.trim_start_matches("^C\n");
    let window = text.split(' ').next().and_then(|ms| ms.parse::<u64>().ok());
    ensure!(window.is_some_and(|ms| ms < 60_000), "{text}");
    session.power_off()
}

fn process(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    let shares = session.start("shares 60 30 10")?;
    let map = session.run(&format!("map {shares}"))?;
    let map = Columns::read(&map, MAP)?;
    for (start, rights, what) in [
        ("0x200000", "r--", "startup page"),
        ("0x400000", "r-x", "bin/shares from 0x1000"),
        ("0x7fffffffd000", "r--", "information page"),
    ] {
        ensure!(
            map.find::<String>("START", start, "RIGHTS")? == rights,
            "{map:#?}"
        );
        ensure!(
            map.find::<String>("START", start, "WHAT")? == what,
            "{map:#?}"
        );
    }
    ensure!(map.find::<String>("WHAT", "data of bin/shares", "RIGHTS")? == "rw-");
    let writes_code = |rights: &&str| rights.contains('w') && rights.contains('x');
    ensure!(!map.column("RIGHTS")?.iter().any(writes_code), "{map:#?}");

    let threads = session.run(&format!("threads {shares}"))?;
    let threads = Columns::read(&threads, THREADS)?;
    let tid: u64 = match threads.column("TID")?[..] {
        [tid] => tid.parse()?,
        _ => anyhow::bail!("one thread is not what it has: {threads:#?}"),
    };
    let stack = format!("stack of tid {tid}");
    let size: u64 = map.find("WHAT", &stack, "KIB")?;

    // A chain of 400 calls has a deeper stack than one of 1, once both are at their bottom.
    let (deep, flat) = (session.start("chain 400")?, session.start("chain 1")?);
    until(&mut session, |session| {
        let text = session.run("stacks")?;
        let stacks = Columns::read(&text, STACKS)?;
        let used = |pid: u64| -> Result<u64> {
            let names = stacks.column("STACK")?;
            let begin = format!("pid {pid} ");
            let name = names.into_iter().find(|name| name.starts_with(&begin));
            stacks.find("STACK", name.context("no such stack")?, "USED")
        };
        // Each call has a frame of a return address and a frame pointer at the least.
        ensure!(used(deep)? >= used(flat)? + 399 * 16, "{text}");
        let name = format!("pid {shares} shares tid {tid}");
        ensure!(
            stacks.find::<u64>("STACK", &name, "SIZE")? == size * 1024,
            "{text}"
        );
        for stack in ["cpu 0 kernel", "cpu 1 kernel"] {
            let used: u64 = stacks.find("STACK", stack, "USED")?;
            let size: u64 = stacks.find("STACK", stack, "SIZE")?;
            // The boot went deepest, and with other code, or another compiler, may go deeper.
            ensure!(0 < used && used <= size / 8 * 7, "{text}");
        }
        Ok(())
    })?;

    session.run(&format!("kill {deep}"))?;
    let ended = format!("pid {deep} (chain) has ended\n");
    for command in ["map", "threads"] {
        let text = session.run(&format!("{command} {deep}"))?;
        ensure!(text == format!("{command}: {ended}"), "{text}");
    }
    session.power_off()
}

fn objects(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    session.start("sleep 100000")?;
    until(&mut session, |session| {
        let text = session.run("objects")?;
        let headings = KINDS.map(|(heading, _)| heading).join(" ");
        let table = Columns::read(&text, &format!("PID NAME {headings} HANDLES"))?;
        let memory = session.memory()?;
        for (heading, pool) in KINDS {
            let rows = table.column(heading)?;
            let numbers = rows.iter().map(|number| Ok(number.parse::<i64>()?));
            let numbers = numbers.collect::<Result<Vec<i64>>>()?;
            let (total, parts) = numbers.split_last().context("no rows")?;
            ensure!(
                parts.iter().sum::<i64>() == *total,
                "{heading} adds up to another number:\n{text}"
            );
            ensure!(
                memory.pool(pool)? as i64 == *total,
                "`mem` has other {pool}:\n{text}"
            );
        }
        Ok(())
    })?;
    session.power_off()
}

fn irq(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 4)?;
    let before = interrupts(&session.run("irq")?)?;
    until(&mut session, |session| {
        let text = session.run("irq")?;
        let now = interrupts(&text)?;
        let grew = now.iter().zip(&before).all(|(now, before)| now > before);
        ensure!(grew && now.len() == 4, "a timer stands still:\n{text}");
        // The console's.
        let line = text.lines().find(|line| line.starts_with("4 "));
        let words: Vec<&str> = line.context("no line 4")?.split_whitespace().collect();
        let [_, count, "pin", _, "init", _, "console"] = words[..] else {
            anyhow::bail!("another line 4:\n{text}");
        };
        ensure!(count.parse::<u64>()? > 0, "{text}");
        Ok(())
    })?;
    session.power_off()
}

/// Each CPU's timer interrupts.
fn interrupts(text: &str) -> Result<Vec<u64>> {
    let row = |name: &str| -> Result<Vec<u64>> {
        let line = text
            .lines()
            .find(|line| line.split(' ').next() == Some(name));
        let words = line.with_context(|| format!("no {name}:\n{text}"))?;
        let numbers = words
            .split_whitespace()
            .skip(1)
            .map(|word| Ok(word.parse()?));
        numbers.collect()
    };
    let total = row("total")?;
    let mut sums = vec![0; total.len()];
    for kind in ["timer", "kick", "line", "error", "spurious", "nmi"] {
        for (sum, count) in sums.iter_mut().zip(row(kind)?) {
            *sum += count;
        }
    }
    ensure!(sums == total, "the total is another sum:\n{text}");
    row("timer")
}

fn trace(context: &Context<'_>) -> Verdict {
    let mut session = Session::on(context, 2)?;
    let off = session.run("trace")?;
    ensure!(off.starts_with("tracing is off"), "{off}");
    // On a slow machine the ticks of the meantime may be all that a CPU still has.
    until(&mut session, |session| {
        session.run("trace on")?;
        // It has no room for an argument: it says so by a call, and ends with 2.
        session.expect("run spin 1", &["spin: "])?;
        session.run("trace off")?;
        let text = session.run("trace 1024")?;
        ensure!(text.starts_with("tracing is off"), "{text}");
        let events = Columns::read(&text, "TIME CPU EVENT WHO WHAT")?;
        let times = events.column("TIME")?;
        let times: Result<Vec<f64>> = times.iter().map(|time| Ok(time.parse()?)).collect();
        ensure!(times?.is_sorted(), "out of order:\n{text}");
        // What follows WHO's first word is its name, then the event's own.
        let kinds = events.column("EVENT")?;
        let whats = events.column("WHAT")?;
        let mut life = (kinds.iter().zip(&whats)).filter(|(_, what)| what.starts_with("spin "));
        for (kind, what) in [
            ("process", "made by pid 1"),
            ("thread", "rip 0x400"),
            ("switch", "priority "),
            ("call", "on 0x"),
            ("exit", "exited with 2"),
        ] {
            let follows = life.any(|(is, says)| *is == kind && says.contains(what));
            ensure!(follows, "no {kind} {what} of spin, or too early:\n{text}");
        }
        Ok(())
    })?;
    session.power_off()
}

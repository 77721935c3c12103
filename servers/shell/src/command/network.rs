//! `net` and `ping`: what the network is, and who answers on it. The net server knows both.

use core::fmt;
use core::net::Ipv4Addr;

use alloc::format;
use alloc::vec::Vec;

use ipc::proto::CallError;
use ipc::proto::net::{NetError, Ping};
use profd::request::number;

use super::{Argument, Command, Context, Group, Quoted, Role};
use crate::format::{MILLISECOND, SECOND, pad};
use crate::pause::pause;
use crate::session::Session;
use crate::system::Network;

/// Echoes that are asked for if it is not said.
pub(super) const ECHOES: u32 = 4;
/// Most echoes.
const ECHOES_MAX: u32 = 1_000_000;
/// What an answer may take, in milliseconds, and from one request to the next.
const TIMEOUT_MS: u32 = 1000;
/// Bytes of a request, as other systems send them.
const BYTES: u16 = 56;

pub(super) const NET: Command = Command {
    name: "net",
    group: Group::Machine,
    role: Role::Observe,
    usage: "net",
    summary: "address and packets",
    arguments: &[],
    details: "\
link      up, down or failed: `dmesg net` says why, and `kill` of the program
          net has the next one try again
received  packets that the device delivered, without their check sequences
sent      packets that it was given
errors    mistakes of the device
dropped   what was received and not passed on, or could not be sent, by reason;
          a reason without any has no row
remote    the remote shell, if it is on, and what came of the datagrams to it
",
    facts: None,
    examples: &[("net", "the address, and whether packets are lost here")],
    run: net,
};

pub(super) const PING: Command = Command {
    name: "ping",
    group: Group::Machine,
    role: Role::Observe,
    usage: "ping HOST [COUNT]",
    summary: "whether a host answers",
    arguments: &[Argument::Other, Argument::Other],
    details: "\
HOST      an IPv4 address
COUNT     1 to 1000000; 4 if not said

A request of 56 bytes each second, and what each answer took. Ctrl-C ends it.
",
    facts: None,
    examples: &[
        ("ping 10.0.2.2", "the gateway of QEMU's own network"),
        ("ping 10.0.2.2 100", "how many of a hundred are lost"),
    ],
    run: ping,
};

fn net(context: Context<'_>) -> fmt::Result {
    if let [first, ..] = *context.args {
        return context.too_many(first);
    }
    match context.system.network() {
        Ok(network) => show(context.session, &network),
        Err(error) => context.fail(error),
    }
}

fn show(session: &mut dyn Session, network: &Network) -> fmt::Result {
    let Network {
        interface,
        counters,
        remote,
    } = network;
    let configured = interface.configured;
    match interface.address {
        Some((address, prefix)) => {
            writeln!(session, "address     {address}/{prefix} {configured}")?;
        }
        None => writeln!(session, "address     none: {configured}")?,
    }
    match interface.gateway {
        Some(gateway) => writeln!(session, "gateway     {gateway}")?,
        None => writeln!(session, "gateway     none")?,
    }
    let mac = interface.mac.map(|byte| format!("{byte:02x}")).join(":");
    writeln!(session, "mac         {mac}")?;
    writeln!(session, "link        {}", interface.link)?;
    writeln!(session, "sockets     {}", interface.sockets)?;
    for (name, packets, bytes) in [
        ("received", counters.received, counters.received_bytes),
        ("sent", counters.sent, counters.sent_bytes),
    ] {
        writeln!(session, "{name:<11} {packets} packets, {bytes} bytes")?;
    }
    writeln!(session, "interrupts  {}", counters.interrupts)?;
    writeln!(session, "errors      {}", counters.device_errors)?;
    let drops: Vec<_> = counters.drops.each().collect();
    let all = drops
        .iter()
        .fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
    writeln!(session, "dropped     {all}")?;
    each(session, drops.into_iter())?;
    match remote {
        None => writeln!(session, "remote      off"),
        Some(statistics) => {
            writeln!(session, "remote      on")?;
            each(session, statistics.each())
        }
    }
}

/// A row for each count that is not 0.
fn each(
    session: &mut dyn Session,
    counts: impl Iterator<Item = (&'static str, u64)>,
) -> fmt::Result {
    for (name, count) in counts.filter(|(_, count)| *count > 0) {
        writeln!(session, "  {count:>10} {name}")?;
    }
    Ok(())
}

/// A time in nanoseconds as milliseconds with three decimals, cut.
struct Milliseconds(u64);

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let microseconds = self.0 / 1000;
        let (whole, part) = (microseconds / 1000, microseconds % 1000);
        pad(f, format_args!("{whole}.{part:03}"))
    }
}

/// What came of the requests.
#[derive(Default)]
struct Answers {
    asked: u64,
    answered: u64,
    least: Option<u64>,
    most: u64,
    sum: u64,
}

impl Answers {
    const fn add(&mut self, ns: u64) {
        self.answered += 1;
        self.sum = self.sum.saturating_add(ns);
        if ns > self.most {
            self.most = ns;
        }
        match self.least {
            Some(least) if least <= ns => {}
            _ => self.least = Some(ns),
        }
    }

    fn show(&self, session: &mut dyn Session) -> fmt::Result {
        let Self {
            asked, answered, ..
        } = *self;
        write!(session, "{answered} of {asked} answered")?;
        let mean = self.sum.checked_div(answered);
        if let (Some(least), Some(mean)) = (self.least, mean) {
            let [least, mean, most] = [least, mean, self.most].map(Milliseconds);
            write!(session, "; least {least}, mean {mean}, most {most} ms")?;
        }
        writeln!(session)
    }
}

fn ping(context: Context<'_>) -> fmt::Result {
    let (host, count) = match *context.args {
        [] => return context.missing("HOST"),
        [host] => (host, None),
        [host, count] => (host, Some(count)),
        [_, _, more, ..] => return context.too_many(more),
    };
    let Ok(address) = host.parse::<Ipv4Addr>() else {
        return context.fail(format_args!(
            "HOST {}: an IPv4 address, such as 10.0.2.2",
            Quoted(host)
        ));
    };
    let count = match count.map(|count| number(count, 1..=ECHOES_MAX).ok_or(count)) {
        None => ECHOES,
        Some(Ok(count)) => count,
        Some(Err(word)) => {
            return context.fail(format_args!("COUNT {}: 1 to {ECHOES_MAX}", Quoted(word)));
        }
    };
    let request = Ping {
        host: address.into(),
        timeout_ms: TIMEOUT_MS,
        bytes: BYTES,
    };
    let mut answers = Answers::default();
    for number in 1..=count {
        let next = context.system.now().saturating_add(SECOND);
        answers.asked += 1;
        match context.system.ping(request) {
            Ok(pong) => {
                answers.add(pong.ns);
                let time = Milliseconds(pong.ns);
                writeln!(context.session, "{address}: {number}: {time} ms")?;
            }
            Err(CallError::Service(error @ (NetError::Timeout | NetError::Unreachable))) => {
                writeln!(context.session, "{address}: {number}: {error}")?;
            }
            // All else that is asked for is allowed.
            Err(CallError::Service(NetError::BadArgument)) => {
                return context.fail(format_args!(
                    "HOST {}: 1.0.0.0 to 223.255.255.255, but for 127.0.0.0/8",
                    Quoted(host)
                ));
            }
            Err(error) => return context.fail(error),
        }
        if number < count {
            pause(context.session, context.system, next);
            if context.session.interrupted() {
                break;
            }
        }
    }
    answers.show(context.session)?;
    context.outcome.failed |= answers.answered == 0;
    Ok(())
}

const _: () = assert!(TIMEOUT_MS as u64 * MILLISECOND == SECOND);

#[cfg(test)]
mod tests;

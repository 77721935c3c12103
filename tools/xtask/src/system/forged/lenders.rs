//! DHCP servers that lend what no host can have, take back what they lent, or speak in broken messages; and an honest one after them, whose
//! address the machine then has.

use std::net::Ipv4Addr;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use remote_shell::Mode;
use smoltcp::wire::DhcpMessageType;

use super::caller::Caller;
use super::dhcp::{HONEST, Lease, MASK, Server};
use super::end::End;
use super::{GATEWAY, MACHINE, PRIVATE, SILENCE, boot};
use crate::system::guest::PATIENCE;
use crate::system::remote::key;
use crate::test::{Context, Verdict};

const FOR_EVER: u32 = u32::MAX;
/// What `net` says of a machine without an address.
const NONE: [&str; 2] = [
    "address     none: no DHCP server has lent one",
    "gateway     none",
];

const fn of(address: [u8; 4], mask: [u8; 4]) -> Lease {
    let [a, b, c, d] = address;
    let [m, n, o, p] = mask;
    Lease {
        address: Ipv4Addr::new(a, b, c, d),
        mask: Ipv4Addr::new(m, n, o, p),
        seconds: FOR_EVER,
        ..HONEST
    }
}

const fn by(router: Ipv4Addr) -> Lease {
    Lease {
        router,
        seconds: FOR_EVER,
        ..HONEST
    }
}

/// Offers that are none: whoever takes one asks for it.
const NO_OFFERS: [Lease; 7] = [
    Lease {
        from: Ipv4Addr::UNSPECIFIED,
        ..HONEST
    },
    Lease {
        from: Ipv4Addr::LOCALHOST,
        ..HONEST
    },
    Lease {
        from: Ipv4Addr::BROADCAST,
        ..HONEST
    },
    Lease {
        from: Ipv4Addr::new(224, 0, 0, 1),
        ..HONEST
    },
    of([0, 0, 0, 0], [255, 255, 255, 0]),
    of([224, 0, 0, 9], [255, 255, 255, 0]),
    of([255, 255, 255, 255], [255, 255, 255, 0]),
];

/// Leases that no host can have.
const UNUSABLE: [Lease; 7] = [
    of([10, 0, 2, 255], [255, 255, 255, 0]),
    of([10, 0, 2, 0], [255, 255, 255, 0]),
    of([127, 0, 0, 1], [255, 0, 0, 0]),
    of([240, 0, 0, 1], [255, 255, 255, 0]),
    of([10, 0, 2, 15], [0, 0, 0, 0]),
    of([10, 0, 2, 15], [255, 255, 255, 255]),
    of([10, 0, 2, 15], [255, 0, 255, 0]),
];

/// Leases with a gateway that none of its hosts can reach.
const WITHOUT_GATEWAY: [Lease; 4] = [
    by(PRIVATE),
    by(Ipv4Addr::UNSPECIFIED),
    by(Ipv4Addr::new(10, 0, 2, 255)),
    by(MACHINE),
];

/// Lets all of them lend to a machine, one after another.
pub fn hostile(context: &Context<'_>) -> Verdict {
    let (mut session, cable) = boot(context, 2, "")?;
    let before = session.processes()?;
    let mut server = Server::new(cable);

    let mut discover = server.next(|_| true)?;
    while let Some(newer) = server.within(SILENCE)? {
        discover = newer;
    }
    for lease in &NO_OFFERS {
        server.answer(&discover, DhcpMessageType::Offer, lease)?;
    }
    while let Some(asked) = server.within(SILENCE)? {
        let again = asked.kind == DhcpMessageType::Discover;
        ensure!(again, "an offer that is none was taken: {asked:?}");
        discover = asked;
    }
    server.broken(&discover, DhcpMessageType::Offer)?;
    server.answer(&discover, DhcpMessageType::Offer, &HONEST)?;
    let request = server.next(|asked| asked.kind == DhcpMessageType::Request)?;
    server.broken(&request, DhcpMessageType::Ack)?;
    // The last word counts. It is for ever, but the machine looks for another server by itself.
    server.answer(&request, DhcpMessageType::Ack, &UNUSABLE[0])?;
    for lease in &UNUSABLE {
        let asked = server.lend(lease)?;
        server
            .shows(&mut session, &NONE)
            .with_context(|| format!("{lease:?}"))?;
        server.answer(&asked, DhcpMessageType::Nak, lease)?;
    }
    for lease in &WITHOUT_GATEWAY {
        let asked = server.lend(lease)?;
        let parts = ["address     10.0.2.15/24 by DHCP", "gateway     none"];
        server
            .shows(&mut session, &parts)
            .with_context(|| format!("{lease:?}"))?;
        server.answer(&asked, DhcpMessageType::Nak, lease)?;
    }
    // The server's own address: no host can tell by the message alone.
    let lease = of(GATEWAY.ip.octets(), MASK.octets());
    let asked = server.lend(&lease)?;
    let parts = ["address     10.0.2.2/24 by DHCP", "gateway     none"];
    server.shows(&mut session, &parts)?;
    server.answer(&asked, DhcpMessageType::Nak, &lease)?;
    // Leases that end at once: the next message is one that looks for servers.
    for seconds in [0, 1] {
        server.lend(&Lease { seconds, ..HONEST })?;
    }
    // A renewal that is refused.
    let renewed = Lease {
        renewal: Some([0, 0, 0, 1]),
        ..by(GATEWAY.ip)
    };
    server.lend(&renewed)?;
    let asked = server.next(|asked| asked.address == MACHINE)?;
    server.answer(&asked, DhcpMessageType::Nak, &renewed)?;

    server.lend(&HONEST)?;
    let parts = ["address     10.0.2.15/24 by DHCP", "gateway     10.0.2.2"];
    server.shows(&mut session, &parts)?;
    session.expect_alive(&before)?;
    let mut end = End::new(server.into_cable())?;
    let mode = Mode::Keyed(key(context, "control")?);
    let mut caller = Caller::new(&mut end, &mode, "echo on", 20_000)?;
    let deadline = Instant::now() + PATIENCE;
    let output = loop {
        if let Some(output) = caller.turn(&mut end)? {
            break output;
        }
        ensure!(Instant::now() < deadline, "the remote shell is silent");
        end.turn(SILENCE)?;
    };
    ensure!(output == "on\n", "{output}");
    session.power_off()
}

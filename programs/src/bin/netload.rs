//! `netload`: UDP datagrams to look at: answers them, takes them, or sends them.
#![no_std]
#![no_main]

use ipc::abi::Error as KernelError;
use ipc::proto::CallError;
use ipc::proto::net::{Exchanged, Header, NetError, Slots};
use programs::netload::{self, Load, Stream};
use sysroot::net::{Error, UdpSocket};
use sysroot::{ExitCode, println, startup, time};

sysroot::entry!(main);

fn main() -> Result<(), ExitCode> {
    let load = netload::parse(startup::args()).map_err(|error| {
        println!("netload: {error}");
        ExitCode::USAGE
    })?;
    let ended = match load {
        Load::Echo { port } => UdpSocket::bind(port).and_then(echo),
        Load::Sink { port } => UdpSocket::bind(port).and_then(sink),
        Load::Send(stream) => UdpSocket::bind(0).and_then(|socket| send(socket, stream)),
    };
    ended.map_err(|error| {
        println!("netload: {error}");
        ExitCode::FAILURE
    })
}

/// All slots of a socket.
const fn all(socket: &UdpSocket) -> Slots {
    Slots {
        first: 0,
        count: socket.slots(),
    }
}

/// Answers each datagram with itself, if it may be answered: what came is sent from the slots that it came into.
fn echo(mut socket: UdpSocket) -> Result<(), Error> {
    let all = all(&socket);
    let mut due = Slots::default();
    loop {
        if due.count == 0 {
            let count = socket.receive(all)?;
            due = Slots { first: 0, count };
        }
        let run = answerable(&socket, due);
        if run < due.count {
            // What is behind it may be answered, and it not.
            let sent = match run {
                0 => Ok(1),
                count => socket.send(Slots { count, ..due }),
            };
            due = match sent {
                Ok(sent) => behind(due, sent),
                Err(error) if is_for_one(&error) => behind(due, 1),
                Err(error) => return Err(error),
            };
            continue;
        }
        let exchanged = socket.exchange(due, all);
        due = match exchanged {
            Ok(Exchanged { sent, received }) if sent == due.count => Slots {
                first: 0,
                count: received,
            },
            Ok(Exchanged { sent, .. }) => behind(due, sent),
            // Nobody can be answered there; the others can.
            Err(error) if is_for_one(&error) => behind(due, 1),
            Err(error) => return Err(error),
        };
    }
}

/// How many of these datagrams, from the first on, may be answered.
fn answerable(socket: &UdpSocket, slots: Slots) -> u16 {
    let mut from = (slots.first..).take(slots.count.into());
    let silent = from.position(|index| {
        let peer = socket.header(index).peer;
        !netload::may_answer(socket.port(), peer.port())
    });
    silent.map_or(slots.count, |place| place as u16)
}

/// What is left of slots without the first `count`.
const fn behind(slots: Slots, count: u16) -> Slots {
    Slots {
        first: slots.first.saturating_add(count),
        count: slots.count.saturating_sub(count),
    }
}

/// Whether an error is about one datagram, so that another may be sent.
const fn is_for_one(error: &Error) -> bool {
    matches!(
        error,
        CallError::Service(NetError::Unreachable | NetError::BadArgument | NetError::TooLarge)
    )
}

/// Takes each datagram.
fn sink(mut socket: UdpSocket) -> Result<(), Error> {
    let all = all(&socket);
    loop {
        socket.receive(all)?;
    }
}

/// Sends from half of the slots, and takes what is answered into the other half: it would fill the socket, and count as lost.
fn send(mut socket: UdpSocket, stream: Stream) -> Result<(), Error> {
    let slots = socket.slots() / 2;
    let answers = Slots {
        first: slots,
        count: slots,
    };
    let header = Header {
        peer: stream.to,
        len: stream.size,
    };
    for index in 0..slots {
        socket.put(index, header, &[]);
    }
    let begin = time::now();
    let (mut sent, mut failed) = (0, 0_u64);
    loop {
        let passed = time::now() - begin;
        let tried = sent + failed;
        if stream.is_over(tried, passed) {
            break;
        }
        let room = stream.allowed(passed).saturating_sub(tried);
        if room == 0 {
            time::sleep(stream.due(tried).saturating_sub(passed));
            continue;
        }
        let count = room.min(slots.into()) as u16;
        match socket.send(Slots { first: 0, count }) {
            Ok(taken) => sent += u64::from(taken),
            Err(error) if is_for_one(&error) => failed += 1,
            Err(error) => return Err(error),
        }
        socket.set_timeout(Some(0));
        match socket.receive(answers) {
            Ok(_) | Err(CallError::Transport(KernelError::TimedOut)) => {}
            Err(error) => return Err(error),
        }
        socket.set_timeout(None);
    }
    let passed = time::now() - begin;
    let statistics = socket.statistics()?;
    println!(
        "sent {sent} packets, {} bytes in {} ms; {} came back, {failed} failed, {} unanswered, {} refused",
        statistics.sent_bytes,
        passed / time::MILLISECOND,
        statistics.received,
        statistics.unanswered,
        statistics.refused,
    );
    Ok(())
}

//! A server's place at its endpoint.

use ipc::abi::{NEVER, NOW};
use ipc::proto::stream::{self, Chunk, Client, Flush, Read, Service, Write};
use ipc::proto::{Call, Message, Parked, Served};
use sysroot::{Connection, Event, OwnedHandle, Port, syscall, thread};

/// Sets readers aside, and answers all else at once.
#[derive(Default)]
struct Line {
    reader: Option<Parked<Port, Read>>,
}

impl Service<Port> for Line {
    fn write(&mut self, call: Call<'_, Port, Write>, _: Chunk) -> Served<Write, OwnedHandle> {
        Ok(call.reply(()))
    }
    fn read(&mut self, call: Call<'_, Port, Read>, _: u16) -> Served<Read, OwnedHandle> {
        let (reader, outcome) = call.park().unwrap();
        self.reader = Some(reader);
        Ok(outcome)
    }
    fn flush(&mut self, call: Call<'_, Port, Flush>, (): ()) -> Served<Flush, OwnedHandle> {
        Ok(call.reply(()))
    }
}

/// A parked call can be answered while the answer to another one is still to be sent, and both arrive.
pub fn parked() {
    let endpoint = OwnedHandle::new(syscall::endpoint_create().unwrap());
    let connection = Connection::new(endpoint.raw());
    let text = Chunk::try_from(&b"text"[..]).unwrap();
    let (mut port, mut message, mut line) =
        (Port::new(endpoint.raw()), Message::new(), Line::default());
    let mut serve = |port: &mut Port, line: &mut Line, deadline| {
        let event = port.receive(deadline, &mut message);
        if let Event::Call { badge } = event {
            port.serve(badge, &mut message, line, stream::dispatch);
        }
        event
    };
    thread::scope(|scope| {
        let reader = scope.spawn(|| Client::new(connection).read(&4)).unwrap();
        while line.reader.is_none() {
            serve(&mut port, &mut line, NEVER);
        }
        let writer = scope
            .spawn(|| Client::new(connection).write(&text))
            .unwrap();
        assert!(matches!(
            serve(&mut port, &mut line, NEVER),
            Event::Call { .. }
        ));
        let reply = line.reader.take().unwrap();
        reply.answer(&mut port, &text).unwrap();
        // The answer to the writer goes before this waits.
        assert_eq!(serve(&mut port, &mut line, NOW), Event::TimedOut);
        assert_eq!(reader.join().unwrap(), Ok(text.clone()));
        assert_eq!(writer.join().unwrap(), Ok(()));
    });
}

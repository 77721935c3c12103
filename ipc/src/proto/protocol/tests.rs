//! A protocol that uses everything the macro offers, served on the host.

use postcard::experimental::max_size::MaxSize;
use serde::{Deserialize, Serialize};

use crate::abi::Error;
use crate::proto::{
    Call, CallError, Desk, Disposition, Loopback, Message, Parked, ProtocolError, Responder,
    Served, Text, Transport,
};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, MaxSize)]
pub struct StartRequest {
    pub hz: u32,
    pub name: Text<16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, MaxSize)]
pub enum TestError {
    Busy,
    BadRate { most: u32 },
}

crate::protocol! {
    error TestError;
    retired [2, 9];
    /// Starts; takes where to write, if anywhere.
    1 Start = start(StartRequest, handles Option<H>) -> u64;
    /// Answers when it was stopped.
    3 Finish = finish(u64) -> u32, handles [H; 2];
    /// Stops, and so answers those who wait.
    4 Stop = stop(()) -> bool;
}

#[derive(Default)]
struct Server {
    waiter: Option<Parked<Desk, Finish>>,
    given: Option<u32>,
    badge: u64,
}

impl Service<Desk> for Server {
    fn start(
        &mut self,
        call: Call<'_, Desk, Start>,
        request: StartRequest,
        out: Option<u32>,
    ) -> Served<Start, u32> {
        if request.hz > 1000 {
            return Err(TestError::BadRate { most: 1000 });
        }
        self.given = out;
        self.badge = call.badge();
        Ok(call.reply(u64::from(request.hz) * 2))
    }
    fn finish(&mut self, call: Call<'_, Desk, Finish>, _: u64) -> Served<Finish, u32> {
        if self.waiter.is_some() {
            return Ok(call.reply_with(7, [70, 71]));
        }
        let (parked, outcome) = call.park().map_err(|_| TestError::Busy)?;
        self.waiter = Some(parked);
        Ok(outcome)
    }
    fn stop(&mut self, mut call: Call<'_, Desk, Stop>, (): ()) -> Served<Stop, u32> {
        let waiter = self.waiter.take();
        let had = waiter.is_some();
        if let Some(waiter) = waiter {
            let told = waiter.answer_with(call.responder(), &5, [50, 51]);
            assert_eq!(told, Ok(()));
        }
        Ok(call.reply(had))
    }
}

fn client() -> Client<Loopback<Server>> {
    Client::new(Loopback::new(Server::default(), dispatch))
}

fn request(hz: u32) -> StartRequest {
    StartRequest {
        hz,
        name: Text::cut("cycles"),
    }
}

#[test]
fn a_call_carries_values_handles_and_badge() {
    let mut client = client();
    client.transport().badge = 99;
    assert_eq!(client.start(&request(100), Some(12)), Ok(200));
    assert_eq!(client.transport().service.given, Some(12));
    assert_eq!(client.transport().service.badge, 99);
    assert_eq!(client.start(&request(100), None), Ok(200));
    assert_eq!(client.transport().service.given, None);
    assert_eq!(
        client.start(&request(1001), None),
        Err(CallError::Service(TestError::BadRate { most: 1000 }))
    );
}

#[test]
fn a_parked_call_is_answered_while_another_is_served() {
    let mut client = client();
    assert_eq!(
        client.finish(&1),
        Err(CallError::Transport(Error::TimedOut))
    );
    assert_eq!(client.finish(&1), Ok((7, [70, 71])));
    assert_eq!(client.stop(&()), Ok(true));
    let (number, answer) = client.transport().desk.last_answer.take().unwrap();
    assert_eq!((number, answer.op), (1, 0));
    assert_eq!(answer.get::<u32>(), Ok(5));
    assert_eq!(answer.handles.as_slice(), [50, 51]);
    assert_eq!(client.stop(&()), Ok(false));
}

#[test]
fn no_room_to_park_is_the_servers_to_explain() {
    let mut client = client();
    client.transport().desk.full = true;
    assert_eq!(client.finish(&1), Err(CallError::Service(TestError::Busy)));
}

#[test]
fn a_token_can_refuse() {
    let mut client = client();
    assert!(client.finish(&1).is_err());
    let Loopback { service, desk, .. } = client.transport();
    let waiter = service.waiter.take().unwrap();
    assert_eq!(waiter.refuse(desk, &TestError::Busy), Ok(()));
    let (_, answer) = desk.last_answer.take().unwrap();
    assert_eq!((answer.op, answer.bytes.as_slice()), (1, &[0][..]));
}

/// Dispatches raw bytes and gives status and payload of the reply.
fn raw(op: u16, bytes: &[u8], handles: &[u32]) -> (u16, Vec<u8>) {
    let mut message = Message::new();
    message.op = op;
    message.bytes.extend_from_slice(bytes).unwrap();
    message.handles.extend_from_slice(handles).unwrap();
    let disposition = dispatch(&mut Server::default(), &mut Desk::new(), 0, &mut message);
    assert_eq!(disposition, Disposition::Reply);
    assert!(
        message.handles.is_empty(),
        "the handles of a refused call do not come back"
    );
    (message.op, message.bytes.to_vec())
}

#[test]
fn what_is_not_understood_says_why() {
    let misunderstood = |error: ProtocolError| (2, vec![error as u8]);
    for unknown in [0, 2, 5, u16::MAX] {
        assert_eq!(
            raw(unknown, &[], &[1]),
            misunderstood(ProtocolError::UnknownOperation)
        );
    }
    assert_eq!(
        raw(1, &[0xff; 40], &[]),
        misunderstood(ProtocolError::BadRequest)
    );
    assert_eq!(raw(1, &[], &[]), misunderstood(ProtocolError::BadRequest));
    assert_eq!(raw(4, &[0], &[]), misunderstood(ProtocolError::BadRequest));
    assert_eq!(
        raw(1, &[100, 0], &[1, 2]),
        misunderstood(ProtocolError::BadHandles)
    );
    assert_eq!(raw(4, &[], &[1]), misunderstood(ProtocolError::BadHandles));
}

/// A peer that answers the same whatever it is asked.
struct Parrot(u16, &'static [u8], &'static [u32]);

impl Transport for Parrot {
    type Handle = u32;
    fn call(&mut self, message: &mut Message<u32>) -> Result<(), Error> {
        message.op = self.0;
        message.bytes.clear();
        message.handles.clear();
        message.bytes.extend_from_slice(self.1).unwrap();
        message.handles.extend_from_slice(self.2).unwrap();
        Ok(())
    }
}

#[test]
fn a_hostile_server_gives_a_protocol_error() {
    let bad = Err(CallError::Protocol(ProtocolError::BadReply));
    let finish = |status, bytes, handles| Client::new(Parrot(status, bytes, handles)).finish(&1);
    assert_eq!(finish(0, &[5], &[1, 2]), Ok((5, [1, 2])));
    assert_eq!(finish(0, &[5], &[1]), bad);
    assert_eq!(finish(0, &[5], &[]), bad);
    assert_eq!(finish(0, &[5, 5], &[1, 2]), bad);
    assert_eq!(finish(1, &[9], &[]), bad);
    assert_eq!(finish(2, &[], &[]), bad);
    assert_eq!(finish(3, &[0], &[]), bad);
    assert_eq!(
        finish(2, &[1], &[]),
        Err(CallError::Protocol(ProtocolError::UnknownOperation))
    );
}

#[test]
fn wire_bytes_are_pinned() {
    let mut message = Message::<u32>::new();
    message.put(1, &request(999)).unwrap();
    assert_eq!(message.bytes, b"\xe7\x07\x06cycles");
    assert_eq!(raw(1, b"\x64\x00", &[]), (0, vec![200, 1]));
    assert_eq!(raw(1, b"\xe9\x07\x00", &[]), (1, vec![1, 0xe8, 7]));
    assert_eq!(raw(4, &[], &[]), (0, vec![0]));
    assert_eq!(OPERATIONS, [(1, "start"), (3, "finish"), (4, "stop")]);
}

/// The trait stays open to any platform, not only to the one of these tests.
#[test]
fn a_service_is_generic_over_its_platform() {
    struct Echo;
    impl<P: Responder> Service<P> for Echo {
        fn start(
            &mut self,
            call: Call<'_, P, Start>,
            request: StartRequest,
            _: Option<P::Handle>,
        ) -> Served<Start, P::Handle> {
            Ok(call.reply(u64::from(request.hz)))
        }
        fn finish(&mut self, _: Call<'_, P, Finish>, _: u64) -> Served<Finish, P::Handle> {
            Err(TestError::Busy)
        }
        fn stop(&mut self, call: Call<'_, P, Stop>, (): ()) -> Served<Stop, P::Handle> {
            Ok(call.reply(false))
        }
    }
    let mut client = Client::new(Loopback::new(Echo, dispatch));
    assert_eq!(client.start(&request(3), None), Ok(3));
}

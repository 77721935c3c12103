//! The operations.

use ipc::proto::net::{
    Bind, Count, Echo, Exchange, Exchanged, MakeSocket, NetError, NextSocket, Ping, Receive,
    Remote, Send, Service, Slots, Statistics, Status, Swap,
};
use ipc::proto::{Call, Responder, Served};

use super::socket::{Receiver, Sender};
use super::{Asked, Machine, Server};
use crate::device::Nic;

impl<M: Machine, D: Nic, P: Responder<Handle = M::Handle>> Service<P> for Server<M, D, P> {
    fn status(&mut self, call: Call<'_, P, Status>, (): ()) -> Served<Status, P::Handle> {
        Ok(call.reply(self.online()?.report()))
    }

    fn count(&mut self, call: Call<'_, P, Count>, (): ()) -> Served<Count, P::Handle> {
        Ok(call.reply(self.online()?.counters()))
    }

    fn ping(&mut self, call: Call<'_, P, Echo>, ping: Ping) -> Served<Echo, P::Handle> {
        let by = call.badge();
        let id = self.begin_echo(by, ping)?;
        // One that cannot be parked goes on, and its end is told to nobody.
        let (reply, outcome) = call.park().map_err(|_| NetError::Busy)?;
        self.echoes.push(Asked { id, by, reply });
        Ok(outcome)
    }

    fn socket(
        &mut self,
        call: Call<'_, P, MakeSocket>,
        slots: u16,
        [memory]: [P::Handle; 1],
    ) -> Served<MakeSocket, P::Handle> {
        let socket = self.make_socket(call.badge(), slots, memory)?;
        Ok(call.reply_with((), [socket]))
    }

    fn next_socket(
        &mut self,
        call: Call<'_, P, NextSocket>,
        from: u16,
    ) -> Served<NextSocket, P::Handle> {
        self.online()?;
        Ok(call.reply(self.socket_from(from)))
    }

    fn remote(&mut self, call: Call<'_, P, Remote>, (): ()) -> Served<Remote, P::Handle> {
        Ok(call.reply(self.remote))
    }

    fn bind(&mut self, call: Call<'_, P, Bind>, port: u16) -> Served<Bind, P::Handle> {
        let (stack, socket) = self.called(call.badge())?;
        if socket.id.is_some() {
            return Err(NetError::Bound);
        }
        let id = stack.bind(port)?;
        socket.id = Some(id);
        Ok(call.reply(stack.port(id)))
    }

    fn send(&mut self, call: Call<'_, P, Send>, slots: Slots) -> Served<Send, P::Handle> {
        let now = self.machine.now();
        let (stack, socket) = self.called(call.badge())?;
        let id = socket.with(&[slots])?;
        match socket.send(stack, id, slots, now)? {
            0 => {
                let (reply, outcome) = call.park().map_err(|_| NetError::Busy)?;
                socket.sender = Some(Sender::Send(reply, slots));
                Ok(outcome)
            }
            sent => Ok(call.reply(sent)),
        }
    }

    fn receive(&mut self, call: Call<'_, P, Receive>, slots: Slots) -> Served<Receive, P::Handle> {
        let (stack, socket) = self.called(call.badge())?;
        let id = socket.with(&[slots])?;
        match socket.fill(stack, id, slots) {
            0 => {
                let (reply, outcome) = call.park().map_err(|_| NetError::Busy)?;
                socket.receiver = Some(Receiver::Receive(reply, slots));
                Ok(outcome)
            }
            received => {
                stack.discard(id, received.into());
                Ok(call.reply(received))
            }
        }
    }

    fn exchange(&mut self, call: Call<'_, P, Swap>, exchange: Exchange) -> Served<Swap, P::Handle> {
        let now = self.machine.now();
        let (stack, socket) = self.called(call.badge())?;
        let id = socket.with(&[exchange.send, exchange.receive])?;
        let sent = socket.send(stack, id, exchange.send, now)?;
        if sent == 0 {
            let (reply, outcome) = call.park().map_err(|_| NetError::Busy)?;
            socket.sender = Some(Sender::Exchange(reply, exchange));
            return Ok(outcome);
        }
        let received = match sent < exchange.send.count {
            true => 0,
            false => socket.fill(stack, id, exchange.receive),
        };
        if sent == exchange.send.count && received == 0 {
            return match call.try_park() {
                Ok((reply, outcome)) => {
                    socket.receiver = Some(Receiver::Exchange(reply, exchange.receive, sent));
                    Ok(outcome)
                }
                // What was sent must not be sent again.
                Err((call, _)) => Ok(call.reply(Exchanged { sent, received })),
            };
        }
        stack.discard(id, received.into());
        Ok(call.reply(Exchanged { sent, received }))
    }

    fn statistics(
        &mut self,
        call: Call<'_, P, Statistics>,
        (): (),
    ) -> Served<Statistics, P::Handle> {
        let (stack, socket) = self.called(call.badge())?;
        let id = socket.id.ok_or(NetError::NotBound)?;
        Ok(call.reply(stack.statistics(id)))
    }
}

//! The protocol `net`, served.

use ipc::proto::net::{
    Bind, Count, Echo, Exchange, MakeSocket, NetError, Ping, Receive, Send, Service, Slots,
    Statistics, Status, Swap,
};
use ipc::proto::{Call, Responder, Served};

/// The server of a machine without a network device.
#[derive(Debug, Default)]
pub struct Absent;

impl<P: Responder> Service<P> for Absent {
    fn status(&mut self, _: Call<'_, P, Status>, (): ()) -> Served<Status, P::Handle> {
        Err(NetError::NoDevice)
    }
    fn count(&mut self, _: Call<'_, P, Count>, (): ()) -> Served<Count, P::Handle> {
        Err(NetError::NoDevice)
    }
    fn ping(&mut self, _: Call<'_, P, Echo>, _: Ping) -> Served<Echo, P::Handle> {
        Err(NetError::NoDevice)
    }
    fn socket(
        &mut self,
        _: Call<'_, P, MakeSocket>,
        _: u16,
        _: [P::Handle; 1],
    ) -> Served<MakeSocket, P::Handle> {
        Err(NetError::NoDevice)
    }
    fn bind(&mut self, _: Call<'_, P, Bind>, _: u16) -> Served<Bind, P::Handle> {
        Err(NetError::NoDevice)
    }
    fn send(&mut self, _: Call<'_, P, Send>, _: Slots) -> Served<Send, P::Handle> {
        Err(NetError::NoDevice)
    }
    fn receive(&mut self, _: Call<'_, P, Receive>, _: Slots) -> Served<Receive, P::Handle> {
        Err(NetError::NoDevice)
    }
    fn exchange(&mut self, _: Call<'_, P, Swap>, _: Exchange) -> Served<Swap, P::Handle> {
        Err(NetError::NoDevice)
    }
    fn statistics(&mut self, _: Call<'_, P, Statistics>, (): ()) -> Served<Statistics, P::Handle> {
        Err(NetError::NoDevice)
    }
}

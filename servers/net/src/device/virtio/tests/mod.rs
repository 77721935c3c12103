//! The driver against a device that does as it should, and against one that does not.

mod frames;
mod hostile;
mod setup;

use smoltcp::phy::{Device, RxToken, TxToken};
use smoltcp::time::Instant;

use super::card::Card;
use super::fake::{N, Shared, TestHal};
use super::fault::Fault;
use super::transport::{Signal, VirtioPci};

pub type TestCard = Card<TestHal, Shared, N>;

const MESSAGES: Signal = Signal::Messages { vectors: 2 };

/// A driver of this device.
fn open(device: &Shared, signal: Signal) -> Result<TestCard, Fault> {
    Card::new(VirtioPci::new(device.clone(), Shared::layout(), signal)?)
}

/// A device that works, and its driver.
pub fn working() -> (Shared, TestCard) {
    let device = Shared::new();
    let card = open(&device, MESSAGES).unwrap();
    (device, card)
}

/// The next frame that has come.
fn receive(card: &mut TestCard) -> Option<Vec<u8>> {
    let (token, _) = card.receive(Instant::ZERO)?;
    Some(token.consume(<[u8]>::to_vec))
}

/// Sends a frame, if there is room.
fn send(card: &mut TestCard, frame: &[u8]) -> bool {
    let token = card.transmit(Instant::ZERO);
    let sent = token.map(|token| token.consume(frame.len(), |room| room.copy_from_slice(frame)));
    sent.is_some()
}

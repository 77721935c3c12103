//! A virtio network card on PCI, version 1 or later (virtio 1.2, 4.1 and 5.1).
//!
//! Rings are the crate `virtio-drivers`'; what is around them is here, because the device is not believed: where its registers
//! are (`layout`), the steps to set it up (`transport`), memory that it shares (`dma`), which buffers it has (`queue`), and
//! the frames (`card`).

pub mod card;
pub mod dma;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
pub mod fault;
pub mod layout;
pub mod queue;
#[cfg(test)]
pub(crate) mod tests;
pub mod transport;

pub use card::Card;
pub use fault::Fault;

//! What everything else stands on: addresses, CPUs, ranked locks and typed pools.

pub mod addr;
pub mod block;
pub mod cpu;
pub mod lock;
pub mod pool;
pub mod regs;

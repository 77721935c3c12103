//! Both ends, joined in memory.

mod doors;
mod doubt;
mod faults;
mod hostile;
mod keys;
mod lines;
mod link;
mod sessions;

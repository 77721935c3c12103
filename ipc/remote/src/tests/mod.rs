//! Both ends, joined in memory.

mod link;
mod sessions;

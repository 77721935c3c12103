//! Memory: when something freed may be reused ([`grace`]).

pub mod grace;

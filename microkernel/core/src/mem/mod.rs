//! Memory: when something freed may be reused ([`grace`]), and which frames are free ([`frames`]).

pub mod bitmap;
pub mod frames;
pub mod grace;

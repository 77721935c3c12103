//! Memory: when something freed may be reused ([`grace`]), which frames are free ([`frames`]), which page a program
//! means ([`page`]) and what it sees there ([`paging`]), and which frames a memory object has ([`frame_list`]).

pub mod bitmap;
pub mod entry;
#[cfg(test)]
pub mod fake;
pub mod frame_list;
pub mod frame_set;
pub mod frames;
pub mod grace;
pub mod page;
pub mod paging;
pub mod supply;

//! How processes and threads begin and end. An end is announced at once, so that peers fail at once; what it frees is freed in
//! steps; and whoever watches hears of it when the last frame is back.

pub mod create;
pub mod end;
pub mod fault;
pub mod first;
pub mod free;

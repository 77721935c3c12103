//! Which thread runs where. Work conserving: no CPU idles while a thread that may run there waits elsewhere.

pub mod leave;
pub mod load;
pub mod meter;
pub mod ready;
pub mod tick;
pub mod time;
pub mod view;
pub mod wake;

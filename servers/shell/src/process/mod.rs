//! A process with a session: its threads, and the system as it has it by its handles.

mod doorway;
mod ends;
mod machine;
mod threads;
mod wiring;

pub use doorway::attend;
pub use threads::{Failure, console, remote};

//! The sampling path on the host, against a machine and threads that are hostile on purpose.

mod chains;
mod fake;
mod nmis;
mod runs;
mod translation;
mod walks;

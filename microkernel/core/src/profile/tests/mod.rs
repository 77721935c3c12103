//! The sampling path on the host, against a machine and threads that are hostile on purpose.

mod chains;
mod concurrent;
mod counters;
mod fake;
mod hostile;
mod nmis;
mod runs;
mod setup;
mod translation;
mod walks;

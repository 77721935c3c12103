//! The whole kernel on the host: a machine that is simulated ([`machine`]), threads whose user code is the test's
//! ([`run`]), and the laws that must hold whenever no CPU is in the kernel ([`check`]).
//!
//! CPUs are simulated one kernel entry at a time, in an order that the test chooses, so that a failure repeats exactly. What
//! happens between two instructions of two CPUs is left to one test with real threads as CPUs ([`storm`]).

mod build;
mod chaos;
mod check;
mod history;
mod links;
mod machine;
mod nmis;
mod program;
mod random;
mod run;
mod storm;
mod totals;

use build::Sim;

mod tests;

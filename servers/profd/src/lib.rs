//! profd answers where the machine spends its time: it runs profiles, finds names, folds, and writes the report.
//!
//! From the driver to the terminal: [`rings`] are drained by a [`session`], whose [`collect`]or sorts samples and makes each a
//! [`chain`] of places ([`atlas`]: [`process`]es and the [`catalog`] of [`image`]s), with the caller that the walk missed put
//! back ([`repair`], [`unwind`]), and finds on whose [`account`] it is. Chains are counted by [`fold`], named by [`mod@resolve`]
//! and become a [`mod@profile`], which [`mod@encode`] carries as bytes and [`mod@report`] and [`mod@stacks`] write as text.
//! [`service`] is what other programs call; [`request`] is for shells. [`lscpu`] writes what the processors are, of what a
//! [`survey`] of them found. `docs/report.md` has what users rely on.
//!
//! Nothing here touches hardware or knows the time: both are passed in, and the whole runs on the host.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod account;
pub mod atlas;
pub mod bytes;
pub mod catalog;
pub mod chain;
pub mod clock;
pub mod collect;
pub mod cpus;
pub mod decode;
pub mod driver;
pub mod early;
pub mod encode;
pub mod fold;
pub mod header;
pub mod image;
pub mod lscpu;
pub mod notes;
pub mod process;
pub mod profile;
pub mod repair;
pub mod report;
pub mod request;
pub mod resolve;
pub mod rings;
pub mod service;
pub mod session;
pub mod shorten;
pub mod stacks;
pub mod survey;
pub mod symbols;
pub mod text;
pub mod unwind;

//! The profiling driver: takes samples where the machine is interrupted and leaves their meaning to `profd`.
//!
//! Mechanism only, and no hardware: the kernel binary calls in from its tick and its NMI handler.

mod interrupted;

pub use interrupted::Interrupted;

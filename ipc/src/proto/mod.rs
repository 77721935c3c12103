//! What programs say to each other, and to whom. The kernel knows none of it.

pub mod system;

//! Functions that are as they should be, and functions that are not.

mod filter;
mod function;
mod hostile;
mod search;

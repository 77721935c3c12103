//! What the backtrace of a panic leaves out.

/// Beginnings of the names of functions that a panic goes through on its way to its end: those that only report it, which
/// the library keeps apart from those that find out.
const REPORTERS: [&str; 11] = [
    "__rustc::",
    "core::cell::panic_already_",
    "core::option::expect_failed",
    "core::option::unwrap_failed",
    "core::panicking::",
    "core::result::unwrap_failed",
    "core::slice::index::slice_index_fail",
    "core::str::slice_error_fail",
    "alloc::alloc::handle_alloc_error",
    "alloc::raw_vec::capacity_overflow",
    "alloc::raw_vec::handle_error",
];

/// Whether a function, by the name that is printed, is one of them.
#[must_use]
pub fn reports_panics(function: &str) -> bool {
    REPORTERS
        .iter()
        .any(|reporter| function.starts_with(reporter))
}

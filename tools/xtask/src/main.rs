//! Builds, boots and tests Sonde.
fn main() {}

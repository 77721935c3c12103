//! `bench-exit`: a program that does nothing, to measure what it takes to start and end one.
#![no_std]
#![no_main]

sysroot::entry!(main);

fn main() {}

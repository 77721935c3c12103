//! `bench`: measures the system from inside; `./run.sh bench` runs it. It is in the test archive alone.
#![no_std]
#![no_main]

sysroot::entry!(bench::guest::main);

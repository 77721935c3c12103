//! `bench-peer`: the server that `bench` calls. It ends when it is told to.
#![no_std]
#![no_main]

sysroot::entry!(bench::guest::serve);

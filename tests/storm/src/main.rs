//! `storm MS SEED`: see the library. It is in the test archive alone, and prints what it counted; its exit code is the verdict.
#![no_std]
#![no_main]

sysroot::entry!(storm::guest::main);

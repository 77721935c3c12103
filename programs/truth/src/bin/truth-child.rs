//! `truth-child`: works for as long as each of its kind, and ends.
#![no_std]
#![no_main]

sysroot::entry!(main);

truth::loops! {
    work 0x3333_0001,
}

fn main() {
    work(truth::CHILD);
    truth::let_others_run();
}

//! `truth-child`: works for as long as each of its kind, and ends.
#![no_std]
#![no_main]

use truth::Turns;

sysroot::entry!(main);

truth::loops! {
    work 0x3333_0001,
}

fn main() {
    work(&mut Turns::new(), truth::CHILD);
}

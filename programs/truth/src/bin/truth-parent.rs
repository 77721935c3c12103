//! `truth-parent`: works, starts a child that works too, waits for its end, and so on. In between it does something else for a
//! time that is drawn anew each time, so that no round begins at the same time after a tick as the one before.
#![no_std]
#![no_main]

use sysroot::ExitCode;
use truth::init::Init;
use truth::{Random, Turns};

sysroot::entry!(main);

truth::loops! {
    work 0x4444_0001,
    between 0x4444_0002,
}

fn main() -> Result<(), ExitCode> {
    let mut init = Init::connect()?;
    let (mut turns, mut random) = (Turns::new(), Random::new());
    loop {
        let time = random.below(truth::PARENT);
        between(&mut turns, time);
        work(&mut turns, truth::PARENT);
        let child = init.start("truth-child", &[])?;
        init.wait(child)?;
    }
}

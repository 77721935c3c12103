//! `truth-parent`: works, starts a child that works too, waits for its end, and so on.
#![no_std]
#![no_main]

use sysroot::ExitCode;
use truth::init::Init;

sysroot::entry!(main);

truth::loops! {
    work 0x4444_0001,
}

fn main() -> Result<(), ExitCode> {
    let mut init = Init::connect()?;
    loop {
        work(truth::PARENT);
        truth::let_others_run();
        let child = init.start("truth-child", &[])?;
        init.wait(child)?;
    }
}

//! `spin [-t MS]`: keeps one CPU busy.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
use {
    core::hint::black_box,
    programs::Arguments,
    sysroot::{ExitCode, println, startup, time},
};

#[cfg(target_os = "none")]
sysroot::entry!(main);

#[cfg(not(target_os = "none"))]
fn main() {}

#[cfg(target_os = "none")]
fn main() -> ExitCode {
    let run_ms = match Arguments::parse(startup::args(), 0) {
        Ok(arguments) => arguments.run_ms,
        Err(error) => {
            println!("spin: {error}");
            return ExitCode::USAGE;
        }
    };
    let end = run_ms.map(|ms| time::after(ms * time::MILLISECOND));
    let mut turns: u64 = 0;
    while end.is_none_or(|end| time::now() < end) {
        for _ in 0..2000 {
            turns = black_box(turns + 1);
        }
    }
    ExitCode::SUCCESS
}

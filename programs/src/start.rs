//! How a small program begins on Sonde: it reads its command line, or refuses it and ends.

use sysroot::{ExitCode, println, startup, time};

use crate::{ArgumentError, Arguments};

/// When a program ends: after the time of its `-t`, or never.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Option<u64>);

impl Deadline {
    /// Whether the time has come.
    #[must_use]
    pub fn has_passed(self) -> bool {
        self.0.is_some_and(|end| time::now() >= end)
    }
}

/// What `read` makes of the command line, which is written as `usage` says and has at most `most` words.
///
/// # Errors
/// The exit code for a wrong one, after its line was printed.
pub fn parse<T>(
    usage: &'static str,
    most: usize,
    read: impl FnOnce(&Arguments<'static>) -> Result<T, ArgumentError<'static>>,
) -> Result<T, ExitCode> {
    let parsed = Arguments::parse(startup::args(), most, usage);
    accept(parsed.and_then(|arguments| read(&arguments)))
}

/// The same for a program that takes `-t MS`, and when it ends.
///
/// # Errors
/// As for [`parse`].
pub fn parse_timed<T>(
    usage: &'static str,
    most: usize,
    read: impl FnOnce(&Arguments<'static>) -> Result<T, ArgumentError<'static>>,
) -> Result<(T, Deadline), ExitCode> {
    let parsed = Arguments::parse_timed(startup::args(), most, usage);
    accept(parsed.and_then(|(arguments, run_ms)| {
        let end = run_ms.map(|ms| time::after(ms * time::MILLISECOND));
        Ok((read(&arguments)?, Deadline(end)))
    }))
}

fn accept<T>(parsed: Result<T, ArgumentError<'_>>) -> Result<T, ExitCode> {
    parsed.map_err(|error| {
        println!("{}: {error}", startup::name());
        ExitCode::USAGE
    })
}
